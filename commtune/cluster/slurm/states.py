"""Slurm's words for a job's state and for why it waits, in ours.

The words are those of Slurm's own sources and manuals, 22.05 to 25.11 (see docs/slurm-states.md).
A word that isn't among them stays UNKNOWN and is kept; a job that Slurm doesn't name is ABSENT.
Neither is ever taken for the end of a job. Nothing here does I/O.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from commtune.cluster.job_states import JobState, ObservedState, PendingReason

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
_WORDS: Mapping[str, JobState] = {**_BASE_OF, **_FLAG_OF}

_CANCELLED_BY = re.compile(r"CANCELLED\s+by\s+(\d{1,10})", re.ASCII)


def read_state(text: str, *, reason: str = "", started_at: float | None = None) -> ObservedState:
    """Our state for what Slurm printed: a word, a short code, or several joined by commas.

    ``CANCELLED by 1000`` keeps who did it. A pending job whose reason says that it doesn't start
    by itself is NEVER_STARTED. Never raises, whatever the text.
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
    """One state for all the words that hold for a job together."""
    given = {word.strip() for word in words} - _NO_MATTER
    if not given or not given <= _WORDS.keys():
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
    return not (flag in _WHILE_ALIVE and base is not None and base.is_over)


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
