"""Node-hours: what jobs used, by their own times at first and by the accounts once these know."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from commtune.cluster.jobs.submission import TrackedJob
from commtune.cluster.scheduler import AccountedJob, Scheduler, SchedulerFault, sum_node_hours
from commtune.model import JobRecord
from commtune.tuner.ports import JobBook

#: Seconds between two questions to the accounts, and how often one job is asked about.
_EVERY_S, _MOST_TIMES = 60.0, 5
#: Accounts count whole seconds: an attempt may have lasted up to so much longer.
_ROUNDED_S = 1.0


@dataclass(frozen=True)
class _Open:
    """A job that is over, and that the accounts have yet to tell of."""

    job: JobRecord
    least_s: float  # seconds that it had its nodes at least, by its own files
    times: int = 0  # how often the accounts were asked


@dataclass
class NodeHourAccount:
    book: JobBook
    nodes: int  # of each job
    limit: float | None  # node-hours that the campaign may use; ``None`` for no limit
    scheduler: Scheduler
    clock: Callable[[], float]
    _used: float | None = field(default=None, init=False)
    _open: dict[str, _Open] = field(default_factory=dict, init=False)
    _next_at: float = field(default=0.0, init=False)

    @property
    def used(self) -> float:
        if self._used is None:
            self._used = self.book.node_hours()
        return self._used

    @property
    def used_s(self) -> float:
        """The same as seconds that jobs had all of their nodes."""
        return self.used * 3600 / self.nodes

    def left_s(self, under_way: Iterable[TrackedJob]) -> float:
        """Seconds that jobs of this many nodes may still take, those under way taken off."""
        if self.limit is None:
            return math.inf
        now = self.clock()
        committed_s = sum(
            max(tracked.expected_s, now - (tracked.job.started_at or now)) for tracked in under_way
        )
        return (self.limit - self.used) * 3600 / self.nodes - committed_s

    def add_job(self, tracked: TrackedJob) -> None:
        """Notes what a job that is over used by its own times, and stores the job with it."""
        job = tracked.job
        used_s = least_s = _least_s(tracked)
        if job.started_at is not None and job.ended_at is not None:
            used_s = max(least_s, job.ended_at - job.started_at)
        used = used_s * job.node_count / 3600
        self._used = self.used + used - job.node_hours
        self.book.put_job(tracked.update(node_hours=used))
        if self.scheduler.keeps_accounts and job.number:
            self._open[job.number] = _Open(tracked.job, least_s)

    def settle(self) -> None:
        """Asks the accounts about jobs that are over, all in one call and not often."""
        if not self._open or self.clock() < self._next_at:
            return
        self._next_at = self.clock() + _EVERY_S
        since = min(one.job.prepared_at for one in self._open.values()) - 300
        try:
            records = self.scheduler.account(list(self._open), since)
        except SchedulerFault:
            return  # by their own times, then, unless a later question is answered
        for number, one in list(self._open.items()):
            attempts = [r for r in records if number in (r.id, r.number)]
            if attempts and attempts[-1].observed.state.is_over:
                self._correct(one.job, _hours(attempts, one))
                del self._open[number]
            elif one.times + 1 >= _MOST_TIMES:
                del self._open[number]
            else:
                self._open[number] = replace(one, times=one.times + 1)

    def _correct(self, job: JobRecord, hours: float) -> None:
        self._used = self.used + hours - job.node_hours
        self.book.put_job(replace(job, node_hours=hours))


def _least_s(tracked: TrackedJob) -> float:
    """Seconds that a job had its nodes at least: by its script's files, or else by its runs'."""
    last = tracked.folder.finished()
    runs = (tracked.folder.ending(position) for position in range(len(tracked.requests)))
    endings = [last] if last else [ending for ending in runs if ending]
    if not endings:
        return 0.0
    return max(0.0, max(e.ended_at for e in endings) - min(e.began_at for e in endings))


def _hours(attempts: Sequence[AccountedJob], one: _Open) -> float:
    """Node-hours by the accounts, or by the job's own files where these say a little more.

    Accounts give most jobs of less than a second as 0. Files that say more than that are wrong:
    a job that was suspended didn't use its nodes all the time.
    """
    hours = sum_node_hours(attempts)
    own = one.least_s * one.job.node_count / 3600
    began = [attempt for attempt in attempts if attempt.observed.started_at is not None]
    nodes = sum(attempt.node_count for attempt in began)
    rounded = nodes * _ROUNDED_S / 3600
    return own if hours < own < hours + rounded or not nodes else hours
