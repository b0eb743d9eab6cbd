"""What qstat and pbsnodes print, and what PBS's letters and numbers mean in our terms.

By the sources and the answers of OpenPBS 23.06; a letter that isn't here stays unknown, and is
never the end of a job.
"""

from __future__ import annotations

import re
import time
from calendar import timegm
from collections.abc import Iterator, Mapping

from commtune.cluster.job_states import JobState, ObservedState, PendingReason
from commtune.cluster.scheduler import Allocation, QueuedJob

#: Between attributes; qstat shows such a sign in a value as ``^_``.
FIELD = "\x1f"
#: ``7``, array job ``7[]`` or one of it ``7[3]``, with or without the server's name.
JOB_ID = re.compile(r"((\d{1,12})(?:\[\d{0,10}\])?)(?:\.[\w.-]+)?", re.ASCII)

_STATES = {
    "B": JobState.RUNNING,  # an array of which something began
    "E": JobState.COMPLETING,
    "H": JobState.PENDING,  # see `_is_held`
    "M": JobState.UNKNOWN,  # moved to another server
    "Q": JobState.PENDING,
    "R": JobState.RUNNING,
    "S": JobState.SUSPENDED,
    "T": JobState.PENDING,
    "U": JobState.SUSPENDED,
    "W": JobState.PENDING,
}
_OVER = ("F", "X")

#: Substates of a job that is over: somebody deleted it.
_TERMINATED = "91"
#: Exit statuses below zero are PBS's own (src/include/job.h). By these, it ended the job for what
#: it used, or lost one of its nodes; by others it could not run the job, or took its nodes.
_TIME = -29
_MEMORY = (-26, -27)
_NODE = (-4, -5, -6, -20, -30)

#: In front of whose holds a job has: u, o or s.
_HOLDS = "Hold_Types="
#: What the scheduler says of a job that waits, in the order in which it is looked for.
_REASONS = (
    (r"Can Never Run", PendingReason.IMPOSSIBLE),
    (rf"{_HOLDS}|held", PendingReason.HELD),
    (r"limit|would exceed|Maximum number", PendingReason.LIMIT),
    (r"[Qq]ueue not started|not (active|enabled)|down|offline|dedicated", PendingReason.MACHINE),
    (r"Not Running|Not enough|Insufficient|conflict|start", PendingReason.TURN),
)


def read_records(printed: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Names and attributes of what ``qstat -f -F dsv`` printed, separated by `FIELD`."""
    for line in printed.split("\n"):
        head, *fields = line.split(FIELD)
        kind, _, name = head.partition(": ")
        if kind in ("Job Id", "Server", "Queue") and fields:
            pairs = (field.partition("=") for field in fields)
            yield name.strip(), {key: value for key, _, value in pairs}


def read_jobs(printed: str) -> tuple[tuple[QueuedJob, ...], bool]:
    """The jobs that qstat printed, and whether all of them could be read."""
    records = list(read_records(printed))
    jobs = [_read_job(name, said) for name, said in records]
    found = tuple(job for job in jobs if job is not None)
    return found, len(found) == printed.count("Job Id: ")


def _read_job(name: str, said: Mapping[str, str]) -> QueuedJob | None:
    found = JOB_ID.fullmatch(name)
    if not found or "job_state" not in said:
        return None
    nodes = _nodes(said.get("exec_host", ""))
    started_at = _read_time(said.get("stime", "")) if nodes else None
    observed = _read_state(said, started_at)
    return QueuedJob(
        id=found[1],
        number=found[2] if found[1].isdigit() else found[1],
        leader=found[2],
        observed=observed,
        node_count=len(nodes) or _read_number(said.get("Resource_List.nodect", "")) or 0,
        node_list=",".join(nodes),
        ended_at=_ended_at(said, started_at) if observed.state.is_over else None,
        name=said.get("Job_Name", ""),
    )


def read_allocation(printed: str) -> Allocation | None:
    """The job that qstat printed, as one that we run in; ``None`` if it doesn't run."""
    for name, said in read_records(printed):
        found, nodes = JOB_ID.fullmatch(name), _nodes(said.get("exec_host", ""))
        began_at = _read_time(said.get("stime", ""))
        if found and nodes and began_at is not None:
            given_s = _read_span(said.get("Resource_List.walltime", ""))
            ends_at = None if given_s is None else began_at + given_s
            return Allocation(found[2], tuple(nodes), began_at, ends_at)
    return None


def _nodes(exec_host: str) -> list[str]:
    """Names in ``n1/0*2+n2/0``: once each, in their order."""
    return list(dict.fromkeys(part.partition("/")[0] for part in exec_host.split("+") if part))


def _read_number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?\d{1,9}", text, re.ASCII) else None


def _read_time(text: str) -> float | None:
    """Seconds since 1970 of ``Tue Nov 24 10:31:00 2026`` in UTC; ``None`` for all else."""
    try:
        return float(timegm(time.strptime(text.strip(), "%a %b %d %H:%M:%S %Y")))
    except ValueError:
        return None


def _read_span(text: str) -> float | None:
    """Seconds of ``100:30:00``; ``None`` for all else."""
    found = re.fullmatch(r"(\d+):(\d\d):(\d\d)", text, re.ASCII)
    if not found:
        return None
    hours, minutes, seconds = map(int, found.groups())
    return float((hours * 60 + minutes) * 60 + seconds)


def _ended_at(said: Mapping[str, str], started_at: float | None) -> float | None:
    """When it gave its nodes back; older servers only tell how long it ran."""
    if obituary := _read_time(said.get("obittime", "")):
        return obituary
    used_s = _read_span(said.get("resources_used.walltime", ""))
    if started_at is not None and used_s is not None:
        return started_at + used_s
    return _read_time(said.get("mtime", ""))


def _read_state(said: Mapping[str, str], started_at: float | None) -> ObservedState:
    """Our state for PBS's; never raises, whatever it says."""
    letter, comment = said["job_state"], said.get("comment", "")
    if letter in _OVER:
        return ObservedState(_how_ended(said), letter, _why_ended(said), None, started_at)
    state = _STATES.get(letter, JobState.UNKNOWN)
    if state is not JobState.PENDING:
        return ObservedState(state, letter, comment, None, started_at)
    # Nothing else says why it is held.
    reason = f"{_HOLDS}{said.get('Hold_Types', '')}" if _is_held(said) else comment
    pending = classify_reason(reason)
    state = JobState.NEVER_STARTED if pending.is_hopeless else state
    return ObservedState(state, letter, reason, pending=pending)


def _is_held(said: Mapping[str, str]) -> bool:
    """Whether a person has to release it; the server's own hold may be for another job's end."""
    waits_for_another = "depend" in said and said.get("Hold_Types") == "s"
    return said["job_state"] == "H" and not waits_for_another


def classify_reason(reason: str) -> PendingReason:
    """What the scheduler's comment on a waiting job means, or whose holds it has."""
    for pattern, kind in _REASONS:
        if re.search(pattern, reason):
            return kind
    return PendingReason.UNKNOWN if reason else PendingReason.TURN


def _how_ended(said: Mapping[str, str]) -> JobState:
    status = _read_number(said.get("Exit_status", ""))
    if said.get("substate") == _TERMINATED:
        return JobState.CANCELLED
    if status is None:
        return JobState.NEVER_STARTED
    if status == _TIME:
        return JobState.TIMED_OUT
    if status in _MEMORY:
        return JobState.OUT_OF_MEMORY
    if status < 0:
        return JobState.NODE_FAILURE if status in _NODE else JobState.PREEMPTED
    return JobState.FAILED if status else JobState.COMPLETED


def _why_ended(said: Mapping[str, str]) -> str:
    """``exceeded resource walltime``, of ``Job run at ... on ... and exceeded ...``."""
    _, begun, words = said.get("comment", "").rpartition(" and ")
    status = said.get("Exit_status", "")
    return words if begun else f"exit status {status}" if status else ""


def read_failed_nodes(printed: str) -> frozenset[str]:
    """Nodes that take no jobs, by what ``pbsnodes`` printed."""
    failed: set[str] = set()
    name = ""
    for line in printed.splitlines():
        if line and not line[0].isspace():
            name = line.strip()
        state = re.fullmatch(r"\s+state = (.*)", line)
        if state and re.search(r"down|offline|unknown|stale|unresolvable", state[1]):
            failed.add(name)
    return frozenset(failed)
