"""Makes runs one by one, beside the controller, behind the port of batches."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from commtune.model import Execution, Outcome, RunRequest, RunResult
from commtune.tuner.ports import Benchmark


@dataclass
class LocalBatches:
    """Implements ``tuner.ports.Batches``, of width 1, over a benchmark.

    Args:
        clock: of budgets, seconds; a replay has its own.
        most_left_s: returns the seconds until the first limit, such as the end of an allocation.
    """

    benchmark: Benchmark
    clock: Callable[[], float] = time.monotonic
    most_left_s: Callable[[], float] = lambda: math.inf
    is_detached = False
    most_in_flight = 1
    _due: list[Callable[[], list[RunResult]]] = field(default_factory=list)

    @property
    def simulated(self) -> bool:
        return self.benchmark.simulated

    @property
    def in_flight(self) -> int:
        return len(self._due)

    def submit(self, requests: Sequence[RunRequest], time_limit_s: float) -> None:
        """Queues the runs, which ``collect`` makes."""
        self._due.append(lambda: [self.benchmark.measure(r, time_limit_s) for r in requests])

    def collect(self) -> Sequence[RunResult]:
        """Makes the runs at the head of the queue; they leave it even if one raises."""
        return self._due.pop(0)() if self._due else []

    def settled(self) -> None:
        """Does nothing: nothing is kept for runs whose results are stored."""

    def adopt(self, requests: Sequence[RunRequest]) -> None:
        """Queues the recovery of runs, whose processes ``collect`` ends and records it reads."""
        self._due.append(lambda: [self._recovered(request) for request in requests])

    def _recovered(self, request: RunRequest) -> RunResult:
        lost = RunResult(request.run_id, Outcome.INTERRUPTED, started_at=0.0, wall_s=0.0)
        return self.benchmark.recover(request) or lost

    def trace(self, request: RunRequest, time_limit_s: float) -> Execution | None:
        return self.benchmark.trace(request, time_limit_s)

    def used_s(self) -> float:
        """Returns the clock, so the budget pays for the time between runs as well."""
        return self.clock()

    def left_s(self) -> float:
        return self.most_left_s()
