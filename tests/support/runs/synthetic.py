"""A made-up machine behind the benchmark port: known truth, chosen noise, a clock of its own.

It is marked as simulated, as everything that does not measure must be.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from commtune.model import (
    Configuration,
    Execution,
    Measurement,
    Outcome,
    RunRequest,
    RunResult,
)
from commtune.tuner.effective.settings import Setting, Told, judge_execution

#: Seconds for a configuration and a size, without noise, at the fast machine state.
Truth = Callable[[Configuration, int], float]


@dataclass
class VirtualClock:
    """Time that passes only in runs."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class SyntheticBenchmark:
    """Implements ``tuner.ports.Benchmark`` over a formula.

    Attributes:
        slow_share: share of runs that meet the slow machine state.
        slow_factor: how much longer everything takes then.
        outcomes: configurations that fail, by a variable and value that they hold.
        machine: what becomes of the run with a number, from 1, whatever its configuration.
        load: gives what others used of the cores during a run.
        own: values that the made-up library holds where nothing is asked of it; with any, runs can
            be traced. A choice among its ways that depends on whether a variable is there at all
            goes into ``present``.
        present: a variable whose mere presence makes the library do something else.
    """

    truth: Truth
    clock: VirtualClock
    seed: int = 1
    noise: float = 0.03
    slow_share: float = 0.0
    slow_factor: float = 3.0
    run_s: float = 0.2
    outcomes: Mapping[tuple[str, str], Outcome] = field(default_factory=dict)
    machine: Callable[[int], Outcome] = lambda _: Outcome.OK
    load: Callable[[], float | None] = lambda: None
    own: Mapping[str, str] = field(default_factory=dict)
    present: str = ""
    simulated: bool = True
    runs: list[RunRequest] = field(default_factory=list)
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    def measure(self, request: RunRequest, time_limit_s: float) -> RunResult:
        """One run, in no time at all."""
        self.runs.append(request)
        outcome = self.machine(len(self.runs))
        if outcome is Outcome.OK:
            outcome = self._outcome(request.configuration)
        wall_s = time_limit_s if outcome is Outcome.TIMED_OUT else self.run_s
        started, self.clock.now = self.clock.now, self.clock.now + wall_s
        measurements = self._measurements(request) if outcome is Outcome.OK else ()
        return RunResult(
            request.run_id, outcome, started, wall_s, measurements, other_load=self.load()
        )

    def recover(self, request: RunRequest) -> RunResult | None:
        """Nothing is ever left of a run."""
        del request
        return None

    def trace(self, request: RunRequest, time_limit_s: float) -> Execution | None:
        """What the made-up library holds; a formula without one executes nothing."""
        del time_limit_s
        if not self.own:
            return None
        asked = request.configuration
        settings = [
            Setting(name, Told.HELD, asked.get(name), asked.get(name, value))
            for name, value in self.own.items()
        ]
        gone = asked.keys() - self.own.keys()
        settings += [Setting(name, Told.ABSENT, asked[name]) for name in sorted(gone)]
        did = ["no choice by itself"] if self.present in asked else []
        return judge_execution(asked, str(request.workload.operation), settings, did=did)

    def _outcome(self, configuration: Configuration) -> Outcome:
        for item in configuration.items():
            if item in self.outcomes:
                return self.outcomes[item]
        return Outcome.OK

    def _measurements(self, request: RunRequest) -> tuple[Measurement, ...]:
        slow = self.rng.random() < self.slow_share
        factor = self.slow_factor if slow else 1.0
        canary = (430e-9 if slow else 80e-9) * self.rng.lognormvariate(0, 0.05)
        found = []
        for size in request.workload.sizes:
            median = self.truth(request.configuration, size) * factor
            median *= self.rng.lognormvariate(0, self.noise)
            found.append(
                Measurement(
                    bytes=size,
                    median_s=median,
                    min_s=median,
                    mean_s=median,
                    p95_s=median,
                    max_s=median,
                    algbw=size / median,
                    busbw=size / median,
                    samples_s=(median,),
                    canary_s=canary,
                    canary_after_s=canary * 1.0,  # an object of its own, as if it were measured
                )
            )
        return tuple(found)
