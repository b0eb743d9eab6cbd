"""Reports why no job of a campaign starts, and ends the campaign after a time limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from commtune.cluster.job_states import JobState, PendingReason
from commtune.cluster.jobs.submission import TrackedJob
from commtune.cluster.scheduler import GOES_ON, Scheduler, SchedulerFault
from commtune.errors import EnvironmentFault
from commtune.formatting import format_duration, format_wall_time

#: Seconds before the first message, between messages with a new reason, and with the same one.
_FIRST_S, _NEWS_S, _REPEAT_S = 5.0, 60.0, 600.0
_QUEUED = (JobState.UNKNOWN, JobState.PENDING)


@dataclass
class QueueWait:
    """The time for which all jobs of a campaign have been pending."""

    scheduler: Scheduler
    clock: Callable[[], float]  # seconds since 1970
    say: Callable[[str], None]  # tells a person
    #: Seconds for which all jobs may be pending; ``None`` for no limit.
    limit_s: float | None = None
    _since: float | None = field(default=None, init=False)
    _said_at: float | None = field(default=None, init=False)
    _said: str = field(default="", init=False)  # the last message's reason

    def check(self, tracked_jobs: Sequence[TrackedJob]) -> None:
        """Checks all jobs in flight; reports the reason if all are pending.

        Raises:
            EnvironmentFault: all were pending for too long; they are cancelled, if possible.
        """
        waiting = [tracked for tracked in tracked_jobs if tracked.job.number]
        # A job's own file shows that it started before the queue is polled again.
        if not waiting or not all(
            tracked.observed.state in _QUEUED and not tracked.folder.job_number()
            for tracked in waiting
        ):
            self._since, self._said_at = None, None
            return
        if waiting[0].observed.state is not JobState.PENDING:
            return  # the queue wasn't polled yet
        now = self.clock()
        self._since = now if self._since is None else self._since
        waited_s, first = now - self._since, waiting[0]
        if self.limit_s is not None and waited_s >= self.limit_s:
            try:
                self.scheduler.cancel([tracked.job.number for tracked in waiting])
            except SchedulerFault as fault:
                self.say(f"jobs stay in the queue until 'commtune cancel': {fault.message}")
            raise EnvironmentFault(
                f"no job started within {format_duration(self.limit_s)} ('pending_time'): "
                f"{_why(first)}",
                hint=f"{GOES_ON}\n"
                "another 'partition', 'qos' or 'queue', a shorter 'block_time' or a longer "
                f"'pending_time' below '{self.scheduler.name.lower()}' may help",
            )
        pause_s = _REPEAT_S if first.observed.reason == self._said else _NEWS_S
        is_due = waited_s >= _FIRST_S if self._said_at is None else now - self._said_at >= pause_s
        if is_due:
            more = f", and {len(waiting) - 1} more" if len(waiting) > 1 else ""
            self.say(f"waiting for {format_wall_time(waited_s)}: {_why(first)}{more}")
            self._said_at, self._said = now, first.observed.reason


def _why(tracked: TrackedJob) -> str:
    observed = tracked.observed
    pending = observed.pending or PendingReason.UNKNOWN
    return f"job {tracked.job.number} is pending, {observed.reason or 'no reason'} ({pending})"
