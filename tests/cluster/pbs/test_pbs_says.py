"""What a real PBS printed (``recorded/``), and what it means."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from components import require_component
from made_files import write_script

from commtune.cluster.job_states import JobState, PendingReason
from commtune.cluster.pbs.client import PbsFault, PbsScheduler
from commtune.cluster.pbs.command_output import (
    FIELD,
    read_allocation,
    read_failed_nodes,
    read_jobs,
)
from commtune.cluster.scheduler import QueuedJob
from commtune.errors import MissingComponent, UserError

RECORDED = Path(__file__).parent / "recorded"
KEY = "commtune-small-0123456789abcdef"
#: A number that no directory of users gives away.
_NAMELESS = 2**31 - 7


def _said(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text()


def _job(name: str) -> QueuedJob:
    (job,), complete = read_jobs(_said(name))
    assert complete
    assert job.name == KEY
    return job


@pytest.mark.parametrize(
    ("name", "state", "reason"),
    [
        ("completed", JobState.COMPLETED, "finished"),
        ("failed", JobState.FAILED, "failed"),
        ("timed-out", JobState.TIMED_OUT, "exceeded resource walltime"),
        ("lost-its-node", JobState.NODE_FAILURE, "exit status -20"),
        ("running", JobState.RUNNING, None),
        ("held", JobState.NEVER_STARTED, "Hold_Types=u"),
        ("waits-for-another", JobState.PENDING, ""),
        ("can-never-run", JobState.NEVER_STARTED, None),
        ("its-turn", JobState.PENDING, None),
        ("deleted-before-it-ran", JobState.CANCELLED, None),
    ],
)
def test_a_jobs_state(name: str, state: JobState, reason: str | None) -> None:
    observed = _job(name).observed
    assert observed.state is state
    assert reason is None or observed.reason == reason


def test_who_deleted_a_job_is_said() -> None:
    observed = _job("deleted").observed
    assert observed.state is JobState.CANCELLED
    assert observed.reason.startswith("terminated by root@")


def test_why_a_job_waits() -> None:
    kinds = {
        name: _job(name).observed.pending
        for name in ("held", "waits-for-another", "can-never-run", "its-turn")
    }
    assert kinds == {
        "held": PendingReason.HELD,
        "waits-for-another": PendingReason.TURN,
        "can-never-run": PendingReason.IMPOSSIBLE,
        "its-turn": PendingReason.TURN,
    }
    assert "Can Never Run: " in _job("can-never-run").observed.reason


def test_the_allocation_that_we_run_in() -> None:
    found = read_allocation(_said("running"))
    assert found is not None
    assert (found.number, found.nodes) == ("10", ("n2",))
    assert found.ends_at == found.began_at + 60
    assert read_allocation(_said("held")) is None


def test_nodes_and_times_of_a_job_that_is_over() -> None:
    job = _job("completed")
    assert job.node_count == 2
    assert len(set(job.node_list.split(","))) == 2
    assert job.observed.started_at and job.ended_at
    assert 2 <= job.ended_at - job.observed.started_at <= 20
    early = _job("deleted-before-it-ran")
    assert early.observed.started_at is None
    assert (early.node_list, early.node_count) == ("", 1)


def test_an_older_server_tells_only_how_long_a_job_ran() -> None:
    text = FIELD.join(f for f in _said("completed").split(FIELD) if "obittime" not in f)
    (job,), _ = read_jobs(text)
    assert job.observed.started_at and job.ended_at
    assert 0 <= job.ended_at - job.observed.started_at <= 20


def test_what_is_cut_off_or_unknown_is_no_end() -> None:
    text = _said("completed")
    jobs, complete = read_jobs(text + "Job Id: 99.server" + FIELD + "Job_Name=x\n")
    assert len(jobs) == 1
    assert not complete
    (job,), _ = read_jobs(text.replace("job_state=F", "job_state=?"))
    assert job.observed.state is JobState.UNKNOWN


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (-1, JobState.PREEMPTED),
        (-12, JobState.PREEMPTED),
        (-27, JobState.OUT_OF_MEMORY),
        (-30, JobState.NODE_FAILURE),
        (265, JobState.FAILED),
    ],
)
def test_an_exit_status_that_is_not_recorded(status: int, state: JobState) -> None:
    text = _said("completed").replace("Exit_status=0", f"Exit_status={status}")
    (job,), _ = read_jobs(text)
    assert job.observed.state is state


def test_a_node_that_is_down() -> None:
    said = _said("nodes")  # n1 is down, n2 has a job, n3 is free
    assert read_failed_nodes(said) == {"n1"}
    assert read_failed_nodes(said.replace("state = down", "state = free")) == frozenset()
    assert read_failed_nodes(said.replace("state = free", "state = offline")) == {"n1", "n3"}


def _pbs_that_says(folder: Path, program: str, text: str, code: int) -> PbsScheduler:
    """PBS's program in the words of a recording."""
    (folder / "said").write_text(text)
    write_script(folder / program, f"cat '{folder}/said'\nexit {code}")
    return PbsScheduler({"PATH": f"{folder}:{os.environ['PATH']}"}, user="tuner")


@pytest.mark.parametrize(
    ("name", "transient", "is_full", "perhaps"),
    [
        ("unknown-queue", False, False, False),
        ("bad-walltime", False, False, False),
        ("unknown-resource", False, False, False),
        ("bad-place", False, False, False),
        ("bad-option", False, False, False),
        ("too-long", False, False, False),
        ("full", True, True, False),
        ("closed", True, False, False),
        ("down", True, False, False),
    ],
)
def test_why_qsub_gave_no_number(
    tmp_path: Path, name: str, transient: bool, is_full: bool, perhaps: bool
) -> None:
    scheduler = _pbs_that_says(tmp_path, "qsub", _said(f"qsub/{name}"), 1)
    with pytest.raises(PbsFault) as caught:
        scheduler.submit(tmp_path / "script.sh", folder=tmp_path)
    fault = caught.value
    assert (fault.transient, fault.is_full, fault.perhaps_accepted) == (
        transient, is_full, perhaps,
    )  # fmt: skip
    assert fault.hint and fault.notice


def _poll_without_a_name() -> tuple[str, bool]:
    os.setuid(_NAMELESS)
    with pytest.raises(PbsFault) as caught:
        PbsScheduler().poll()
    return caught.value.message, caught.value.transient


def test_a_user_whose_name_is_unknown_for_a_while() -> None:
    require_component("root, who may become any user", os.geteuid() == 0)
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as other:
        said = other.submit(_poll_without_a_name).result(60)
    assert said == (f"user number {_NAMELESS} has no name here", True)


def test_an_answer_that_is_lost_may_be_a_job(tmp_path: Path) -> None:
    scheduler = _pbs_that_says(tmp_path, "qsub", "qsub: End of File\n", 1)
    with pytest.raises(PbsFault) as caught:
        scheduler.submit(tmp_path / "script.sh", folder=tmp_path)
    assert caught.value.perhaps_accepted
    assert caught.value.transient


def test_a_part_of_an_answer_counts_where_one_of_several_jobs_is_gone(tmp_path: Path) -> None:
    text = _said("running") + "qstat: Unknown Job Id 99.server\n"
    scheduler = _pbs_that_says(tmp_path, "qstat", text, 153)
    number = _job("running").number
    answer = scheduler.poll([number, "99"])
    assert answer.complete
    assert answer.state_of(number).state is JobState.RUNNING
    assert answer.state_of("99").state is JobState.ABSENT


def test_the_site(tmp_path: Path) -> None:
    site = _pbs_that_says(tmp_path, "qstat", _said("server"), 0).describe_site()
    assert site.version == "23.06.06"
    assert site.remembers
    assert not site.keeps_accounts
    forgets = _said("server").replace("job_history_enable=True", "job_history_enable=False")
    assert not _pbs_that_says(tmp_path, "qstat", forgets, 0).describe_site().remembers


def test_without_pbs(tmp_path: Path) -> None:
    with pytest.raises(MissingComponent):
        PbsScheduler({"PATH": str(tmp_path)}).poll(["1"])


@pytest.mark.parametrize("wrong", ["", "x", "1 2", "-1", "all", "--me", "1[", "1.a b"])
def test_what_is_no_job_id_is_refused_before_anything_is_asked(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(UserError):
        PbsScheduler({"PATH": str(tmp_path)}).cancel(["1", wrong])
