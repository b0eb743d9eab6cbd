"""Reading sacct, and node-hours by hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commtune.cluster.slurm.accounting import (
    Accounting,
    Use,
    last_attempts,
    node_hours,
    read_accounts,
    sighting_in,
    use_in_accounts,
    use_in_queue,
)
from commtune.cluster.slurm.queries import FIELD, RECORD, SlurmError, SlurmFault, read_queue
from commtune.cluster.slurm.states import JobState


def line(id_: str, state: str, **more: str) -> str:
    """One record as sacct prints it."""
    values = {
        "number": id_.split("_")[0],
        "reason": "None",
        "exit": "0:0",
        "start": "Unknown",
        "end": "Unknown",
        "elapsed": "0",
        "nodes": "0",
        "list": "None assigned",
        "name": "j",
        **more,
    }
    keys = ("number", "reason", "exit", "start", "end", "elapsed", "nodes", "list")
    fields = [id_, *(values[key] for key in keys), "root", values["name"]]
    fields.insert(2, state)
    return FIELD.join(fields) + "\n"


RAN = {"start": "1000", "end": "1090", "elapsed": "90", "nodes": "2", "list": "n[1-2]"}


def test_fields_of_a_job() -> None:
    (job,) = read_accounts(line("7", "CANCELLED by 0", exit="1:9", name="a\x1fb", **RAN))
    assert job.sighting.state is JobState.CANCELLED
    assert (job.sighting.cancelled_by, job.sighting.started_at) == (0, 1000)
    assert (job.exit_code, job.signal) == (1, 9)
    assert (job.elapsed_s, job.node_count, job.nodes) == (90, 2, ("n1", "n2"))
    assert (job.ended_at, job.name, job.leader) == (1090, "a\x1fb", "7")


def test_a_job_that_never_ran() -> None:
    (job,) = read_accounts(line("7", "PENDING"))
    assert (job.node_count, job.nodes, job.ended_at) == (0, (), None)
    assert use_in_accounts(job) is None


def test_lines_that_are_no_records_are_passed_over() -> None:
    text = "sacct: error: something\n" + line("7_[3-5]", "PENDING") + line("7_1", "COMPLETED")
    assert [job.id for job in read_accounts(text)] == ["7_1"]


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert sighting_in(read_accounts(text), "7").state in JobState


@given(st.lists(st.text(alphabet="7_+:[]-n\u0663"), min_size=12, max_size=12))
def test_any_fields_can_be_read(fields: list[str]) -> None:
    for job in read_accounts(FIELD.join(["7", *fields[1:]]) + "\n"):
        assert job.nodes is not None
        assert node_hours([use_in_accounts(job)]) >= 0


def test_attempts_of_a_job_that_was_put_back() -> None:
    first = {**RAN, "start": "1000", "end": "1060", "elapsed": "60"}
    jobs = read_accounts(
        line("7", "NODE_FAIL", **first)
        + line("7", "COMPLETED", **RAN | {"start": "2000", "end": "2090"})
    )
    assert last_attempts(jobs)["7"].sighting.state is JobState.COMPLETED
    seen = sighting_in(jobs, "7")
    assert (seen.state, seen.attempt, seen.started_at) == (JobState.COMPLETED, 2, 2000)
    assert node_hours(map(use_in_accounts, jobs)) == pytest.approx(2 * (60 + 90) / 3600)


def test_an_absent_job_is_not_finished() -> None:
    assert sighting_in(read_accounts(line("7", "COMPLETED")), "8").state is JobState.ABSENT


def queued(state: str, start: str, end: str, listed: str = "n[1-2]") -> str:
    fields = ["7", "7", state, "None", start, end, "2", listed, "root", "j", ""]
    return RECORD + FIELD.join(fields) + FIELD + "\n"


def test_node_hours_without_accounts() -> None:
    (running,) = read_queue(queued("RUNNING", "1000", "9000")).jobs
    assert node_hours([use_in_queue(running, 2800)]) == pytest.approx(1.0)
    (ended,) = read_queue(queued("TIMEOUT", "1000", "2800")).jobs
    assert node_hours([use_in_queue(ended, 99_000)]) == pytest.approx(1.0)
    (waiting,) = read_queue(queued("PENDING", "1000", "9000", "")).jobs
    assert use_in_queue(waiting, 2800) is None
    assert node_hours([use_in_queue(running, 10)]) == 0, "clocks differ: never less than nothing"


def test_an_attempt_counts_once_however_often_it_is_seen() -> None:
    looks = [Use("7", 1000.0, 2, seconds, "queue") for seconds in (10.0, 3600.0, 1800.0)]
    assert node_hours(looks) == pytest.approx(2.0)
    assert node_hours([*looks, Use("7", 1000.0, 2, 1800.0, "accounts")]) == pytest.approx(1.0)
    assert node_hours([*looks, Use("7", 9000.0, 2, 1800.0, "queue")]) == pytest.approx(3.0)
    assert node_hours([None]) == 0


uses = st.builds(
    Use,
    st.sampled_from("78"),
    st.sampled_from([1.0, 2.0]),
    st.integers(1, 4),
    st.floats(0, 1e6),
    st.sampled_from(["accounts", "queue"]),
)


@given(st.lists(uses), st.randoms(use_true_random=False))
def test_order_and_repetition_do_not_matter(seen: list[Use], chance: object) -> None:
    shuffled = seen * 2
    chance.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis types it as Random
    assert node_hours(shuffled) == pytest.approx(node_hours(seen))


def sacct(folder: Path, text: str) -> str:
    file = folder / "sacct"
    file.write_text("#!/bin/sh\n" + text)
    file.chmod(0o755)
    return str(file)


@pytest.mark.parametrize(
    ("says", "kept"),
    [
        ("exit 0", True),
        ("echo Slurm accounting storage is disabled >&2; exit 1", False),
        ("echo sacct: error: Problem talking to the database: refused >&2; exit 1", True),
    ],
)
def test_whether_accounts_are_kept(tmp_path: Path, says: str, kept: bool) -> None:
    accounting = Accounting({"PATH": os.environ["PATH"]}, sacct=sacct(tmp_path, says + "\n"))
    assert accounting.is_kept() is kept


def test_no_sacct_no_accounts(tmp_path: Path) -> None:
    assert not Accounting({}, sacct=str(tmp_path / "nothing")).is_kept()


def test_accounts_that_do_not_answer_are_no_answer(tmp_path: Path) -> None:
    says = "echo sacct: error: Sending PersistInit msg: Connection refused >&2; exit 1\n"
    with pytest.raises(SlurmFault) as caught:
        Accounting({"PATH": os.environ["PATH"]}, sacct=sacct(tmp_path, says)).look(["7"], 1e9)
    assert caught.value.trouble is SlurmError.ACCOUNTING_DOWN
