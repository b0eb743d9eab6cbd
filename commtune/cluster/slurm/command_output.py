"""Reads the output of squeue, sacct and sinfo, in formats that no user setting changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from commtune.cluster.job_states import JobState, ObservedState, PendingReason
from commtune.cluster.placement import expand_hosts
from commtune.cluster.scheduler import AccountedJob, QueuedJob, QueueSnapshot

#: ASCII's own separators, which no name of a job or node holds.
RECORD, FIELD = "\x1e", "\x1f"


def format_of(columns: Iterable[str]) -> str:
    """Returns the ``--format`` of squeue or sinfo for ``read_records``."""
    return RECORD + FIELD.join(columns) + FIELD


def read_records(output: str) -> Iterator[list[str]]:
    """Yields the fields of each record; skips warnings and headings between records."""
    # After the last separator come the end of the line, and perhaps warnings.
    return (text.split(FIELD)[:-1] for text in output.split(RECORD)[1:])


#: A job's number; tasks of arrays and components of heterogeneous jobs have numbers of their own.
JOB_NUMBER = re.compile(r"[1-9]\d{0,9}", re.ASCII)

#: squeue's fields: number, state, reason, start, end, nodes, node list, name.
#: The name comes last, as it may contain anything.
_QUEUE_COLUMNS = ("%A", "%T", "%r", "%S", "%e", "%D", "%N", "%j")
QUEUE_FORMAT = format_of(_QUEUE_COLUMNS)


def read_queue(output: str) -> QueueSnapshot:
    """Reads the output of ``squeue``."""
    jobs = [_read_job(fields) for fields in read_records(output)]
    return QueueSnapshot(tuple(job for job in jobs if job), all(jobs))


def _read_job(fields: list[str]) -> QueuedJob | None:
    if len(fields) < len(_QUEUE_COLUMNS) or not JOB_NUMBER.fullmatch(fields[0]):
        return None
    number, word, reason, start, end, nodes, node_list, *name = fields
    # Of a job without nodes, it is the expected start, or when the job was cancelled.
    started = read_time(start) if _given(node_list) else None
    observed = _read_state(word, reason=_given(reason), started_at=started)
    return QueuedJob(
        number=number,
        observed=observed,
        node_count=read_count(nodes),
        node_list=_given(node_list),
        ended_at=read_time(end) if observed.state.is_over else None,
        name=FIELD.join(name),
    )


def _given(text: str) -> str:
    return "" if text.strip() in ("(null)", "None", "N/A", "None assigned") else text.strip()


def read_time(text: str) -> float | None:
    """Reads seconds since 1970; ``None`` for Slurm's Unknown, None and N/A, and all else."""
    return float(text) if re.fullmatch(r"[1-9]\d{0,11}", text.strip(), re.ASCII) else None


def read_count(text: str) -> int:
    """Reads a number of nodes or seconds; 0 for anything else. A range gives its lower end."""
    found = re.match(r"\d{1,12}", text.strip(), re.ASCII)
    return int(found[0]) if found else 0


#: sacct's fields. The name comes last, as it may contain anything.
ACCOUNT_FIELDS = (
    *("JobIDRaw", "State", "Reason", "Start", "End", "ElapsedRaw"),
    *("AllocNodes", "NodeList", "JobName"),
)


def read_accounts(output: str) -> tuple[AccountedJob, ...]:
    """Reads the output of ``sacct``; skips lines that aren't records of jobs."""
    records = (_read_account(line) for line in output.split("\n"))
    return tuple(record for record in records if record)


def _read_account(line: str) -> AccountedJob | None:
    fields = line.split(FIELD, len(ACCOUNT_FIELDS) - 1)
    if len(fields) < len(ACCOUNT_FIELDS) or not JOB_NUMBER.fullmatch(fields[0]):
        return None
    number, word, reason, start, end, elapsed, nodes, node_list, name = fields
    listed = _given(node_list)
    started = read_time(start) if listed else None
    return AccountedJob(
        number=number,
        observed=_read_state(word, reason=_given(reason), started_at=started),
        elapsed_s=read_count(elapsed),
        node_count=read_count(nodes) if listed else 0,
        node_list=listed,
        ended_at=read_time(end),
        name=name,
    )


NODE_FORMAT = format_of(("%N", "%T"))


def read_failed_nodes(output: str) -> frozenset[str]:
    """Reads the names of unusable nodes from the output of ``sinfo``."""
    failed: set[str] = set()
    for name, state in (fields for fields in read_records(output) if len(fields) == 2):
        word = state.strip().lower()
        # A star after the state means that the node doesn't respond.
        if "*" in word or re.match(r"(down|drain|fail|inval|error)", word):
            failed.update(expand_hosts(name))
    return frozenset(failed)


@cache
def slurm_words() -> Any:
    """Returns the contents of ``words.yaml``: Slurm's states, reasons and messages."""
    import yaml

    text = (files(__package__) / "words.yaml").read_text(encoding="utf-8")
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


#: State flags that don't change a job's state.
_NO_MATTER = frozenset({"UPDATE_DB"})
#: Flags that record an error; they count once the job is over.
_MARKS = frozenset({"LAUNCH_FAILED", "RECONFIG_FAIL"})
#: Flags that count only until the job is over.
_WHILE_ALIVE = frozenset({"CONFIGURING", "POWER_UP_NODE", "RESIZING", "SIGNALING", "STOPPED"})
_BASE_OF, _FLAG_OF = (
    {code: JobState(state) for *codes, state in slurm_words()[kind] for code in codes if code}
    for kind in ("states", "flags")
)
#: The state for each known word and short code, if it comes alone.
_WORDS: Mapping[str, JobState] = {**_BASE_OF, **_FLAG_OF}

_CANCELLED_BY = re.compile(r"CANCELLED\s+by\s+(\d{1,10})", re.ASCII)


def _read_state(text: str, *, reason: str = "", started_at: float | None = None) -> ObservedState:
    """Converts Slurm's state: a word, a short code, or several joined by commas.

    Keeps the user id of ``CANCELLED by 1000``. A pending job is NEVER_STARTED if its reason says
    that it won't start by itself. Never raises, whatever the text.
    """
    word = text.strip()
    by = _CANCELLED_BY.fullmatch(word)
    state = JobState.CANCELLED if by else _state_of(word.split(","))
    waits = state in (JobState.PENDING, JobState.NEVER_STARTED)
    pending = classify_reason(reason) if waits else None
    if pending is not None and pending.is_hopeless:
        state = JobState.NEVER_STARTED
    cancelled_by = int(by[1]) if by else None
    return ObservedState(state, word, reason, cancelled_by, started_at, pending=pending)


def _state_of(words: Iterable[str]) -> JobState:
    """Returns the state that a base state and its flags make together."""
    given = {word.strip() for word in words} - _NO_MATTER
    if not given or not given <= _WORDS.keys():
        return JobState.UNKNOWN
    base = next((state for word, state in _BASE_OF.items() if word in given), None)
    for word, state in _FLAG_OF.items():
        if word in given and _counts(word, base):
            return state
    return base or JobState.UNKNOWN


def _counts(flag: str, base: JobState | None) -> bool:
    """Whether a flag overrides this base state."""
    if flag in _MARKS:  # must not hide that a requeued job is pending or running again
        return base in (None, JobState.FAILED)
    return not (flag in _WHILE_ALIVE and base is not None and base.is_over)


_KIND_OF = {
    word: PendingReason[kind]
    for kind, words in slurm_words()["reasons"].items()
    for word in words.split()
}


def classify_reason(reason: str) -> PendingReason:
    """Classifies a pending job's reason; Slurm may add details after a comma or in parentheses."""
    word = re.split(r"[\s,(]", reason.strip().strip("()"))[0]
    if re.search(r"requeued[ _].*(held|special exit)", reason.replace("_", " ")):
        return PendingReason.HELD
    if word in _KIND_OF:
        return _KIND_OF[word]
    rules = slurm_words()["reason_rules"]
    return PendingReason[next((k for rule, k in rules if re.fullmatch(rule, word)), "UNKNOWN")]
