"""Where a job stands, in terms of no scheduler: what may follow what, and what to do about each.

Silence is never the end of a job: an unknown word is UNKNOWN, a job that isn't named is ABSENT.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum


class Policy(StrEnum):
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
        """Whether the scheduler said that this attempt of the job has ended."""
        return self in _OVER

    @property
    def is_known(self) -> bool:
        """Whether the scheduler said anything that we understand."""
        return self not in (JobState.UNKNOWN, JobState.ABSENT)

    @property
    def policy(self) -> Policy:
        return _POLICIES[self]


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
_OVER = _ANY - _WAITING - _SILENCE - _BEGUN

#: What may be seen next of the same attempt; between two looks any number of states may pass.
#: UNKNOWN and ABSENT say nothing about the job, so they may come at any time, and go.
_FOLLOWS: Mapping[JobState, frozenset[JobState]] = {
    **dict.fromkeys(_WAITING | _SILENCE, _ANY),
    JobState.RUNNING: _BEGUN | _OVER | _SILENCE,
    JobState.SUSPENDED: _BEGUN | _OVER | _SILENCE,
    JobState.COMPLETING: frozenset({JobState.COMPLETING}) | _OVER | _SILENCE,
    **{state: frozenset({state}) | _SILENCE for state in _OVER},
}


def _may_follow(before: JobState, after: JobState) -> bool:
    """Whether one attempt of a job can be seen in the one state and then in the other."""
    return after in _FOLLOWS[before]


def _starts_again(before: JobState, after: JobState) -> bool:
    """Whether the two states together say that the scheduler put the job back into the queue."""
    return before not in _WAITING | _SILENCE and after in _WAITING


class PendingReason(StrEnum):
    """Kinds of reasons for which a job waits in the queue."""

    TURN = "its turn has not come"
    MACHINE = "the machine or partition is not available"
    LIMIT = "a limit on running jobs is reached"
    SPENT = "the account's or QOS's hours are used up"
    HELD = "it is held"
    IMPOSSIBLE = "it requests what it can't get"
    UNKNOWN = "for an unknown reason"

    @property
    def is_hopeless(self) -> bool:
        """Whether the job doesn't start unless somebody does something."""
        return self in (PendingReason.SPENT, PendingReason.HELD, PendingReason.IMPOSSIBLE)


@dataclass(frozen=True)
class ObservedState:
    """What a scheduler said of a job at one time."""

    state: JobState  # ours
    word: str = ""  # the scheduler's, as it came
    reason: str = ""  # why it waits or ended, as it came; empty where nothing is said
    #: Number of the user who cancelled it, where that is known.
    cancelled_by: int | None = None
    #: When this attempt started, seconds since 1970; ``None`` if it hasn't.
    started_at: float | None = None
    attempt: int = 1  # which start of the job this is, from 1; counted by ``updated``
    #: What the reason means, of a job that waits.
    pending: PendingReason | None = field(default=None, compare=False)

    def updated(self, after: ObservedState) -> ObservedState:
        """What is known of a job after another look at it.

        An answer that says nothing (UNKNOWN, ABSENT) doesn't unsay that a job is over, and one
        older than what is known changes nothing. A job back in the queue, or started later than
        before, is in its next attempt.
        """
        if self.state.is_over and not after.state.is_known:
            return self
        started = self.started_at if after.started_at is None else after.started_at
        if _starts_again(self.state, after.state):
            return replace(after, attempt=self.attempt + 1)
        if _started_later(self, after) and self.state not in _WAITING:
            return replace(after, attempt=self.attempt + 1)
        if not _may_follow(self.state, after.state):
            return self
        return replace(after, attempt=self.attempt, started_at=started)


def _started_later(before: ObservedState, after: ObservedState) -> bool:
    return (
        before.started_at is not None
        and after.started_at is not None
        and after.started_at > before.started_at
    )
