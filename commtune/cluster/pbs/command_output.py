"""Reads the output of qstat and pbsnodes: PBS's job states, exit statuses and comments.

From the sources and the output of OpenPBS 23.06. A state that isn't listed here is UNKNOWN, and
never counts as the end of a job.
"""

from __future__ import annotations

import re
import time
from calendar import timegm
from collections.abc import Iterator, Mapping

from commtune.cluster.job_states import JobState, ObservedState, PendingReason
from commtune.cluster.scheduler import Allocation, QueuedJob, read_span

#: Separates attributes; qstat prints this character in a value as ``^_``.
FIELD = "\x1f"
#: ``7``, array job ``7[]`` or subjob ``7[3]``, with or without the server's name.
JOB_ID = re.compile(r"(\d{1,12}(?:\[\d{0,10}\])?)(?:\.[\w.-]+)?", re.ASCII)

_STATES = {
    "B": JobState.RUNNING,  # an array with at least one subjob started
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

#: The substate of a finished job that was deleted.
_TERMINATED = "91"
#: Exit statuses below zero are PBS's own (src/include/job.h). These stand for a limit that the job
#: exceeded, or for a lost node; others for a job that PBS could not run, or preempted.
_TIME = -29
_MEMORY = (-26, -27)
_NODE = (-4, -5, -6, -20, -30)

#: Prefix of a held job's reason; the hold types follow: u, o or s.
_HOLDS = "Hold_Types="
#: Patterns of the scheduler's comment on a queued job; the first match counts.
_REASONS = (
    (r"Can Never Run", PendingReason.IMPOSSIBLE),
    (rf"{_HOLDS}|held", PendingReason.HELD),
    (r"limit|would exceed|Maximum number", PendingReason.LIMIT),
    (r"[Qq]ueue not started|not (active|enabled)|down|offline|dedicated", PendingReason.MACHINE),
    (r"Not Running|Not enough|Insufficient|conflict|start", PendingReason.TURN),
)


def read_records(printed: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields names and attributes from the output of ``qstat -f -F dsv``, split at `FIELD`."""
    for line in printed.split("\n"):
        head, *fields = line.split(FIELD)
        kind, _, name = head.partition(": ")
        if kind in ("Job Id", "Server", "Queue") and fields:
            pairs = (field.partition("=") for field in fields)
            yield name.strip(), {key: value for key, _, value in pairs}


def read_jobs(printed: str) -> tuple[tuple[QueuedJob, ...], bool]:
    """Returns the jobs in qstat's output, and whether all of them could be read."""
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
        number=found[1],
        observed=observed,
        node_count=len(nodes) or _read_number(said.get("Resource_List.nodect", "")) or 0,
        node_list=",".join(nodes),
        ended_at=_ended_at(said, started_at) if observed.state.is_over else None,
        name=said.get("Job_Name", ""),
    )


def read_allocation(printed: str) -> Allocation | None:
    """Returns the job in qstat's output as our allocation; ``None`` if it doesn't run."""
    for name, said in read_records(printed):
        found, nodes = JOB_ID.fullmatch(name), _nodes(said.get("exec_host", ""))
        began_at = _read_time(said.get("stime", ""))
        if found and nodes and began_at is not None:
            given_s = read_span(said.get("Resource_List.walltime", ""))
            ends_at = None if given_s is None else began_at + given_s
            return Allocation(found[1], tuple(nodes), began_at, ends_at)
    return None


def _nodes(exec_host: str) -> list[str]:
    """Returns the distinct node names in ``n1/0*2+n2/0``, in their order."""
    return list(dict.fromkeys(part.partition("/")[0] for part in exec_host.split("+") if part))


def _read_number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?\d{1,9}", text, re.ASCII) else None


def _read_time(text: str) -> float | None:
    """Returns ``Tue Nov 24 10:31:00 2026`` (UTC) in seconds since 1970; ``None`` for all else."""
    try:
        return float(timegm(time.strptime(text.strip(), "%a %b %d %H:%M:%S %Y")))
    except ValueError:
        return None


def _ended_at(said: Mapping[str, str], started_at: float | None) -> float | None:
    """Returns when a job released its nodes; older servers only say how long it ran."""
    if obituary := _read_time(said.get("obittime", "")):
        return obituary
    used_s = read_span(said.get("resources_used.walltime", ""))
    if started_at is not None and used_s is not None:
        return started_at + used_s
    return _read_time(said.get("mtime", ""))


def _read_state(said: Mapping[str, str], started_at: float | None) -> ObservedState:
    """Converts PBS's state of a job; never raises, whatever the attributes are."""
    letter, comment = said["job_state"], said.get("comment", "")
    if letter in _OVER:
        return ObservedState(_how_ended(said), letter, _why_ended(said), None, started_at)
    state = _STATES.get(letter, JobState.UNKNOWN)
    if state is not JobState.PENDING:
        return ObservedState(state, letter, comment, None, started_at)
    # The comment doesn't say why a job is held.
    reason = f"{_HOLDS}{said.get('Hold_Types', '')}" if _is_held(said) else comment
    pending = classify_reason(reason)
    state = JobState.NEVER_STARTED if pending.is_hopeless else state
    return ObservedState(state, letter, reason, pending=pending)


def _is_held(said: Mapping[str, str]) -> bool:
    """Whether somebody must release the job; a system hold may only be a dependency."""
    waits_for_another = "depend" in said and said.get("Hold_Types") == "s"
    return said["job_state"] == "H" and not waits_for_another


def classify_reason(reason: str) -> PendingReason:
    """Classifies the scheduler's comment on a queued job, or its hold types."""
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
    """Returns the end of a comment: ``exceeded ...`` of ``Job run at ... and exceeded ...``."""
    _, begun, words = said.get("comment", "").rpartition(" and ")
    status = said.get("Exit_status", "")
    return words if begun else f"exit status {status}" if status else ""


def read_failed_nodes(printed: str) -> frozenset[str]:
    """Returns the names of nodes that accept no jobs, from the output of ``pbsnodes``."""
    failed: set[str] = set()
    name = ""
    for line in printed.splitlines():
        if line and not line[0].isspace():
            name = line.strip()
        state = re.fullmatch(r"\s+state = (.*)", line)
        if state and re.search(r"down|offline|unknown|stale|unresolvable", state[1]):
            failed.add(name)
    return frozenset(failed)
