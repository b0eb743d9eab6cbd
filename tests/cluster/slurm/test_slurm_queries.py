"""Reading squeue and sinfo, what their messages mean, and how long to wait between two looks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_files import write_script

from commtune.cluster.job_states import JobState
from commtune.cluster.scheduler import PollBackoff, QueueSnapshot
from commtune.cluster.slurm.client import SlurmScheduler, _asking_environment, _id_lists
from commtune.cluster.slurm.command_output import FIELD, RECORD, read_failed_nodes, read_queue
from commtune.cluster.slurm.faults import SlurmError, SlurmFault, classify_error
from commtune.errors import MissingComponent, UserError

RECORDED = Path(__file__).parent / "recorded"
BIN = {"PATH": os.environ["PATH"]}


def record(number: str, state: str, *, reason: str = "None", **more: str) -> str:
    """One record as squeue prints it."""
    values = {"start": "N/A", "end": "N/A", "nodes": "1", "list": "", "name": "j"}
    values |= more
    ordered = [values[key] for key in ("start", "end", "nodes", "list")]
    fields = [number, state, reason, *ordered, values["name"]]
    return RECORD + FIELD.join(fields) + FIELD + "\n"


def test_fields_of_a_job() -> None:
    text = record(
        "7", "RUNNING", start="1700000000", end="1700003600", nodes="2", list="n[1-2]", name="a|b"
    )
    (job,) = read_queue(text).jobs
    assert (job.number, job.node_count) == ("7", 2)
    assert (job.node_list, job.name) == ("n[1-2]", "a|b")
    assert job.observed.started_at == 1700000000
    assert job.ended_at is None, "squeue shows when it must end at the latest"


def test_the_start_of_a_waiting_job_is_a_guess_and_left_out() -> None:
    (job,) = read_queue(record("7", "PENDING", reason="Priority", start="1700000000")).jobs
    assert job.observed.started_at is None
    assert job.observed.reason == "Priority"


def test_a_held_job_does_not_start_by_itself() -> None:
    answer = read_queue(record("7", "PENDING", reason="JobHeldUser"))
    assert answer.state_of("7").state is JobState.NEVER_STARTED


def test_a_job_that_is_not_named_is_absent_only_if_all_was_read() -> None:
    good = record("7", "RUNNING")
    assert read_queue(good).state_of("8").state is JobState.ABSENT
    torn = read_queue(good + RECORD + "8" + FIELD + "RUNN")
    assert not torn.complete
    assert torn.state_of("8").state is JobState.UNKNOWN
    assert torn.state_of("7").state is JobState.RUNNING


def test_warnings_and_headings_are_passed_over() -> None:
    text = "CLUSTER: one\n" + record("7", "R") + "squeue: error: a warning\n" + record("8", "PD")
    answer = read_queue(text)
    assert [job.number for job in answer.jobs] == ["7", "8"]
    assert answer.complete


@pytest.mark.parametrize("name", ['x"; $(y)\n|z', "one" + FIELD + "two"])
def test_any_text_in_a_name_is_kept_from_the_other_fields(name: str) -> None:
    (job,) = read_queue(record("7", "R", name=name)).jobs
    assert job.name == name


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    answer = read_queue(text)
    assert answer.complete or RECORD in text
    assert answer.state_of("7") is not None
    read_failed_nodes(text.replace("[", "")) if RECORD not in text else None


@given(st.text(alphabet=f"{RECORD}{FIELD}7_+R\n[]"))
def test_any_text_with_separators_can_be_read(text: str) -> None:
    answer = read_queue(text)
    assert len(answer.jobs) <= text.count(RECORD)
    assert answer.complete == (len(answer.jobs) == text.count(RECORD))


@pytest.mark.parametrize(
    ("message", "trouble"),
    [
        ("slurm_load_jobs error: Invalid job id specified", SlurmError.NO_SUCH_JOB),
        (
            "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
            SlurmError.CONTROLLER_DOWN,
        ),
        (
            "slurm_load_jobs error: Socket timed out on send/recv operation",
            SlurmError.CONTROLLER_DOWN,
        ),
        (
            "slurm_load_jobs error: Slurm backup controller in standby mode",
            SlurmError.CONTROLLER_DOWN,
        ),
        ("slurm_load_jobs error: Access/permission denied", SlurmError.NOT_PERMITTED),
        ("slurm_load_jobs error: Protocol authentication error", SlurmError.AUTHENTICATION),
        (
            "squeue: error: If munged is up, restart with --num-threads=10",
            SlurmError.AUTHENTICATION,
        ),
        (
            "slurm_load_jobs error: Incompatible versions of client and server code",
            SlurmError.NOT_UNDERSTOOD,
        ),
        ("squeue: unrecognized option '--nonsense'", SlurmError.NOT_UNDERSTOOD),
        ("Slurm accounting storage is disabled", SlurmError.ACCOUNTING_OFF),
        (
            "sacct: error: Problem talking to the database: Connection refused",
            SlurmError.ACCOUNTING_DOWN,
        ),
        ("Segmentation fault", SlurmError.OTHER),
        ("", SlurmError.OTHER),
    ],
)
def test_messages(message: str, trouble: SlurmError) -> None:
    assert classify_error(message) is trouble


def test_what_may_pass_and_what_does_not() -> None:
    faults = [SlurmFault("m", trouble) for trouble in SlurmError]
    assert all(fault.hint for fault in faults)
    lasting = {fault.error for fault in faults if not fault.transient}
    assert lasting == {
        SlurmError.NO_SUCH_JOB,
        SlurmError.NOT_PERMITTED,
        SlurmError.NOT_UNDERSTOOD,
        SlurmError.ACCOUNTING_OFF,
        SlurmError.REFUSED,
    }


def test_settings_of_the_user_are_left_out() -> None:
    given_ = {
        "PATH": "/bin",
        "SLURM_CONF": "/c",
        "SQUEUE_FORMAT": "%i",
        "SQUEUE_STATES": "PD",
        "SACCT_FORMAT": "x",
        "SLURM_CLUSTERS": "other",
        "LC_ALL": "de_DE",
    }
    assert _asking_environment(given_) == {
        "PATH": "/bin",
        "SLURM_CONF": "/c",
        "LC_ALL": "C",
        "SLURM_TIME_FORMAT": "%s",
    }


def test_ids_are_asked_for_once_and_in_lists_that_fit() -> None:
    assert list(_id_lists(["10", "9", "10"])) == ["9,10"]
    assert list(_id_lists([])) == []
    lists = list(_id_lists(map(str, range(1_000_000, 1_050_000))))
    assert all(len(ids) < 131_072 for ids in lists)
    assert sum(len(ids.split(",")) for ids in lists) == 50_000
    assert len(list(_id_lists(map(str, range(1000))))) == 1


@pytest.mark.parametrize("text", ["", "x", "0", "7;rm", "7_", "-1", "7_1_1", "７"])
def test_what_is_no_job_id(text: str) -> None:
    with pytest.raises(UserError):
        SlurmScheduler().cancel([text])


def test_failed_nodes() -> None:
    lines = [("n1", "idle"), ("n2", "down*"), ("n3", "drained"), ("n4", "idle*"), ("n5", "mixed")]
    text = "".join(f"{RECORD}{name}{FIELD}{state}{FIELD}\n" for name, state in lines)
    text += f"{RECORD}n6{FIELD}do"  # where the output was cut off
    assert read_failed_nodes(text) == {"n2", "n3", "n4"}


@given(st.integers(0, 10**6), st.floats(0, 0.9))
def test_waits_stay_within_their_bounds(quiet: int, jitter: float) -> None:
    wait = PollBackoff(shortest_s=2, longest_s=60, jitter=jitter).wait_s(quiet)
    assert 2 * (1 - jitter) <= wait <= 60 * (1 + jitter)


def test_waits_grow_while_nothing_happens_and_differ_by_chance() -> None:
    calm = PollBackoff(jitter=0.0)
    assert calm.wait_s(0) == 5
    assert [calm.wait_s(n) for n in range(20)] == sorted(calm.wait_s(n) for n in range(20))
    assert calm.wait_s(99) == 120
    assert len({PollBackoff().wait_s(3) for _ in range(9)}) > 1


def squeue(folder: Path, text: str) -> dict[str, str]:
    """An environment whose squeue does this."""
    write_script(folder / "squeue", text)
    return {"PATH": f"{folder}:{BIN['PATH']}"}


def test_a_controller_that_never_answers_is_given_up(tmp_path: Path) -> None:
    queue = SlurmScheduler(squeue(tmp_path, "sleep 60"), timeout_s=0.3)
    with pytest.raises(SlurmFault) as caught:
        queue.poll(["7"])
    assert caught.value.error is SlurmError.CONTROLLER_DOWN
    assert caught.value.transient


def test_a_missing_squeue_is_no_passing_fault(tmp_path: Path) -> None:
    with pytest.raises(MissingComponent):
        SlurmScheduler({"PATH": str(tmp_path)}).poll(["7"])


def test_one_call_for_many_jobs_and_none_for_no_jobs(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    queue = SlurmScheduler(squeue(tmp_path, f'echo "$@" >> {calls}'), user=7)
    assert queue.poll([]) == QueueSnapshot()
    assert not calls.exists()
    assert queue.poll([str(n) for n in range(5000)]) == QueueSnapshot()
    (line,) = calls.read_text().rstrip("\n").split("\n")
    assert "--user=7 " in line


def test_a_failure_says_which_program_said_what(tmp_path: Path) -> None:
    environment = squeue(tmp_path, "echo strange things >&2\nexit 3")
    with pytest.raises(SlurmFault, match=r"(?m)^squeue: .*: strange things$") as caught:
        SlurmScheduler(environment).poll()
    assert caught.value.error is SlurmError.OTHER
