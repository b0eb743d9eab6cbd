"""What Slurm's accounting says of jobs that ended, and the node-hours that jobs used.

Where a site keeps no accounts, node-hours come from the times that the queue showed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from commtune.cluster.slurm.placement import expand_hosts
from commtune.cluster.slurm.queries import (
    FIELD,
    QueuedJob,
    SlurmError,
    SlurmFault,
    ask_slurm,
    id_lists,
    leader_of,
    read_count,
    read_time,
)
from commtune.cluster.slurm.states import JobState, ObservedState, read_state
from commtune.errors import EnvironmentFault, MissingComponent

# The name comes last: it may hold anything.
FIELDS = (
    *("JobID", "JobIDRaw", "State", "Reason", "ExitCode", "Start", "End", "ElapsedRaw"),
    *("AllocNodes", "NodeList", "User", "JobName"),
)
_JOB_ID = re.compile(r"(\d{1,10})([_+]\d{1,10})?", re.ASCII)
_EXIT = re.compile(r"(\d{1,5}):(\d{1,3})", re.ASCII)


@dataclass(frozen=True)
class AccountedJob:
    """One attempt of a job in Slurm's accounts; a job that was put back has several.

    Attributes:
        id: ``7``, array task ``7_3``, part of a heterogeneous job ``7+1``.
        number: Slurm's own number of exactly this one.
        exit_code: exit status of the batch script; ``None`` where Slurm says nothing.
        signal: number of the signal that ended it, or ``None``.
        elapsed_s: how long this attempt had its nodes, so far; suspended time is not in it.
        node_count: nodes that it had; 0 if it never had any.
        node_list: their names in Slurm's short form.
        ended_at: seconds since 1970, or ``None``.
    """

    id: str
    number: str
    sighting: ObservedState
    exit_code: int | None
    signal: int | None
    elapsed_s: int
    node_count: int
    node_list: str
    ended_at: float | None
    user: str
    name: str

    @property
    def leader(self) -> str:
        """Number that the whole array or heterogeneous job is submitted under."""
        return leader_of(self.id)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of its nodes; none where the list can't be read."""
        try:
            return expand_hosts(self.node_list)
        except EnvironmentFault:
            return ()


def read_accounts(output: str) -> tuple[AccountedJob, ...]:
    """Reads what ``sacct`` printed; lines that are no records of jobs are passed over."""
    records = (_read_line(line) for line in output.split("\n"))
    return tuple(record for record in records if record)


def _read_line(line: str) -> AccountedJob | None:
    fields = line.split(FIELD, len(FIELDS) - 1)
    if len(fields) < len(FIELDS) or not _JOB_ID.fullmatch(fields[0]):
        return None
    id_, number, word, reason, ending, start, end, elapsed, nodes, node_list, user, name = fields
    code = _EXIT.fullmatch(ending.strip())
    listed = "" if node_list.strip() in ("None assigned", "(null)") else node_list.strip()
    return AccountedJob(
        id=id_,
        number=number,
        sighting=read_state(
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


def last_attempts(records: Iterable[AccountedJob]) -> dict[str, AccountedJob]:
    """By id, the record of each job's last attempt; Slurm lists attempts in their order."""
    return {record.id: record for record in records}


def sighting_in(records: Iterable[AccountedJob], job: str) -> ObservedState:
    """Where a job stands by the accounts; ABSENT where they don't name it.

    Accounts lag behind the queue: they may still call a job running that has just ended. So they
    are for jobs that the queue no longer names.
    """
    attempts = [record for record in records if job in (record.id, record.number)]
    if not attempts:
        return ObservedState(JobState.ABSENT)
    last = attempts[-1].sighting
    return ObservedState(
        last.state, last.word, last.reason, last.cancelled_by, last.started_at, len(attempts)
    )


@dataclass(frozen=True)
class Accounting:
    """Asks sacct.

    Attributes:
        environment: what it runs in; see ``queries.asking_environment``.
        cluster: name of another cluster to ask, where several share their accounting.
        timeout_s: seconds that a call may take.
    """

    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    cluster: str = ""
    timeout_s: float = 60.0
    sacct: str = "sacct"

    def look(self, jobs: Collection[str], since: float) -> tuple[AccountedJob, ...]:
        """What the accounts say of these jobs, all attempts of each, in order.

        Args:
            since: seconds since 1970; not later than the first of them was submitted. Slurm
                gives numbers of jobs out again after years.

        Raises:
            SlurmFault: sacct gave no answer; its trouble is ACCOUNTING_OFF where there are no
                accounts to ask, and ACCOUNTING_DOWN where they don't answer now.
            MissingComponent: there is no sacct.
        """
        found: list[AccountedJob] = []
        for ids in id_lists(jobs):
            found += read_accounts(self._ask([f"--jobs={ids}", f"--starttime=uts{int(since)}"]))
        return tuple(found)

    def mine(self, user: int, since: float) -> tuple[AccountedJob, ...]:
        """All jobs of a user since then, to find those whose ids were never written down.

        Without jobs that were never free to start (held, say), and, for some seconds after its
        submission, with a job's name not yet known.

        Raises: as ``look``.
        """
        which = [f"--user={user}", f"--starttime=uts{int(since)}"]
        return read_accounts(self._ask(which))

    def is_kept(self) -> bool:
        """Whether there are accounts to ask on this machine, even if they don't answer now."""
        try:
            self._ask(["--starttime=now", "--jobs=1"])
        except MissingComponent:
            return False
        except SlurmFault as fault:
            return fault.trouble is not SlurmError.ACCOUNTING_OFF
        return True

    def _ask(self, which: Sequence[str]) -> str:
        question = [self.sacct, "--allocations", "--duplicates", "--noheader", "--parsable2"]
        question += [f"--delimiter={FIELD}", f"--format={','.join(FIELDS)}", *which]
        question += [f"--clusters={self.cluster}"] if self.cluster else []
        return ask_slurm(question, self.environment, self.timeout_s)


@dataclass(frozen=True)
class Use:
    """What one attempt of a job used.

    Attributes:
        seconds: how long it had its nodes; so far, while it runs.
        source: ``accounts`` or ``queue``.
    """

    job: str
    started_at: float
    nodes: int
    seconds: float
    source: str

    @property
    def node_hours(self) -> float:
        """Nodes times hours; a part of a node counts as a whole one."""
        return self.nodes * self.seconds / 3600


def use_in_accounts(record: AccountedJob) -> Use | None:
    """What an attempt used by the accounts; ``None`` if it never had nodes."""
    started = record.sighting.started_at
    if started is None or not record.node_count:
        return None
    return Use(record.id, started, record.node_count, record.elapsed_s, "accounts")


def use_in_queue(job: QueuedJob, now: float) -> Use | None:
    """What a job used by the times that the queue shows; ``None`` if it never had nodes.

    Args:
        now: by the clock of the cluster, seconds since 1970.
    """
    started = job.sighting.started_at
    if started is None or not job.node_list:
        return None
    ended = now if job.ended_at is None else job.ended_at
    return Use(job.id, started, job.node_count, max(0.0, ended - started), "queue")


def node_hours(uses: Iterable[Use | None]) -> float:
    """All node-hours; each attempt once, however often it was seen, by its longest account.

    Attempts of a job are told apart by when they started. The accounts are believed before the
    queue.
    """
    best: dict[tuple[str, float], Use] = {}
    for use in uses:
        if use is not None:
            key = (use.job, use.started_at)
            best[key] = max(best.get(key, use), use, key=_trust)
    return sum(use.node_hours for use in best.values())


def _trust(use: Use) -> tuple[bool, float]:
    return use.source == "accounts", use.node_hours
