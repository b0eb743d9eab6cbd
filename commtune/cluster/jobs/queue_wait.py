"""A campaign of which no job starts: says what it waits for, and ends it after a limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from commtune.cluster.job_states import JobState, PendingReason
from commtune.cluster.jobs.submission import TrackedJob
from commtune.cluster.scheduler import Scheduler
from commtune.errors import EnvironmentFault
from commtune.formatting import format_duration, format_wall_time

#: Seconds before the first word, between two about another reason, and between two at all.
_FIRST_S, _NEWS_S, _REPEAT_S = 5.0, 60.0, 600.0
_QUEUED = (JobState.UNKNOWN, JobState.PENDING)


@dataclass
class QueueWait:
    scheduler: Scheduler
    clock: Callable[[], float]  # seconds since 1970
    say: Callable[[str], None]  # tells a person
    #: Seconds for which jobs may wait while none runs; ``None`` for no limit.
    limit_s: float | None = None
    _since: float | None = field(default=None, init=False)
    _said_at: float | None = field(default=None, init=False)
    _said: str = field(default="", init=False)  # the reason

    def check(self, tracked_jobs: Sequence[TrackedJob]) -> None:
        """Looks at all jobs in flight.

        Raises:
            EnvironmentFault: none ran for too long; those that wait are cancelled.
        """
        waiting = [tracked for tracked in tracked_jobs if tracked.job.number]
        if not waiting or not all(_is_queued(tracked) for tracked in waiting):
            self._since, self._said_at = None, None
            return
        if waiting[0].observed.state is not JobState.PENDING:
            return  # the scheduler was not asked yet
        now = self.clock()
        self._since = now if self._since is None else self._since
        waited_s, first = now - self._since, waiting[0]
        if self.limit_s is not None and waited_s >= self.limit_s:
            self.scheduler.cancel([tracked.job.number for tracked in waiting])
            raise EnvironmentFault(
                f"no job started within {format_duration(self.limit_s)} ('pending_time'): "
                f"{_why(first)}",
                hint="what was measured is kept; the same command continues\n"
                "another 'partition', 'qos' or 'queue', a shorter 'block_time' or a longer "
                f"'pending_time' below '{self.scheduler.name.lower()}' may help",
            )
        pause_s = _REPEAT_S if first.observed.reason == self._said else _NEWS_S
        is_due = waited_s >= _FIRST_S if self._said_at is None else now - self._said_at >= pause_s
        if is_due:
            more = f", and {len(waiting) - 1} more" if len(waiting) > 1 else ""
            self.say(f"waiting for {format_wall_time(waited_s)}: {_why(first)}{more}")
            self._said_at, self._said = now, first.observed.reason


def _is_queued(tracked: TrackedJob) -> bool:
    # Its own file tells that it began before the queue is asked again.
    return tracked.observed.state in _QUEUED and not tracked.folder.job_number()


def _why(tracked: TrackedJob) -> str:
    observed = tracked.observed
    pending = observed.pending or PendingReason.UNKNOWN
    return f"job {tracked.job.number} is pending, {observed.reason or 'no reason'} ({pending})"
