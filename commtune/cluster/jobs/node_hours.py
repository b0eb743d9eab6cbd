"""Counts node-hours of jobs: by their own times at first, later by the scheduler's accounts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from commtune.cluster.jobs.submission import CLOCKS_S, TrackedJob
from commtune.cluster.scheduler import AccountedJob, Scheduler, SchedulerFault, sum_node_hours
from commtune.model import JobRecord
from commtune.tuner.ports import JobBook

#: Seconds between two queries of the accounts, and the most queries for a job.
_EVERY_S, _MOST_TIMES = 60.0, 5
#: Accounts have whole seconds: an attempt may have lasted up to so many seconds longer.
_ROUNDED_S = 1.0


@dataclass(frozen=True)
class _Open:
    """A finished job whose node-hours the accounts haven't given yet."""

    job: JobRecord
    least_s: float  # a lower bound of the seconds that it had its nodes, by its own files
    times: int = 0  # number of queries so far


@dataclass
class NodeHourAccount:
    """The node-hours that a campaign used, and those that its limit leaves."""

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
        """The node-hours that the campaign's jobs used."""
        if self._used is None:
            self._used = self.book.node_hours()
        return self._used

    @property
    def used_s(self) -> float:
        """The same in seconds of a job with all its nodes."""
        return self.used * 3600 / self.nodes

    def left_s(self, under_way: Iterable[TrackedJob]) -> float:
        """Returns the seconds that the limit leaves to jobs beside those in flight."""
        if self.limit is None:
            return math.inf
        now = self.clock()
        committed_s = sum(
            max(tracked.expected_s, now - (tracked.job.started_at or now)) for tracked in under_way
        )
        return (self.limit - self.used) * 3600 / self.nodes - committed_s

    def add_job(self, tracked: TrackedJob) -> None:
        """Adds a finished job by its own times, and stores its record."""
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
        """Corrects finished jobs by the accounts: one query for all, at most every minute."""
        if not self._open or self.clock() < self._next_at:
            return
        self._next_at = self.clock() + _EVERY_S
        since = min(one.job.prepared_at for one in self._open.values()) - CLOCKS_S
        try:
            records = self.scheduler.account(list(self._open), since)
        except SchedulerFault:
            return  # their own times count, unless a later query is answered
        for number, one in list(self._open.items()):
            attempts = [attempt for attempt in records if attempt.number == number]
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
    """Returns a lower bound of the seconds that a job had its nodes, by its exit records."""
    last = tracked.folder.finished()
    runs = (tracked.folder.ending(position) for position in range(len(tracked.requests)))
    endings = [last] if last else [ending for ending in runs if ending]
    if not endings:
        return 0.0
    return max(0.0, max(e.ended_at for e in endings) - min(e.began_at for e in endings))


def _hours(attempts: Sequence[AccountedJob], one: _Open) -> float:
    """Returns the node-hours by the accounts, or by the job's files if these say slightly more.

    The accounts round down to whole seconds, so that most jobs of less than a second have 0.
    Files that differ by more than that include suspended time, which doesn't count.
    """
    hours = sum_node_hours(attempts)
    own = one.least_s * one.job.node_count / 3600
    began = [attempt for attempt in attempts if attempt.observed.started_at is not None]
    nodes = sum(attempt.node_count for attempt in began)
    rounded = nodes * _ROUNDED_S / 3600
    return own if hours < own < hours + rounded or not nodes else hours
