"""Blocks as jobs, on the fake Slurm in its own time: states, troubles, other controllers."""

from __future__ import annotations

import gc
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path

import pytest
from fake_slurm.driver import BEGIN, UNREACHABLE, FakeSlurm, Fate
from made_files import write_script
from played_jobs import HEADER, Laboratory, block, collected, outcomes, play

from commtune.cluster.jobs.submission import job_name, key_in, new_key
from commtune.cluster.slurm.client import SlurmScheduler
from commtune.errors import EnvironmentFault
from commtune.model import JobKind, JobStage, Operation, Outcome
from commtune.tuner.ports import Batches, Records


def test_it_is_the_port(laboratory: Laboratory) -> None:
    assert isinstance(laboratory.jobs(), Batches)


def test_a_block_that_goes_well(laboratory: Laboratory) -> None:
    jobs = laboratory.jobs()
    jobs.submit(block(3), 60.0)
    assert jobs.in_flight == 1
    job = laboratory.job(3)
    assert (job.stage, job.number, job.kind) == (JobStage.SUBMITTED, "1001", JobKind.BLOCK)
    laboratory.fake.advance(10)
    play(laboratory.tracked(jobs, 3).folder, 2, laboratory.clock())
    results = jobs.collect()
    assert [r.outcome for r in results] == [Outcome.OK, Outcome.OK]
    assert results[0].nodes == ("n1", "n2")
    assert laboratory.job(3).stage is JobStage.SUBMITTED  # until its results are stored
    jobs.settled()
    assert laboratory.job(3).stage is JobStage.OVER
    assert jobs.in_flight == 0
    assert jobs.collect() == []


def test_a_script_that_ended_is_believed_before_slurm_says_so(laboratory: Laboratory) -> None:
    laboratory.fake.next(Fate(run_s=600))
    jobs = laboratory.jobs()
    jobs.submit(block(0), 60.0)
    laboratory.fake.advance(10)
    play(laboratory.tracked(jobs, 0).folder, 2, laboratory.clock())
    assert set(outcomes(jobs).values()) == {Outcome.OK}
    (queued,) = laboratory.queue.poll().jobs
    assert not queued.observed.state.is_over


def test_the_book_knows_a_job_before_slurm_does(laboratory: Laboratory) -> None:
    jobs = laboratory.jobs()
    jobs.submit(block(0), 60.0)
    prepared, submitted = laboratory.book.written[:2]
    assert (prepared.stage, prepared.number) == (JobStage.PREPARED, "")
    assert (submitted.stage, submitted.number) == (JobStage.SUBMITTED, "1001")
    queued = laboratory.queue.poll().jobs[0]
    assert key_in(queued.name) == prepared.key


def test_keys_are_found_in_names_and_nowhere_else() -> None:
    key = new_key()
    assert key_in(job_name("a campaign; $(odd) -0123456789abcdef", key)) == key
    assert key_in(job_name("x" * 300, key)) == key
    for name in (key, f"other-{key}", f"commtune-{key[:-1]}", f"commtune-a-{key}x", "commtune-"):
        assert key_in(name) == ""


@pytest.mark.parametrize(
    ("word", "outcome"),
    [
        ("NODE_FAIL", Outcome.NODE_FAILURE),
        ("BOOT_FAIL", Outcome.NODE_FAILURE),
        ("PREEMPTED", Outcome.PREEMPTED),
        ("OUT_OF_MEMORY", Outcome.OUT_OF_MEMORY),
        ("FAILED", Outcome.INTERRUPTED),
    ],
)
def test_states_that_end_a_job_under_its_first_run(
    laboratory: Laboratory, word: str, outcome: Outcome
) -> None:
    laboratory.fake.next(Fate(word, run_s=30))
    laboratory.program.usual = Records()
    laboratory.program.found["run-0-0"] = Records(HEADER)
    jobs = laboratory.jobs()
    jobs.submit(block(0), 60.0)
    found = outcomes(jobs)
    assert found["run-0-0"] is outcome
    assert not found["run-0-1"].blames_configuration
    assert word in laboratory.job(0).detail


def test_a_node_that_fails_twice_is_left_out_and_that_is_kept(tmp_path: Path) -> None:
    laboratory = Laboratory(FakeSlurm(tmp_path / "slurm", nodes=3), tmp_path)
    jobs = laboratory.jobs()
    for number in range(2):
        laboratory.fake.next(Fate(run_s=None))
        jobs.submit(block(number), 60.0)
        laboratory.fake.advance(5)
        laboratory.fake.fail_node("n1")
        assert set(outcomes(jobs).values()) == {Outcome.NODE_FAILURE}
        laboratory.fake.restore_node("n1")
    assert any("n1 failed in 2 jobs" in words for words in laboratory.said)
    for controller in (jobs, laboratory.jobs()):
        controller.submit(block(9), 60.0)
        script = laboratory.tracked(controller, 9).folder.script.read_text()
        assert "#SBATCH --exclude=n1\n" in script
        laboratory.book.known.clear()


@pytest.mark.parametrize(("number", "name"), [(0, "root"), (4_000_000_001, "user 4000000001")])
def test_somebody_else_cancels(laboratory: Laboratory, number: int, name: str) -> None:
    laboratory.fake.next(Fate("CANCELLED", run_s=20, cancelled_by=number))
    jobs = laboratory.jobs()
    jobs.submit(block(0), 60.0)
    assert set(outcomes(jobs).values()) == {Outcome.CANCELLED}
    with pytest.raises(EnvironmentFault, match=f"(?m)stops: job 1001: CANCELLED by {name}$"):
        jobs.submit(block(1), 60.0)
    assert len(laboratory.numbers()) == 1


def test_the_word_is_of_cancel_where_its_jobs_end_was_seen_first(laboratory: Laboratory) -> None:
    laboratory.fake.next(Fate("CANCELLED", run_s=20, cancelled_by=0))
    jobs = laboratory.jobs()
    jobs.submit(block(0), 60.0)
    collected(jobs)
    jobs.submitter.cancel_request.make()
    with pytest.raises(EnvironmentFault, match="stops: 'commtune cancel' ended it"):
        jobs.submit(block(1), 60.0)


@pytest.mark.parametrize(
    ("reason", "match"), [("BadConstraints", "will not start"), ("AssocGrpWallLimit", "used up")]
)
def test_a_job_that_can_never_start_is_taken_back(
    laboratory: Laboratory, reason: str, match: str
) -> None:
    laboratory.fake.next(Fate(wait_s=None, waits_for=reason))
    jobs = laboratory.jobs()
    jobs.submit(block(0), 60.0)
    with pytest.raises(EnvironmentFault, match=match):
        jobs.collect()
    (job,) = laboratory.queue.poll().jobs
    assert job.observed.state.is_over


def test_why_a_job_can_never_start_is_said_though_it_can_not_be_taken_back(
    laboratory: Laboratory,
) -> None:
    laboratory.fake.next(Fate(wait_s=None, waits_for="BadConstraints"))
    jobs = laboratory.jobs()
    jobs.submit(block(0), 60.0)
    said = "echo 'Unable to contact slurm controller'\nexit 1"
    scancel = write_script(laboratory.folder / "broken" / "scancel", said)
    environment = laboratory.fake.environment
    path = f"{scancel.parent}:{environment['PATH']}"
    jobs.stop_policy.scheduler = SlurmScheduler({**environment, "PATH": path})
    with pytest.raises(EnvironmentFault, match="will not start"):
        jobs.collect()


def test_a_held_job_is_waited_for_and_said_once(laboratory: Laboratory) -> None:
    laboratory.fake.next(Fate(wait_s=3600, waits_for="JobHeldUser", run_s=10))
    jobs = laboratory.jobs(file_poll_s=30.0)
    jobs.submit(block(0), 60.0)
    collected(jobs)
    held = [words for words in laboratory.said if "held" in words]
    assert held == ["job 1001 is held (JobHeldUser): 'scontrol release 1001'"]


def test_a_job_that_slurm_forgot_is_lost_and_not_finished(laboratory: Laboratory) -> None:
    laboratory.accounts = False
    laboratory.fake.next(Fate(run_s=None))
    jobs = laboratory.jobs()
    jobs.submit(block(0), 60.0)
    with laboratory.fake.store.changing() as state:
        state["jobs"].clear()
    (first, second) = collected(jobs)
    assert {first.outcome, second.outcome} == {Outcome.INTERRUPTED}
    assert "Slurm no longer knows job 1001" in first.detail


@pytest.mark.parametrize("accounts", [True, False])
def test_files_that_come_late_are_waited_for(laboratory: Laboratory, accounts: bool) -> None:
    """On a shared file system, Slurm's word can be quicker than the last file."""
    laboratory.accounts = accounts
    laboratory.fake.next(Fate(run_s=5))
    jobs = laboratory.jobs()
    jobs.submit(block(0), 60.0)
    folder, late_at = laboratory.tracked(jobs, 0).folder, laboratory.clock() + 40

    def late() -> None:
        if laboratory.clock() >= late_at and not folder.finished():
            play(folder, 2, laboratory.clock())

    laboratory.on_rest = late
    assert set(outcomes(jobs).values()) == {Outcome.OK}


@pytest.mark.parametrize("word", ["FAILED", "NODE_FAIL", "TIMEOUT", "PREEMPTED"])
def test_runs_that_ended_well_are_waited_for_whatever_the_end_of_their_job(
    laboratory: Laboratory, word: str
) -> None:
    laboratory.fake.next(Fate(word, run_s=5))
    jobs = laboratory.jobs()
    jobs.submit(block(0), 60.0)
    folder, late_at = laboratory.tracked(jobs, 0).folder, laboratory.clock() + 40
    laboratory.on_rest = lambda: (
        play(folder, 2, laboratory.clock())
        if laboratory.clock() >= late_at and not folder.finished()
        else None
    )
    assert set(outcomes(jobs).values()) == {Outcome.OK}


def test_record_files_that_come_late_are_waited_for(laboratory: Laboratory) -> None:
    jobs = laboratory.jobs()
    requests = block(0)
    jobs.submit(requests, 60.0)
    laboratory.late_records = {requests[1].run_id}
    play(laboratory.tracked(jobs, 0).folder, 2, laboratory.clock())
    seen_at = laboratory.clock() + 30
    laboratory.on_rest = lambda: (
        laboratory.late_records.clear() if laboratory.clock() >= seen_at else None
    )
    assert set(outcomes(jobs).values()) == {Outcome.OK}
    assert seen_at <= laboratory.clock() < seen_at + 15


def test_jobs_beyond_a_limit_are_asked_for_one_by_one(laboratory: Laboratory) -> None:
    """Slurm takes two at a time, of 40: each refusal counts for all that wait."""
    laboratory.fake.next(Fate(run_s=None), Fate(run_s=None))
    jobs = laboratory.jobs(in_flight=40)
    full = "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy\n"
    for number in range(40):
        if number == 2:
            laboratory.fake.answers("sbatch", full, times=1000)
        jobs.submit(block(number), 60.0)
    began = laboratory.clock()
    while laboratory.clock() < began + 180:
        jobs._poll()
    assert len(laboratory.fake.calls("sbatch")) - 2 <= 12


@pytest.mark.parametrize("word", ["COMPLETED", "SOMETHING_NEW"])
def test_a_job_without_its_last_file_is_not_taken_for_done(
    laboratory: Laboratory, word: str
) -> None:
    laboratory.fake.next(Fate(word, run_s=5))
    jobs = laboratory.jobs()
    jobs.submit(block(0), 60.0)
    assert set(outcomes(jobs).values()) == {Outcome.INTERRUPTED}


def test_troubles_of_squeue_are_waited_out_and_told_once(laboratory: Laboratory) -> None:
    laboratory.fake.next(Fate(run_s=5))
    jobs = laboratory.jobs()
    jobs.submit(block(0), 60.0)
    laboratory.fake.answers("squeue", UNREACHABLE, times=5)
    laboratory.program.usual = Records(HEADER)
    collected(jobs)
    assert sum("asking again" in words for words in laboratory.said) == 1
    assert laboratory.said[-1] == "Slurm answers again"


def test_jobs_that_wait_too_long_are_said_and_given_up(laboratory: Laboratory) -> None:
    laboratory.pending_s = 1800
    for reason in ("Priority", "Licenses"):
        laboratory.fake.next(Fate(wait_s=None, waits_for=reason))
    jobs = laboratory.jobs()
    jobs.submit(block(0), 60.0)
    jobs.submit(block(1), 60.0)
    with pytest.raises(
        EnvironmentFault, match=r"no job started within .*1001 is pending, Priority"
    ):
        jobs.collect()
    said = [words for words in laboratory.said if words.startswith("waiting for ")]
    assert 2 <= len(said) <= 4 and "job 1001 is pending, Priority" in said[0]
    assert all(words.endswith(", and 1 more") for words in said)
    assert all(job.observed.state.is_over for job in laboratory.queue.poll().jobs)


def test_that_jobs_wait_too_long_is_said_though_they_can_not_be_taken_back(
    laboratory: Laboratory,
) -> None:
    laboratory.pending_s = 60
    laboratory.fake.next(Fate(wait_s=None, waits_for="Priority"))
    jobs = laboratory.jobs()
    jobs.submit(block(0), 60.0)
    laboratory.fake.answers("scancel", UNREACHABLE)
    with pytest.raises(EnvironmentFault, match=r"no job started within .*'pending_time'"):
        jobs.collect()
    assert "stay in the queue until 'commtune cancel': scancel: " in laboratory.said[-1]


def test_sbatch_that_errs_for_a_while(laboratory: Laboratory) -> None:
    laboratory.fake.answers("sbatch", UNREACHABLE, times=4)
    jobs = laboratory.jobs()
    jobs.submit(block(0), 60.0)
    jobs.submit(block(1), 60.0)
    assert laboratory.numbers() == []
    collected(jobs)
    assert len(laboratory.numbers()) == 2
    assert sum("trying again" in words for words in laboratory.said) == 1
    assert "Slurm accepts jobs again" in laboratory.said


def test_sbatch_that_takes_a_job_and_says_it_did_not(laboratory: Laboratory) -> None:
    message = (
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n"
    )
    laboratory.fake.answers("sbatch", message, acts=True)
    jobs = laboratory.jobs()
    jobs.submit(block(0), 60.0)
    assert laboratory.job(0).number == ""
    collected(jobs)
    assert laboratory.job(0).number == "1001"
    assert laboratory.numbers() == ["1001"]


def test_of_two_jobs_with_one_script_the_one_that_measures_is_watched(
    laboratory: Laboratory,
) -> None:
    """sbatch gave up, the job was handed in again, and then Slurm took the first one as well."""
    laboratory.fake.next(Fate(run_s=5), Fate(run_s=300))
    jobs = laboratory.jobs()
    jobs.submit(block(0), 60.0)
    flight = laboratory.tracked(jobs, 0)
    submission = laboratory.jobs().submitter.scheduler
    other = submission.submit(flight.folder.script, folder=flight.folder.path)
    (flight.folder.path / "started").mkdir()
    (flight.folder.path / "nodes").write_text(f"SLURM_JOB_ID={other}\n")

    def played() -> None:
        if laboratory.clock() > BEGIN + 300 and not flight.folder.finished():
            play(flight.folder, 2, laboratory.clock())

    laboratory.on_rest = played
    assert set(outcomes(jobs).values()) == {Outcome.OK}
    assert laboratory.job(0).number == other != "1001"


def test_what_slurm_will_never_take_ends_the_campaign(laboratory: Laboratory) -> None:
    message = "sbatch: error: Batch job submission failed: Invalid account or account/partition"
    laboratory.fake.answers("sbatch", f"{message} combination specified\n")
    jobs = laboratory.jobs()
    with pytest.raises(EnvironmentFault, match="Invalid account") as error:
        jobs.submit(block(0), 60.0)
    assert "slurm:" in error.value.hint


@pytest.mark.slow
def test_a_hundred_jobs(laboratory: Laboratory) -> None:
    """One question to squeue in a polling interval at most, and memory that does not grow."""
    laboratory.fake.always(Fate(wait_s=20, run_s=90))
    jobs = laboratory.jobs(in_flight=20, file_poll_s=5.0)
    due: dict[int, float] = {}

    def played() -> None:
        """Two of three scripts come to their end; Slurm has to tell of the others."""
        now = laboratory.clock()
        for flight in list(jobs._tracked.values()):
            number = flight.job.block or 0
            if now >= due.setdefault(number, now + 110) and number % 3:
                play(flight.folder, 2, now)

    laboratory.on_rest = played
    objects: list[int] = []
    landed, submitted = 0, count()
    while landed < 100:
        while jobs.in_flight < jobs.most_in_flight:
            jobs.submit(block(next(submitted)), 60.0)
        landed += len(jobs.collect()) // 2
        jobs.settled()
        _forget(laboratory, due)
        if landed // 25 > len(objects):
            gc.collect()
            objects.append(len(gc.get_objects()))
    asked = [call.at for call in laboratory.fake.calls("squeue")]
    shortest_s = 0.8 * jobs.monitor.backoff.shortest_s
    assert len(asked) > 50
    assert min(later - earlier for earlier, later in pairwise(asked)) >= shortest_s - 1e-6
    assert len(laboratory.fake.calls("sbatch")) == next(submitted)
    assert objects[-1] - objects[1] < 50, objects  # less than one for each job


def _forget(laboratory: Laboratory, due: dict[int, float]) -> None:
    """What the test itself, and Slurm, would remember of jobs that are over."""
    for job in [j for j in laboratory.book.known.values() if j.stage is JobStage.OVER]:
        del laboratory.book.known[job.key]
        due.pop(job.block or 0, None)
    laboratory.book.written.clear()
    laboratory.slept.clear()
    laboratory.forget_old_jobs(600)


def test_a_job_of_runs_of_several_operations_gets_the_time_of_so_many(
    laboratory: Laboratory,
) -> None:
    jobs = laboratory.jobs()
    jobs.submit(block(0), 60.0)
    # Nothing is known yet: each of two runs may take its minute, and there is one for the rest.
    assert "#SBATCH --time=0-00:03:00\n" in laboratory.tracked(jobs, 0).folder.script.read_text()
    laboratory.fake.advance(10)
    play(laboratory.tracked(jobs, 0).folder, 2, laboratory.clock(), run_s=30.0)
    collected(jobs)
    one, several = block(1), block(2)
    later = replace(one[0].workload, then=(Operation.BROADCAST, Operation.ALLTOALL))
    jobs.submit(one, 100.0)
    jobs.submit([replace(request, workload=later) for request in several], 300.0)
    flights = [laboratory.tracked(jobs, number) for number in (1, 2)]
    assert [flight.expected_s for flight in flights] == [2 * 30.0, 2 * 3 * 30.0]
    # 2 * 65 + 2 * 100 + 60 seconds: twice what others took, one that hangs, and around; then
    # 2 * 185 + 2 * 300 + 60.
    for flight, asked in zip(flights, ("0-00:07:00", "0-00:18:00"), strict=True):
        assert f"#SBATCH --time={asked}\n" in flight.folder.script.read_text()
