"""States of jobs for all schedulers, and their transitions.

A missing answer is never the end of a job: a word that isn't known makes it UNKNOWN, a complete
answer that doesn't list it ABSENT.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum


class JobState(StrEnum):
    """The state of a job.

    ::

        pending ──► running ◄─► suspended
           │           └──► completing ──► completed, failed, timed-out, out-of-memory,
           └► never-started                node-failure, preempted or cancelled

    NEVER_STARTED is a job that won't start by itself: it is held, depends on something that can't
    happen, or requests more than there is. A user or operator can still release it.
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
        """Whether this attempt of the job has ended, by the scheduler."""
        return self in _OVER

    @property
    def stops_campaign(self) -> bool:
        """Whether a person has to act before further jobs make sense."""
        return self in (JobState.CANCELLED, JobState.NEVER_STARTED)


_WAITING = frozenset({JobState.PENDING, JobState.NEVER_STARTED})
_ANY = frozenset(JobState)
_SILENCE = frozenset({JobState.UNKNOWN, JobState.ABSENT})
_BEGUN = frozenset({JobState.RUNNING, JobState.SUSPENDED, JobState.COMPLETING})
_OVER = _ANY - _WAITING - _SILENCE - _BEGUN

#: The states that may be observed next of the same attempt; between two polls any number of states
#: may pass. UNKNOWN and ABSENT say nothing about the job, so they may follow, and precede, any.
_FOLLOWS: Mapping[JobState, frozenset[JobState]] = {
    **dict.fromkeys(_WAITING | _SILENCE, _ANY),
    JobState.RUNNING: _BEGUN | _OVER | _SILENCE,
    JobState.SUSPENDED: _BEGUN | _OVER | _SILENCE,
    JobState.COMPLETING: frozenset({JobState.COMPLETING}) | _OVER | _SILENCE,
    **{state: frozenset({state}) | _SILENCE for state in _OVER},
}


class PendingReason(StrEnum):
    """Kinds of reasons for which a job is pending."""

    TURN = "its turn has not come"
    MACHINE = "the machine or partition is not available"
    LIMIT = "a limit on running jobs is reached"
    SPENT = "the account's or QOS's hours are used up"
    HELD = "it is held"
    IMPOSSIBLE = "it requests what it can't get"
    UNKNOWN = "for an unknown reason"

    @property
    def is_hopeless(self) -> bool:
        """Whether the job won't start unless somebody intervenes."""
        return self in (PendingReason.SPENT, PendingReason.HELD, PendingReason.IMPOSSIBLE)


@dataclass(frozen=True)
class ObservedState:
    """A scheduler's answer about a job at one time."""

    state: JobState
    word: str = ""  # the scheduler's own name of the state
    reason: str = ""  # the scheduler's reason why it is pending or ended; empty for none
    #: Id of the user who cancelled it, if known.
    cancelled_by: int | None = None
    #: When this attempt started, seconds since 1970; ``None`` if it hasn't.
    started_at: float | None = None
    #: The kind of the reason, for a pending job.
    pending: PendingReason | None = field(default=None, compare=False)

    def updated(self, after: ObservedState) -> ObservedState:
        """Returns what is known of a job after another answer.

        A job that is over stays so when an answer is UNKNOWN or ABSENT. Outdated answers, which
        can't follow what is known, change nothing. A job that is pending again, or has a later
        start, was requeued: nothing that was known of its earlier attempt is kept.
        """
        if self.state.is_over and after.state in _SILENCE:
            return self
        is_later = (after.started_at or 0.0) > (self.started_at or math.inf)
        if after.state in _WAITING or is_later:
            return after
        if after.state not in _FOLLOWS[self.state]:
            return self
        started_at = self.started_at if after.started_at is None else after.started_at
        return replace(after, started_at=started_at)
