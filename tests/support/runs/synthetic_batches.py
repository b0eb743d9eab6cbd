"""A made-up machine that makes whole blocks, several at a time, and answers out of order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from synthetic import SyntheticBenchmark

from commtune.model import Execution, Outcome, RunRequest, RunResult


@dataclass
class SyntheticBatches:
    """Implements ``tuner.ports.Batches`` over a formula.

    Attributes:
        lost_share: share of blocks that are lost, as by the death of a node.
        most_seen: most blocks that were under way together.
        overhead: seconds that a job takes for each second of its runs.
        submitted, collected: identifiers of runs, in order.
    """

    machine: SyntheticBenchmark
    most_in_flight: int = 4
    lost_share: float = 0.0
    limit_s: float = inf
    overhead: float = 1.0
    seed: int = 1
    simulated: bool = True
    is_detached: bool = True
    most_seen: int = 0
    submitted: list[str] = field(default_factory=list)
    collected: list[str] = field(default_factory=list)
    adopted: list[int] = field(default_factory=list)
    blocks: list[tuple[RunRequest, ...]] = field(default_factory=list)
    rng: random.Random = field(init=False)
    _under_way: list[tuple[RunRequest, ...]] = field(default_factory=list)
    _spent_s: float = 0.0
    _unsettled: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    @property
    def in_flight(self) -> int:
        return len(self._under_way)

    def submit(self, requests: Sequence[RunRequest], time_limit_s: float) -> None:
        assert time_limit_s > 0
        assert requests
        self.submitted += [request.run_id for request in requests]
        self.blocks.append(tuple(requests))
        self._under_way.append(tuple(requests))
        self.most_seen = max(self.most_seen, self.in_flight)
        assert self.in_flight <= self.most_in_flight

    def collect(self) -> Sequence[RunResult]:
        """One of the blocks under way, whichever."""
        if not self._under_way:
            return []
        requests = self._under_way.pop(self.rng.randrange(len(self._under_way)))
        self.collected += [request.run_id for request in requests]
        self._unsettled += 1
        if self.rng.random() < self.lost_share:
            return [
                RunResult(r.run_id, Outcome.NODE_FAILURE, 0.0, 0.0, detail="n1 died")
                for r in requests
            ]
        results = [self.machine.measure(request, 10.0) for request in requests]
        self._spent_s += sum(result.wall_s for result in results)
        return results

    def settled(self) -> None:
        self._unsettled = 0

    def adopt(self, requests: Sequence[RunRequest]) -> None:
        self.adopted.append(requests[0].block)
        self._under_way.append(tuple(requests))

    def trace(self, request: RunRequest, time_limit_s: float) -> Execution | None:
        return self.machine.trace(request, time_limit_s)

    def used_s(self) -> float:
        return self._spent_s * self.overhead

    def left_s(self) -> float:
        under_way = sum(len(requests) for requests in self._under_way)
        return self.limit_s - self.overhead * (self._spent_s + under_way * self.machine.run_s)
