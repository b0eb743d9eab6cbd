"""Measuring one size: first call, warm-up, batch, samples, check; as in src/timing/measure.cpp."""

from __future__ import annotations

import math
import operator
import time
from dataclasses import dataclass, field
from typing import Any

from commtune.kernels.python_bench.data import DataPattern
from commtune.kernels.python_bench.devices import Memory
from commtune.kernels.python_bench.faults import UsageFault
from commtune.kernels.python_bench.options import Options
from commtune.kernels.python_bench.sampling import batch_for, summarise_samples
from commtune.kernels.python_bench.work import Work
from commtune.kernels.python_bench.world import World

_FEWEST_TRIALS, _MOST_TRIALS = 3, 6
_SURELY_LONG_S = 20e-3  # longer than the kernel stops a process for another
_clock = time.perf_counter  # CLOCK_MONOTONIC


def _clock_resolution_s() -> float:
    """The smallest step of the clock that Python sees."""
    smallest = math.inf
    for _ in range(100):
        before = after = time.perf_counter_ns()
        while after == before:
            after = time.perf_counter_ns()
        smallest = min(smallest, after - before)
    return smallest * 1e-9


@dataclass
class SizeResult:
    """What came of one size; whole on rank 0 only."""

    work: Work
    first_call_s: float = 0.0
    warmup: int = 0
    batch: int = 1
    samples_s: list[float] = field(default_factory=list)
    stop: str = "max-samples"
    rank_skew: float | None = None
    checked: int = 0
    wrong: int = 0
    elapsed_s: float = 0.0


class Measurer:
    """Measures sizes one after the other; all ranks call it alike."""

    def __init__(
        self, options: Options, world: World, memory: Memory, send: Any, received: Any
    ) -> None:
        self._options = options
        self._rule = options.rule
        self._operations = options.operations
        self._world = world
        self._memory = memory
        self._received = received
        self._data = DataPattern(
            memory.xp, options.dtype, options.reduction, options.seed, world.size
        )
        self._data.fill(send, world.rank)
        self.resolution_s = world.from_first(_clock_resolution_s())

    def measure(self, work: Work) -> SizeResult:
        began = _clock()
        result = SizeResult(work)
        self._poison(work)
        result.first_call_s = self._longest(self._timed(work, 1))
        self._check(result)
        warm_began = _clock()
        operation_s = self._warm_up(result)
        result.batch = self._operations or self._choose_batch(work, operation_s)
        self._poison(work)
        spent_s = _clock() - warm_began  # without the first call, however slow it was
        self._take_samples(result, spent_s, result.batch * operation_s)
        self._check(result)
        result.elapsed_s = _clock() - began
        return result

    def _timed(self, work: Work, times: int) -> float:
        """The timed interval: this rank's seconds per operation."""
        run = work.run
        self._world.comm.Barrier()
        begin = _clock()
        for _ in range(times):
            run()
        end = _clock()
        return (end - begin) * work.layout.time_share / times

    def _longest(self, seconds: float) -> float:
        """The same number on every rank, so that all decide alike."""
        return self._world.from_first(self._world.to_first([seconds], max)[0])

    def _warm_up(self, result: SizeResult) -> float:
        """Returns the time of a warm operation, seconds."""
        began = _clock()
        operation_s = slowest_s = result.first_call_s
        while True:
            following = self._world.from_first(
                self._rule.next_warmup(result.warmup, _clock() - began, slowest_s)
            )
            if following == 0:
                return operation_s
            operation_s = slowest_s = self._longest(self._timed(result.work, following))
            result.warmup += following

    def _choose_batch(self, work: Work, operation_s: float) -> int:
        """A choice is tried, and made again from the shortest time seen, until it stands."""
        batch = batch_for(operation_s, self.resolution_s)
        for trial in range(1, _MOST_TRIALS + 1):
            if operation_s >= _SURELY_LONG_S:
                break
            tried = batch
            operation_s = min(operation_s, self._longest(self._timed(work, tried)))
            batch = batch_for(operation_s, self.resolution_s)
            if batch == tried and trial >= _FEWEST_TRIALS:
                break
        return batch

    def _take_samples(self, result: SizeResult, spent_s: float, sample_s: float) -> None:
        world, work = self._world, result.work
        began = _clock()
        shortest: list[float] = []
        following = world.from_first(self._rule.next_chunk(0, sample_s))
        while following:
            own = [self._timed(work, result.batch) for _ in range(following)]
            result.samples_s += world.to_first(own, max)
            shortest += world.to_first(own if work.takes_part else [math.inf] * following, min)
            sampling_s = _clock() - began
            taken = len(result.samples_s)
            stop = self._rule.stop(result.samples_s, spent_s + sampling_s)
            further = 0 if stop else self._rule.next_chunk(taken, sampling_s / taken)
            following, result.stop = world.from_first((further, stop or ""))
        result.rank_skew = _skew(result.samples_s, shortest) if world.size > 1 else None

    def _poison(self, work: Work) -> None:
        if self._options.check:
            self._data.poison(self._received[: work.layout.receive_count])
            self._memory.settle()

    def _check(self, result: SizeResult) -> None:
        self._demand_complete(result.work)
        if not self._options.check:
            return
        own = self._data.count_wrong(self._received, result.work.expected)
        checked, wrong = self._world.to_first(own, operator.add)
        result.checked += checked
        result.wrong += wrong

    def _demand_complete(self, work: Work) -> None:
        """Refuses messages that nobody waited for: their times would be those of starting them."""
        if work.incomplete is None:
            return
        said = self._world.gather(work.incomplete())
        if words := self._world.from_first(next((w for w in said if w), "")):
            raise UsageFault(words)


def _skew(longest: list[float], shortest: list[float]) -> float | None:
    ratios = [a / b for a, b in zip(longest, shortest, strict=True) if 0 < b < math.inf]
    return summarise_samples(ratios).median if ratios else None
