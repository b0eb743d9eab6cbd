"""The last state of a job in a scheduler's accounts."""

from __future__ import annotations

from collections.abc import Iterable

from commtune.cluster.job_states import JobState, ObservedState
from commtune.cluster.scheduler import AccountedJob


def state_in_accounts(accounts: Iterable[AccountedJob], job: str) -> ObservedState:
    """Returns a job's state by the accounts; ABSENT if they don't list it."""
    own = [attempt for attempt in accounts if attempt.number == job]
    return own[-1].observed if own else ObservedState(JobState.ABSENT)
