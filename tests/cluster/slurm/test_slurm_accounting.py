"""Reading sacct, and node-hours by hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from accounts import state_in_accounts
from hypothesis import given
from hypothesis import strategies as st
from made_files import write_script

from commtune.cluster.job_states import JobState, ObservedState
from commtune.cluster.placement import expand_readable_hosts
from commtune.cluster.scheduler import AccountedJob, sum_node_hours
from commtune.cluster.slurm.client import SlurmScheduler
from commtune.cluster.slurm.command_output import FIELD, read_accounts
from commtune.cluster.slurm.faults import SlurmError, SlurmFault


def line(number: str, state: str, **more: str) -> str:
    """One record as sacct prints it."""
    values = {
        "reason": "None",
        "start": "Unknown",
        "end": "Unknown",
        "elapsed": "0",
        "nodes": "0",
        "list": "None assigned",
        "name": "j",
        **more,
    }
    keys = ("reason", "start", "end", "elapsed", "nodes", "list", "name")
    return FIELD.join([number, state, *(values[key] for key in keys)]) + "\n"


RAN = {"start": "1000", "end": "1090", "elapsed": "90", "nodes": "2", "list": "n[1-2]"}


def test_fields_of_a_job() -> None:
    (job,) = read_accounts(line("7", "CANCELLED by 0", name="a\x1fb", **RAN))
    assert job.observed.state is JobState.CANCELLED
    assert (job.observed.cancelled_by, job.observed.started_at) == (0, 1000)
    assert (job.elapsed_s, job.node_count, job.node_list) == (90, 2, "n[1-2]")
    assert (job.ended_at, job.name) == (1090, "a\x1fb")


def test_a_job_that_never_ran() -> None:
    (job,) = read_accounts(line("7", "PENDING", elapsed="Unknown"))
    assert (job.elapsed_s, job.node_count, job.ended_at) == (0, 0, None)
    assert not expand_readable_hosts(job.node_list)
    assert job.node_hours == 0
    assert sum_node_hours([job]) == 0


def test_why_a_job_waits_is_told_by_the_accounts_too() -> None:
    (waits, held) = read_accounts(
        line("7", "PENDING") + line("8", "PENDING", reason="JobHeldUser")
    )
    assert (waits.observed.state, waits.observed.reason) == (JobState.PENDING, "")
    assert (held.observed.state, held.observed.reason) == (JobState.NEVER_STARTED, "JobHeldUser")


def test_lines_that_are_no_records_are_passed_over() -> None:
    text = "sacct: error: something\n" + line("7_[3-5]", "PENDING") + line("7", "COMPLETED")
    assert [job.number for job in read_accounts(text)] == ["7"]


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert state_in_accounts(read_accounts(text), "7").state in JobState


@given(st.lists(st.text(alphabet="7_+:[]-n\u0663"), min_size=10, max_size=10))
def test_any_fields_can_be_read(fields: list[str]) -> None:
    for job in read_accounts(FIELD.join(["7", *fields[1:]]) + "\n"):
        assert expand_readable_hosts(job.node_list) is not None
        assert sum_node_hours([job]) >= 0


def test_attempts_of_a_job_that_was_put_back() -> None:
    first = {**RAN, "start": "1000", "end": "1060", "elapsed": "60"}
    jobs = read_accounts(
        line("7", "NODE_FAIL", **first)
        + line("7", "COMPLETED", **RAN | {"start": "2000", "end": "2090"})
    )
    seen = state_in_accounts(jobs, "7")
    assert (seen.state, seen.started_at) == (JobState.COMPLETED, 2000)
    assert sum_node_hours(jobs) == pytest.approx(2 * (60 + 90) / 3600)


def test_an_absent_job_is_not_finished() -> None:
    assert state_in_accounts(read_accounts(line("7", "COMPLETED")), "8").state is JobState.ABSENT


def attempt(number: str, started_at: float | None, nodes: int, elapsed_s: int) -> AccountedJob:
    state = ObservedState(JobState.COMPLETED, started_at=started_at)
    return AccountedJob(number, state, nodes, "", None, "j", elapsed_s)


def test_an_attempt_counts_once_however_often_it_is_seen() -> None:
    looks = [attempt("7", 1000.0, 2, seconds) for seconds in (10, 3600, 1800)]
    assert sum_node_hours(looks) == pytest.approx(2.0)
    assert sum_node_hours([*looks, attempt("7", 9000.0, 2, 1800)]) == pytest.approx(3.0)
    assert sum_node_hours([attempt("7", None, 2, 1800)]) == 0
    assert sum_node_hours([]) == 0


attempts = st.builds(
    attempt,
    st.sampled_from("78"),
    st.sampled_from([1.0, 2.0]),
    st.integers(1, 4),
    st.integers(0, 10**6),
)


@given(st.lists(attempts), st.randoms(use_true_random=False))
def test_order_and_repetition_do_not_matter(seen: list[AccountedJob], chance: object) -> None:
    shuffled = seen * 2
    chance.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis types it as Random
    assert sum_node_hours(shuffled) == pytest.approx(sum_node_hours(seen))


def sacct(folder: Path, text: str) -> SlurmScheduler:
    """Asks a sacct that does this."""
    write_script(folder / "sacct", text)
    return SlurmScheduler({"PATH": f"{folder}:{os.environ['PATH']}"})


@pytest.mark.parametrize(
    ("says", "kept"),
    [
        ("exit 0", True),
        ("echo Slurm accounting storage is disabled >&2; exit 1", False),
        ("echo sacct: error: Problem talking to the database: refused >&2; exit 1", True),
        (
            "echo sacct: error: Problem talking to the database: Access/permission denied; exit 1",
            False,
        ),
    ],
)
def test_whether_accounts_are_kept(tmp_path: Path, says: str, kept: bool) -> None:
    assert sacct(tmp_path, says).has_accounts() is kept


def test_no_sacct_no_accounts(tmp_path: Path) -> None:
    assert not SlurmScheduler({"PATH": str(tmp_path)}).has_accounts()


@pytest.mark.parametrize(
    "says",
    [
        "echo sacct: error: Sending PersistInit msg: Connection refused >&2; exit 1\n",
        # As sacct 22.05.8 ends where it doesn't find slurmdbd's machine.
        "echo sacct: error: DBD_GET_JOBS_COND failure: Unspecified error >&2\n",
    ],
)
def test_accounts_that_do_not_answer_are_no_answer(tmp_path: Path, says: str) -> None:
    with pytest.raises(SlurmFault) as caught:
        sacct(tmp_path, says).account(["7"], 1e9)
    assert caught.value.error is SlurmError.ACCOUNTING_DOWN
