"""What the fake Slurm can do that the real one can't be made to do; see ``fake_slurm``."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from accounts import state_in_accounts
from fake_slurm.driver import BEGIN, TIMED_OUT, UNREACHABLE, FakeSlurm, Fate
from late_limits import begin_when

from commtune.cluster.job_states import JobState, ObservedState, PendingReason
from commtune.cluster.scheduler import sum_node_hours
from commtune.cluster.slurm.client import SlurmScheduler
from commtune.cluster.slurm.command_output import classify_reason
from commtune.cluster.slurm.faults import SlurmError, SlurmFault


@pytest.fixture
def fake(tmp_path: Path) -> FakeSlurm:
    return FakeSlurm(tmp_path / "fake")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "job.sh"
    file.write_text("#!/bin/bash\n#SBATCH --job-name=ours --nodes=2\necho ran >ran\nexit 3\n")
    return file


def submit(fake: FakeSlurm, script: Path) -> str:
    return SlurmScheduler(fake.environment).submit(script, folder=script.parent)


def queued(fake: FakeSlurm, job: str) -> ObservedState:
    return SlurmScheduler(fake.environment).poll([job]).state_of(job)


def accounted(fake: FakeSlurm, job: str) -> ObservedState:
    return state_in_accounts(SlurmScheduler(fake.environment).account([job], BEGIN), job)


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("COMPLETED", JobState.COMPLETED),
        ("PREEMPTED", JobState.PREEMPTED),
        ("OUT_OF_MEMORY", JobState.OUT_OF_MEMORY),
        ("BOOT_FAIL", JobState.NODE_FAILURE),
        ("DEADLINE", JobState.NEVER_STARTED),
        ("NODE_FAIL", JobState.NODE_FAILURE),
        ("TIMEOUT", JobState.TIMED_OUT),
        ("SPECIAL_EXIT", JobState.NEVER_STARTED),
        ("A_WORD_OF_THE_FUTURE", JobState.UNKNOWN),
    ],
)
def test_a_job_ends_as_it_is_told(
    fake: FakeSlurm, script: Path, word: str, state: JobState
) -> None:
    fake.next(Fate(word, wait_s=60, run_s=600))
    job, other = submit(fake, script), submit(fake, script)
    assert queued(fake, job).state is JobState.PENDING
    fake.advance(61)
    assert queued(fake, job).state is JobState.RUNNING
    assert queued(fake, other).state is JobState.COMPLETED
    fake.advance(600)
    for seen in (queued(fake, job), accounted(fake, job)):
        assert (seen.state, seen.word, seen.started_at) == (state, word, BEGIN + 60)
    assert queued(fake, other).state is JobState.ABSENT, "it ended more than MinJobAge ago"
    assert accounted(fake, other).state is JobState.COMPLETED


def test_an_admin_cancels(fake: FakeSlurm, script: Path) -> None:
    fake.next(Fate("CANCELLED", cancelled_by=1000, run_s=5))
    job = submit(fake, script)
    fake.advance(5)
    assert accounted(fake, job).cancelled_by == 1000


def test_a_job_that_never_starts(fake: FakeSlurm, script: Path) -> None:
    fake.next(Fate(wait_s=None, waits_for="QOSMaxWallDurationPerJobLimit"))
    job = submit(fake, script)
    fake.advance(1e6)
    seen = queued(fake, job)
    assert (seen.state, classify_reason(seen.reason)) == (
        JobState.NEVER_STARTED,
        PendingReason.IMPOSSIBLE,
    )
    fake.start(job)
    assert queued(fake, job).state is JobState.RUNNING


def test_a_job_that_is_put_back_has_two_attempts(fake: FakeSlurm, script: Path) -> None:
    fake.next(Fate("PREEMPTED", run_s=100, again=[Fate(wait_s=50, run_s=10)]))
    job = submit(fake, script)
    fake.advance(120)
    assert queued(fake, job).state is JobState.PENDING
    fake.advance(40)
    seen = accounted(fake, job)
    assert (seen.state, seen.started_at) == (JobState.COMPLETED, BEGIN + 150)
    records = SlurmScheduler(fake.environment).account([job], BEGIN)
    assert sum_node_hours(records) == pytest.approx(2 * 110 / 3600)


def test_a_test_decides_while_a_job_runs(fake: FakeSlurm, script: Path) -> None:
    fake.always(Fate(run_s=None, completing_s=20))
    job = submit(fake, script)
    script.write_text("#!/bin/bash\n#SBATCH --nodelist=n[3-4]\n")
    other = submit(fake, script)
    fake.advance(1e5)
    fake.end(job, Fate("OUT_OF_MEMORY", signal=9, again=[Fate(wait_s=None)]))
    assert fake.fail_node("n4") == [other]
    assert queued(fake, job).state is JobState.PENDING
    assert queued(fake, other).state is JobState.NODE_FAILURE
    assert SlurmScheduler(fake.environment).failed_nodes(["n3", "n4"]) == {"n4"}
    assert fake.living == [job]
    fake.restore_node("n4")
    assert SlurmScheduler(fake.environment).failed_nodes(["n3", "n4"]) == frozenset()


def test_accounts_lag_behind_and_forget(fake: FakeSlurm, script: Path) -> None:
    fake.accounts("on", lag_s=30)
    fake.always(Fate(run_s=60))
    job = submit(fake, script)
    assert accounted(fake, job).state is JobState.ABSENT
    fake.advance(70)
    assert queued(fake, job).state is JobState.COMPLETED
    assert accounted(fake, job).state is JobState.RUNNING
    fake.advance(30)
    assert accounted(fake, job).state is JobState.COMPLETED
    fake.forget(job, programs=["squeue"])
    assert queued(fake, job).state is JobState.ABSENT
    fake.forget(job)
    assert accounted(fake, job).state is JobState.ABSENT


@pytest.mark.parametrize("acts", [False, True])
def test_sbatch_may_take_a_job_and_say_otherwise(
    fake: FakeSlurm, script: Path, acts: bool
) -> None:
    fake.answers("sbatch", f"sbatch: error: Batch job submission failed: {TIMED_OUT}", acts=acts)
    with pytest.raises(SlurmFault) as caught:
        submit(fake, script)
    assert caught.value.perhaps_accepted
    assert len(SlurmScheduler(fake.environment).poll().jobs) == acts
    assert submit(fake, script)


def test_sbatch_may_take_a_job_and_say_nothing(
    fake: FakeSlurm, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.answers("sbatch", "", acts=True, hang_s=30)
    slow = SlurmScheduler(fake.environment, timeout_s=0.2)
    begin_when(monkeypatch, lambda: fake.living)
    with pytest.raises(SlurmFault) as caught:
        slow.submit(script, folder=script.parent)
    assert caught.value.error is SlurmError.CONTROLLER_DOWN
    assert len(fake.living) == 1


def test_any_program_may_fail_for_a_while(fake: FakeSlurm, script: Path) -> None:
    job = submit(fake, script)
    fake.answers("*", UNREACHABLE, times=2)
    for ask in (lambda: queued(fake, job), lambda: SlurmScheduler(fake.environment).cancel([job])):
        with pytest.raises(SlurmFault) as caught:
            ask()
        assert caught.value.error is SlurmError.CONTROLLER_DOWN
    assert queued(fake, job).state is JobState.RUNNING
    assert fake.living == [job]


def test_calls_are_counted_with_their_time(fake: FakeSlurm, script: Path) -> None:
    job = submit(fake, script)
    fake.advance(7)
    queued(fake, job)
    assert [(call.program, call.at) for call in fake.calls()] == [
        ("sbatch", BEGIN),
        ("squeue", BEGIN + 7),
    ]
    assert f"--jobs={job}" in fake.calls("squeue")[0].arguments
    assert fake.calls("sacct") == []


def test_jobs_of_others_are_left_alone(fake: FakeSlurm, script: Path) -> None:
    other, mine = fake.foreign_job("theirs"), fake.foreign_job("by hand", user=os.getuid())
    job = submit(fake, script)
    assert {one.number for one in SlurmScheduler(fake.environment).poll().jobs} == {mine, job}
    SlurmScheduler(fake.environment).cancel([job])
    assert queued(fake, job).state is JobState.CANCELLED
    assert replace(SlurmScheduler(fake.environment), user=4711).poll([other]).state_of(
        other
    ).state is (JobState.RUNNING)


def test_a_script_can_run_inside_of_sbatch(fake: FakeSlurm, script: Path) -> None:
    fake.next(Fate(run="now", run_s=60))
    job = submit(fake, script)
    assert (script.parent / "ran").read_text() == "ran\n"
    fake.advance(60)
    (record,) = SlurmScheduler(fake.environment).account([job], BEGIN)
    assert record.observed.state is JobState.FAILED
    assert record.elapsed_s == 60


def test_something_else_can_run_in_the_place_of_a_script(
    fake: FakeSlurm, script: Path, tmp_path: Path
) -> None:
    instead = "import os, sys; print(os.environ['SLURM_JOB_ID'], sys.argv[1])"
    fake.next(Fate(run="now", program=(sys.executable, "-c", instead)))
    job = submit(fake, script)
    assert (tmp_path / f"slurm-{job}.out").read_text().split() == [job, str(script)]


def test_a_script_in_the_background_ends_with_its_job(tmp_path: Path) -> None:
    file = tmp_path / "job.sh"
    file.write_text("#!/bin/sh\necho $$\nexec sleep 600\n")
    with FakeSlurm(tmp_path / "fake", fate=Fate("TIMEOUT", run_s=100, run="background")) as fake:
        job = submit(fake, file)
        output = tmp_path / f"slurm-{job}.out"
        while not (output.exists() and output.read_text()):
            assert queued(fake, job).state is JobState.RUNNING
        fake.advance(100)
        assert queued(fake, job).state is JobState.TIMED_OUT
    assert not psutil.pid_exists(int(output.read_text()))


def test_a_thousand_jobs(fake: FakeSlurm, script: Path) -> None:
    with fake.store.changing() as state:
        for number in range(1, 1001):
            state["jobs"][str(number)] = {**fake_job(script), "number": number}
    answer = SlurmScheduler(fake.environment).poll([str(number) for number in range(1, 1001)])
    assert len(answer.jobs) == 1000
    assert len(fake.calls("squeue")) == 1
    SlurmScheduler(fake.environment).cancel([str(number) for number in range(1, 1001)])
    assert fake.living == []


def fake_job(script: Path) -> dict[str, object]:
    return {
        "name": script.name,
        "user": os.getuid(),
        "node_count": 2,
        "submitted": BEGIN,
        "cancelled": None,
        "hidden": [],
        "attempts": [{"run_s": 1e6, "nodes": ["n1", "n2"]}],
    }
