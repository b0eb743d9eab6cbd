"""Node-hours: what jobs used, by their own times at first and by the accounts once these know."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from commtune.cluster.slurm.accounting import Accounting, node_hours, use_in_accounts
from commtune.cluster.slurm.flight import Flight
from commtune.cluster.slurm.queries import SlurmFault
from commtune.model import JobRecord
from commtune.tuner.ports import JobBook

#: Seconds between two questions to the accounts, and how often one job is asked about.
_EVERY_S, _MOST_TIMES = 60.0, 5


@dataclass
class Spending:
    """Keeps count of node-hours.

    Attributes:
        limit: node-hours that the campaign may use; ``None`` for no limit.
        nodes: of each job.
        accounting: ``None`` where the site keeps no accounts.
    """

    book: JobBook
    nodes: int
    limit: float | None
    accounting: Accounting | None
    clock: Callable[[], float]
    _used: float | None = field(default=None, init=False)
    _open: dict[str, tuple[JobRecord, int]] = field(default_factory=dict, init=False)
    _next_at: float = field(default=0.0, init=False)

    @property
    def used(self) -> float:
        """Node-hours of the jobs that are over."""
        if self._used is None:
            self._used = self.book.node_hours()
        return self._used

    @property
    def used_s(self) -> float:
        """The same as seconds that jobs had all of their nodes."""
        return self.used * 3600 / self.nodes

    def left_s(self, under_way: Iterable[Flight]) -> float:
        """Seconds that jobs of this many nodes may still take, those under way taken off."""
        if self.limit is None:
            return math.inf
        now = self.clock()
        committed_s = sum(
            max(flight.expected_s, now - (flight.job.started_at or now)) for flight in under_way
        )
        return (self.limit - self.used) * 3600 / self.nodes - committed_s

    def landed(self, flight: Flight) -> None:
        """Notes what a job that is over used by its own times, and stores the job with it."""
        job = flight.job
        used = 0.0
        if job.started_at is not None and job.ended_at is not None:
            used = max(0.0, job.ended_at - job.started_at) * job.node_count / 3600
        self._used = self.used + used - job.node_hours
        self.book.put_job(flight.noted(node_hours=used))
        if self.accounting is not None and job.number:
            self._open[job.number] = (flight.job, 0)

    def settle(self, *, at_once: bool = False) -> None:
        """Asks the accounts about jobs that landed, all in one call and not often."""
        if self.accounting is None or not self._open:
            return
        if not at_once and self.clock() < self._next_at:
            return
        self._next_at = self.clock() + _EVERY_S
        since = min(job.prepared_at for job, _ in self._open.values()) - 300
        try:
            records = self.accounting.look(list(self._open), since)
        except SlurmFault:
            return  # by their own times, then, unless a later question is answered
        for number, (job, times) in list(self._open.items()):
            attempts = [r for r in records if number in (r.id, r.number)]
            if attempts and attempts[-1].sighting.state.is_over:
                self._corrected(job, node_hours(use_in_accounts(r) for r in attempts))
                del self._open[number]
            elif times + 1 >= _MOST_TIMES:
                del self._open[number]
            else:
                self._open[number] = (job, times + 1)

    def _corrected(self, job: JobRecord, hours: float) -> None:
        self._used = self.used + hours - job.node_hours
        self.book.put_job(replace(job, node_hours=hours))
