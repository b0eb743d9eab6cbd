"""What squeue, sacct and sinfo print, in a form that no setting of the user's changes.

Fields stand between control characters; times are seconds since 1970. Nothing here does I/O.
"""

from __future__ import annotations

import re

from commtune.cluster.placement import expand_hosts
from commtune.cluster.scheduler import AccountedJob, QueuedJob, QueueSnapshot
from commtune.cluster.slurm.states import read_state

#: ASCII's own separators, which no name of a job or node holds.
RECORD, FIELD = "\x1e", "\x1f"

#: A job's number; with an array task's, or that of a part of a heterogeneous job.
JOB_ID = re.compile(r"(\d{1,10})([_+]\d{1,10})?", re.ASCII)
_EXIT = re.compile(r"(\d{1,5}):(\d{1,3})", re.ASCII)

#: squeue's letters: id, number, state, reason, start, end, nodes, node list, user, name, comment.
#: What a user may fill with any text comes last.
_QUEUE_COLUMNS = ("%i", "%A", "%T", "%r", "%S", "%e", "%D", "%N", "%u", "%j", "%k")
QUEUE_FORMAT = RECORD + FIELD.join(_QUEUE_COLUMNS) + FIELD


def read_queue(output: str) -> QueueSnapshot:
    """Reads what ``squeue`` printed; warnings and headings between records are passed over."""
    records = [_read_record(text) for text in output.split(RECORD)[1:]]
    return QueueSnapshot(tuple(job for job in records if job), all(records))


def _read_record(text: str) -> QueuedJob | None:
    # Behind the last separator come the end of the line and what was printed in between.
    fields = text.split(FIELD)[:-1]
    if len(fields) < len(_QUEUE_COLUMNS) or not (found := JOB_ID.fullmatch(fields[0])):
        return None
    id_, number, word, reason, start, end, nodes, node_list, user, name, *comment = fields
    # Without nodes, it is when Slurm expects it to start, or when it was cancelled in the queue.
    started = read_time(start) if _given(node_list) else None
    observed = read_state(word, reason=_given(reason), started_at=started)
    return QueuedJob(
        id=id_,
        number=number,
        leader=found[1],
        observed=observed,
        node_count=read_count(nodes),
        node_list=_given(node_list),
        ended_at=read_time(end) if observed.state.is_over else None,
        user=user,
        name=name,
        comment=_given(FIELD.join(comment)),
    )


def _given(text: str) -> str:
    return "" if text.strip() in ("(null)", "None", "N/A", "None assigned") else text.strip()


def read_time(text: str) -> float | None:
    """Seconds since 1970; ``None`` for Slurm's Unknown, None and N/A, and all else."""
    return float(text) if re.fullmatch(r"[1-9]\d{0,11}", text.strip(), re.ASCII) else None


def read_count(text: str) -> int:
    """A number of nodes or seconds; 0 for what is no number. A range gives its lower end."""
    found = re.match(r"\d{1,12}", text.strip(), re.ASCII)
    return int(found[0]) if found else 0


#: Of sacct. The name comes last: it may hold anything.
ACCOUNT_FIELDS = (
    *("JobID", "JobIDRaw", "State", "Reason", "ExitCode", "Start", "End", "ElapsedRaw"),
    *("AllocNodes", "NodeList", "User", "JobName"),
)


def read_accounts(output: str) -> tuple[AccountedJob, ...]:
    """Reads what ``sacct`` printed; lines that are no records of jobs are passed over."""
    records = (_read_account(line) for line in output.split("\n"))
    return tuple(record for record in records if record)


def _read_account(line: str) -> AccountedJob | None:
    fields = line.split(FIELD, len(ACCOUNT_FIELDS) - 1)
    if len(fields) < len(ACCOUNT_FIELDS) or not JOB_ID.fullmatch(fields[0]):
        return None
    id_, number, word, reason, ending, start, end, elapsed, nodes, node_list, user, name = fields
    code = _EXIT.fullmatch(ending.strip())
    listed = "" if node_list.strip() in ("None assigned", "(null)") else node_list.strip()
    return AccountedJob(
        id=id_,
        number=number,
        observed=read_state(
            word,
            reason="" if reason == "None" else reason,
            started_at=read_time(start) if listed else None,
        ),
        exit_code=int(code[1]) if code else None,
        signal=(int(code[2]) or None) if code else None,
        elapsed_s=read_count(elapsed),
        node_count=read_count(nodes) if listed else 0,
        node_list=listed,
        ended_at=read_time(end),
        user=user,
        name=name,
    )


NODE_FORMAT = f"{RECORD}%N{FIELD}%T{FIELD}"


def read_failed_nodes(output: str) -> frozenset[str]:
    """Reads what ``sinfo`` printed of nodes and their states."""
    failed: set[str] = set()
    for text in output.split(RECORD)[1:]:
        name, _, state = text.partition(FIELD)
        word = state.partition(FIELD)[0].strip().lower()
        # A star behind the state says that the node does not respond.
        if "*" in word or re.match(r"(down|drain|fail|inval|error)", word):
            failed.update(expand_hosts(name))
    return frozenset(failed)
