"""Slurm's words for a job's state, in ours: what may follow what, and what to do about each.

The words are those of Slurm's own sources and manuals, 22.05 to 25.11 (see docs/slurm-states.md).
A word that isn't among them stays UNKNOWN and is kept; a job that Slurm doesn't name is ABSENT.
Neither is ever taken for the end of a job. Nothing here does I/O.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Self


class Policy(StrEnum):
    """What to do about a job in some state."""

    WAIT = "wait"
    READ = "read the result"
    RETRY = "retry elsewhere"
    BLAME = "count against the configuration"
    STOP = "stop the campaign"
    ASK_AGAIN = "ask again"


class JobState(StrEnum):
    """Where a job stands.

    ::

        pending ──► running ◄─► suspended
           │           └──► completing ──► completed, failed, timed-out, out-of-memory,
           └► never-started                node-failure, preempted or cancelled

    NEVER_STARTED is a job that doesn't start by itself: held, waiting for what never comes, or
    asking for what there isn't. A person can still release it.
    """

    PENDING = "pending"
    RUNNING = "running"
    SUSPENDED = "suspended"
    COMPLETING = "completing"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed-out"
    OUT_OF_MEMORY = "out-of-memory"
    NODE_FAILURE = "node-failure"
    PREEMPTED = "preempted"
    CANCELLED = "cancelled"
    NEVER_STARTED = "never-started"
    UNKNOWN = "unknown"
    ABSENT = "absent"

    @property
    def is_over(self) -> bool:
        """Whether Slurm said that this attempt of the job has ended."""
        return self in _OVER

    @property
    def is_known(self) -> bool:
        """Whether Slurm said anything that we understand."""
        return self not in (JobState.UNKNOWN, JobState.ABSENT)

    @property
    def policy(self) -> Policy:
        """What to do about it."""
        return _POLICIES[self]

    @property
    def blames_configuration(self) -> bool:
        """Whether the environment variables of the run may be the cause."""
        return self.policy is Policy.BLAME


_OVER = frozenset(
    {
        JobState.COMPLETED,
        JobState.FAILED,
        JobState.TIMED_OUT,
        JobState.OUT_OF_MEMORY,
        JobState.NODE_FAILURE,
        JobState.PREEMPTED,
        JobState.CANCELLED,
    }
)

_POLICIES: Mapping[JobState, Policy] = {
    JobState.PENDING: Policy.WAIT,
    JobState.RUNNING: Policy.WAIT,
    JobState.SUSPENDED: Policy.WAIT,
    JobState.COMPLETING: Policy.WAIT,
    JobState.COMPLETED: Policy.READ,
    JobState.FAILED: Policy.BLAME,
    JobState.TIMED_OUT: Policy.BLAME,
    JobState.OUT_OF_MEMORY: Policy.BLAME,
    JobState.NODE_FAILURE: Policy.RETRY,
    JobState.PREEMPTED: Policy.RETRY,
    JobState.CANCELLED: Policy.STOP,
    JobState.NEVER_STARTED: Policy.STOP,
    JobState.UNKNOWN: Policy.ASK_AGAIN,
    JobState.ABSENT: Policy.ASK_AGAIN,
}

_WAITING = frozenset({JobState.PENDING, JobState.NEVER_STARTED})
_ANY = frozenset(JobState)
_SILENCE = frozenset({JobState.UNKNOWN, JobState.ABSENT})
_BEGUN = frozenset({JobState.RUNNING, JobState.SUSPENDED, JobState.COMPLETING})

#: What may be seen next of the same attempt; between two looks any number of states may pass.
#: UNKNOWN and ABSENT say nothing about the job, so they may come at any time, and go.
FOLLOWS: Mapping[JobState, frozenset[JobState]] = {
    **dict.fromkeys(_WAITING | _SILENCE, _ANY),
    JobState.RUNNING: _BEGUN | _OVER | _SILENCE,
    JobState.SUSPENDED: _BEGUN | _OVER | _SILENCE,
    JobState.COMPLETING: frozenset({JobState.COMPLETING}) | _OVER | _SILENCE,
    **{state: frozenset({state}) | _SILENCE for state in _OVER},
}


def may_follow(before: JobState, after: JobState) -> bool:
    """Whether one attempt of a job can be seen in the one state and then in the other."""
    return after in FOLLOWS[before]


def starts_again(before: JobState, after: JobState) -> bool:
    """Whether the two states together say that Slurm put the job back into the queue."""
    return before not in _WAITING | _SILENCE and after in _WAITING


#: Slurm's base states: word, short code, ours. A job has exactly one of them.
_BASES = (
    ("PENDING", "PD", JobState.PENDING),
    ("RUNNING", "R", JobState.RUNNING),
    ("SUSPENDED", "S", JobState.SUSPENDED),
    ("COMPLETED", "CD", JobState.COMPLETED),
    ("CANCELLED", "CA", JobState.CANCELLED),
    ("FAILED", "F", JobState.FAILED),
    ("TIMEOUT", "TO", JobState.TIMED_OUT),
    ("NODE_FAIL", "NF", JobState.NODE_FAILURE),
    ("PREEMPTED", "PR", JobState.PREEMPTED),
    ("BOOT_FAIL", "BF", JobState.NODE_FAILURE),
    ("DEADLINE", "DL", JobState.NEVER_STARTED),
    ("OUT_OF_MEMORY", "OOM", JobState.OUT_OF_MEMORY),
)

#: Slurm's flags, in the order in which Slurm lets one hide the next, and all hide the base state:
#: word, short code (none where Slurm never prints one), ours.
_FLAGS = (
    ("COMPLETING", "CG", JobState.COMPLETING),
    ("STAGE_OUT", "SO", JobState.COMPLETING),
    ("CONFIGURING", "CF", JobState.PENDING),
    ("EXPEDITING", "", JobState.PENDING),
    ("RESIZING", "RS", JobState.RUNNING),
    ("REQUEUED", "RQ", JobState.PENDING),
    ("REQUEUE_FED", "RF", JobState.PENDING),
    ("REQUEUE_HOLD", "RH", JobState.NEVER_STARTED),
    ("SPECIAL_EXIT", "SE", JobState.NEVER_STARTED),
    ("STOPPED", "ST", JobState.SUSPENDED),
    ("REVOKED", "RV", JobState.ABSENT),
    ("RESV_DEL_HOLD", "RD", JobState.NEVER_STARTED),
    ("SIGNALING", "SI", JobState.RUNNING),
    # Below: flags that squeue and sacct never show, but the JSON of 23.11 and later does.
    ("LAUNCH_FAILED", "", JobState.NODE_FAILURE),
    ("RECONFIG_FAIL", "", JobState.NODE_FAILURE),
    ("POWER_UP_NODE", "", JobState.PENDING),
)

#: Flags that say nothing about where a job stands.
_NO_MATTER = frozenset({"UPDATE_DB"})
#: Flags that are marks of what went wrong; they count once the job is over.
_MARKS = frozenset({"LAUNCH_FAILED", "RECONFIG_FAIL"})
#: Flags that mean something only while the job lives.
_WHILE_ALIVE = frozenset({"CONFIGURING", "POWER_UP_NODE", "RESIZING", "SIGNALING", "STOPPED"})
_BASE_OF = {code: state for word, short, state in _BASES for code in (word, short)}
_FLAG_OF = {code: state for word, short, state in _FLAGS for code in (word, short) if code}

#: Every word and short code that is known, with our state for it alone.
WORDS: Mapping[str, JobState] = {**_BASE_OF, **_FLAG_OF}

_CANCELLED_BY = re.compile(r"CANCELLED\s+by\s+(\d{1,10})", re.ASCII)


@dataclass(frozen=True)
class ObservedState:
    """What Slurm said of a job at one time.

    Attributes:
        state: ours.
        word: Slurm's, as it came.
        reason: Slurm's reason for waiting or ending, as it came; empty where there is none.
        cancelled_by: number of the user who cancelled it, where Slurm says.
        started_at: when this attempt started, seconds since 1970; ``None`` if it hasn't.
        attempt: which start of the job this is, from 1; counted by ``advance``.
    """

    state: JobState
    word: str = ""
    reason: str = ""
    cancelled_by: int | None = None
    started_at: float | None = None
    attempt: int = 1

    @property
    def policy(self) -> Policy:
        """What to do about it."""
        return self.state.policy


def read_state(text: str, *, reason: str = "", started_at: float | None = None) -> ObservedState:
    """Our state for what Slurm printed: a word, a short code, or several joined by commas.

    ``CANCELLED by 1000`` keeps who did it. A pending job whose reason says that it doesn't start
    by itself is NEVER_STARTED. Never raises, whatever the text.
    """
    word = text.strip()
    by = _CANCELLED_BY.fullmatch(word)
    state = JobState.CANCELLED if by else _state_of(word.split(","))
    if state is JobState.PENDING and classify_reason(reason).is_hopeless:
        state = JobState.NEVER_STARTED
    return ObservedState(state, word, reason, int(by[1]) if by else None, started_at)


def _state_of(words: Iterable[str]) -> JobState:
    """One state for all the words that hold for a job together."""
    given = {word.strip() for word in words} - _NO_MATTER
    if not given or not given <= WORDS.keys():
        return JobState.UNKNOWN
    base = next((state for word, state in _BASE_OF.items() if word in given), None)
    for word, state in _FLAG_OF.items():
        if word in given and _counts(word, base):
            return state
    return base or JobState.UNKNOWN


def _counts(flag: str, base: JobState | None) -> bool:
    """Whether a flag beside this base state says more than the base state does."""
    if flag in _MARKS:  # must not hide that the job waits or runs again after a failed launch
        return base in (None, JobState.FAILED)
    return not (flag in _WHILE_ALIVE and base in _OVER)


class PendingReason(StrEnum):
    """Kinds of reasons for which a job waits in the queue."""

    TURN = "its turn has not come"
    MACHINE = "the machine or partition is not available"
    LIMIT = "a limit on running jobs is reached"
    SPENT = "the account's or QOS's hours are used up"
    HELD = "it is held"
    IMPOSSIBLE = "it asks for what it can't get"
    UNKNOWN = "for a reason that we don't know"

    @property
    def is_hopeless(self) -> bool:
        """Whether the job doesn't start unless somebody does something."""
        return self in (PendingReason.SPENT, PendingReason.HELD, PendingReason.IMPOSSIBLE)


_REASONS = {
    PendingReason.TURN: "None Priority Resources Dependency BeginTime Licenses Prolog Cleaning "
    "FedJobLock Reservation Constraints SchedDefer BurstBufferResources BurstBufferStageIn "
    "MpiPortsBusy NvidiaImexChannels "
    # What ended the attempt before, of a job that Slurm put back into the queue:
    "TimeLimit NonZeroExitCode RaisedSignal InactiveLimit OutOfMemory",
    PendingReason.MACHINE: "PartitionDown PartitionInactive PartitionNodeLimit ReqNodeNotAvail "
    "NodeDown FrontEndDown PowerNotAvail PowerReserved BlockMaxError BlockFreeAction "
    "SystemFailure MaxPoweredUpNodes JobLaunchFailure",
    PendingReason.LIMIT: "AssociationJobLimit AssociationResourceLimit JobArrayTaskLimit "
    "AccountingPolicy AssocMaxJobsLimit AssocMaxSubmitJobLimit QOSJobLimit QOSResourceLimit "
    "QOSUsageThreshold",
    PendingReason.SPENT: "AssociationTimeLimit QOSTimeLimit AssocGrpWallLimit QOSGrpWallLimit",
    PendingReason.HELD: "JobHeldUser JobHeldAdmin JobHoldMaxRequeue ReservationDeleted "
    "BurstBufferOperation",
    PendingReason.IMPOSSIBLE: "DependencyNeverSatisfied BadConstraints InvalidAccount InvalidQOS "
    "AccountNotAllowed QOSNotAllowed PartitionTimeLimit PartitionConfig MaxMemPerLimit DeadLine "
    "ReservationInvalid QOSMinCpuNotSatisfied",
}
_KIND_OF = {word: kind for kind, words in _REASONS.items() for word in words.split()}

#: Slurm has a reason for every limit on every resource; their names are built by rule.
_RULES = (
    (r"(Assoc|QOS)Grp\w*RunMinutes(Limit)?", PendingReason.LIMIT),
    (r"(Assoc|QOS)Grp\w*Minutes(Limit)?", PendingReason.SPENT),
    (r"(Assoc|QOS)Grp\w+", PendingReason.LIMIT),
    (r"(Assoc|QOS)Max\w*Per(Job|Node)(Limit)?", PendingReason.IMPOSSIBLE),
    (r"QOSMin\w+", PendingReason.IMPOSSIBLE),
    (r"(QOS)?Max\w*Per(User|Account)(Limit)?", PendingReason.LIMIT),
)


def classify_reason(reason: str) -> PendingReason:
    """What a pending job's reason means; Slurm may add details after a comma or in brackets."""
    word = re.split(r"[\s,(]", reason.strip().strip("()"), maxsplit=1)[0]
    if re.search(r"requeued[ _].*(held|special exit)", reason.replace("_", " ")):
        return PendingReason.HELD
    if word in _KIND_OF:
        return _KIND_OF[word]
    return next((kind for rule, kind in _RULES if re.fullmatch(rule, word)), PendingReason.UNKNOWN)


def next_sighting(before: ObservedState, after: ObservedState) -> ObservedState:
    """What is known of a job after another look at it.

    An answer that says nothing (UNKNOWN, ABSENT) doesn't unsay that a job is over, and an answer
    older than what is known changes nothing. A job back in the queue, or started later than
    before, is in its next attempt.
    """
    if before.state.is_over and not after.state.is_known:
        return before
    started = before.started_at if after.started_at is None else after.started_at
    if starts_again(before.state, after.state):
        return replace(after, attempt=before.attempt + 1)
    if _started_later(before, after) and before.state not in _WAITING:
        return replace(after, attempt=before.attempt + 1)
    if not may_follow(before.state, after.state):
        return before
    return replace(after, attempt=before.attempt, started_at=started)


def _started_later(before: ObservedState, after: ObservedState) -> bool:
    return (
        before.started_at is not None
        and after.started_at is not None
        and after.started_at > before.started_at
    )


@dataclass(frozen=True)
class NodeFailures:
    """Which nodes failed in which jobs; a node that failed in two is to be left out.

    One job counts once, however often it is seen.

    Attributes:
        jobs: by node, the jobs that it failed in.
        most: failures that a node may have before it is left out.
    """

    jobs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    most: int = 1

    def failed(self, job: str, nodes: Collection[str]) -> Self:
        """With one more failure.

        Args:
            nodes: those that were down.
        """
        added = {node: self.jobs.get(node, frozenset()) | {job} for node in nodes}
        return replace(self, jobs={**self.jobs, **added})

    @property
    def excluded(self) -> tuple[str, ...]:
        """Nodes to be left out of the next jobs, in order of name."""
        return tuple(sorted(node for node, jobs in self.jobs.items() if len(jobs) > self.most))

    def words(self) -> tuple[str, ...]:
        """For a person, a line a node that is left out."""
        return tuple(
            f"node {node} failed in {len(self.jobs[node])} jobs "
            f"({', '.join(sorted(self.jobs[node]))}) and is left out from now on"
            for node in self.excluded
        )
