"""Whole campaigns over made-up or recorded noise with planted effects: the truth is known.

Only the noise differs from a real campaign: search, ablation, confirmation and profiles are the
real ones, behind the real ports, with an in-memory store for speed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from quiet import QuietReporter

from commtune.campaign.plan import Budget, Plan
from commtune.cluster.environment_padding import pad_variables
from commtune.documents.yaml_document import parse_document
from commtune.model import (
    Configuration,
    Execution,
    Measurement,
    Operation,
    Outcome,
    RunRequest,
    RunResult,
    Workload,
)
from commtune.replay.recording import Grid
from commtune.spaces.loading import build_space
from commtune.spaces.space import Space
from commtune.tuner.campaign import Campaign, CampaignResult
from commtune.tuner.execution.in_memory_store import InMemoryStore
from commtune.tuner.execution.runner import Runner

SIZES = (8, 64, 1024, 8192, 65536, 262144, 1048576, 4194304)
#: Ten variables, none of which does anything by itself; effects are planted on some.
SPACE = """
space: 1
name: planted
version: 1
library: made-up
parameters:
""" + "\n".join(
    f"  - {{name: V{i}, kind: integer, values: [1, 2, 3], source: made up}}" for i in range(10)
)

#: Seconds added to the logarithm of the time by a configuration, at a size in bytes.
Effect = Callable[[Configuration, int], float]


def null(configuration: Configuration, size: int) -> float:
    """No configuration changes anything."""
    del configuration, size
    return 0.0


@dataclass(frozen=True)
class Planted:
    """A gain where variables have one value, from a size up; the other variables do nothing.

    Attributes:
        gain: 0.1 makes the times 1.1 times shorter.
        names: each brings its part of the gain; the parts multiply.
    """

    gain: float
    names: tuple[str, ...] = ("V3",)
    value: str = "2"
    from_bytes: int = 65536

    def __call__(self, configuration: Configuration, size: int) -> float:
        if size < self.from_bytes:
            return 0.0
        hits = sum(configuration.get(name) == self.value for name in self.names)
        return -hits / len(self.names) * math.log1p(self.gain)


@dataclass(frozen=True)
class Draw:
    """What noise one run met: by size the time in seconds, and the canaries around it."""

    times_s: Mapping[int, float]
    canaries_s: Mapping[int, tuple[float | None, float | None]]
    wall_s: float


#: Gives the noise of the next run.
Noise = Callable[[RunRequest], Draw]


def base_s(size: int) -> float:
    """A plausible time for a message, seconds."""
    return 0.2e-6 + size / 6e9


@dataclass
class MadeUpNoise:
    """Noise of one kind.

    - ``normal``: a fifth of the variance is common to all sizes of a run; ``shared``: all of it
      is; ``independent``: none is;
    - ``bimodal``: two speeds 1.5x apart by run, which no covariate tells apart;
    - ``sticky``: the same, and a run has the speed of the one before with a probability of 0.9;
    - ``autocorrelated``: what slows a run down slows the next ones, AR(1) with 0.7;
    - ``drifting``; ``heavy-tailed``; ``outliers``;
    - ``rounded``: normal, printed with two decimals of a microsecond;
    - ``first-slower``: the first run of each block takes 10 % longer;
    - ``every-second``, ``two-of-four``: so do runs by turns;
    - ``slow-launches``: 15 % of runs take three times as long; ``slow-with-gain``: of those only
      that have what a gain is planted on;
    - ``spread-by-configuration``: each configuration has a spread of its own, a third to three
      times the usual one, and the default the usual one;
    - ``environment-size``: 4 % faster or slower by where the stack begins, modulo 64 bytes. The
      environment is padded as in real runs; the pointers to its variables lie there as well.
    """

    kind: str
    rng: random.Random
    run_s: float = 0.165
    spread: float = 0.03
    runs: int = 0
    #: What a run leaves to the next one.
    last: float = 0.0

    def __post_init__(self) -> None:
        if self.kind == "environment-size":
            #: Lengths are random by block and folder.
            self.folder = Path(str(self.rng.random()))

    def __call__(self, request: RunRequest) -> Draw:
        self.last = self._shared(request.position)
        self.runs += 1
        common = self.last + self._of_configuration(request)
        wider = self._width(request.configuration)
        times = {size: base_s(size) * math.exp(common + wider * self._own()) for size in SIZES}
        return Draw(times, {}, self.run_s)

    def _of_configuration(self, request: RunRequest) -> float:
        """What a run owes to what it sets, beside the effect of that."""
        if self.kind == "environment-size":
            return 0.04 if _stack_begin(request, self.folder) % 64 < 32 else -0.04
        has_gain = request.configuration.get("V3") == "2"
        if self.kind == "slow-launches" or (self.kind == "slow-with-gain" and has_gain):
            return math.log(3) if self.rng.random() < 0.15 else 0.0
        return 0.0

    def _width(self, configuration: Configuration) -> float:
        if self.kind != "spread-by-configuration" or configuration.is_default:
            return 1.0
        return float(3 ** random.Random(configuration.key).uniform(-1, 1))

    def _shared(self, place: int) -> float:
        """What all sizes of a run have in common."""
        by_turns = {
            "first-slower": place == 0,
            "every-second": self.runs % 2 == 0,
            "two-of-four": self.runs % 4 < 2,
        }
        if self.kind in by_turns:
            return 0.1 * by_turns[self.kind]
        if self.kind == "bimodal":
            return self._mode()
        if self.kind == "sticky":
            return self._mode() if self.rng.random() < 0.1 else self.last
        if self.kind == "autocorrelated":
            return 0.7 * self.last + self.rng.gauss(0, self.spread)
        if self.kind == "drifting":
            # 10 % an hour, and a swing of 5 % within minutes.
            hours = self.runs * self.run_s / 3600
            return 0.1 * hours + 0.05 * math.sin(2 * math.pi * hours * 20)
        if self.kind == "outliers" and self.rng.random() < 0.1:
            return self.rng.uniform(0.2, 2.0)
        if self.kind in ("shared", "independent"):
            return self.rng.gauss(0, self.spread) if self.kind == "shared" else 0.0
        return self.rng.gauss(0, self.spread / 2)

    def _mode(self) -> float:
        return math.log(1.5) if self.rng.random() < 0.4 else 0.0

    def _own(self) -> float:
        """What one size has for itself."""
        if self.kind == "shared":
            return 0.0
        if self.kind == "heavy-tailed":  # Student's t with 2 degrees of freedom
            return self.spread * self.rng.gauss(0, 1) / math.sqrt(self.rng.gammavariate(1, 1))
        return self.rng.gauss(0, self.spread)


def _stack_begin(request: RunRequest, folder: Path) -> int:
    """Bytes of a padded environment and of the pointers to its variables."""
    padded = pad_variables(request, request.configuration, {}, folder)
    return sum(len(f"{name}={value}") + 1 + 8 for name, value in padded.items())


class RunningSlowdown(Protocol):
    """Noise in continuous time (unseen_noise.py)."""

    def slowdown(self, start: float, duration: float) -> float:
        """Of what begins at a time and would take so many seconds by itself."""


@dataclass
class ContinuousNoise:
    """Noise that goes on in time, while the sizes of a run are measured one after the other."""

    model: RunningSlowdown
    run_s: float = 0.165
    now_s: float = 0.0

    def __call__(self, request: RunRequest) -> Draw:
        del request
        started_s, part_s, times = self.now_s, self.run_s / len(SIZES), {}
        for size in SIZES:
            slower = self.model.slowdown(self.now_s, part_s)
            times[size] = base_s(size) * slower
            self.now_s += part_s * slower
        return Draw(times, {}, self.now_s - started_s)


@dataclass
class RecordedNoise:
    """Runs of the default as they were recorded one after the other, from a random place on.

    Speeds that flip, drift and stray runs are those of the recording, in its order. It is read in
    stretches that begin anywhere, so that campaigns of one recording are not all the same.
    """

    runs: Sequence[Draw]
    rng: random.Random
    stretch: int = 200
    place: int = 0
    left: int = 0

    def __call__(self, request: RunRequest) -> Draw:
        del request
        if not self.left:
            self.place, self.left = self.rng.randrange(len(self.runs)), self.stretch
        self.left -= 1
        self.place = (self.place + 1) % len(self.runs)
        return self.runs[self.place]

    @classmethod
    def of(cls, grid: Grid, rng: random.Random) -> RecordedNoise:
        """From a recording of the default alone."""
        draws = [
            Draw(
                {size.bytes: size.median_s for size in run.sizes},
                {size.bytes: (size.canary_s, size.canary_after_s) for size in run.sizes},
                run.wall_s,
            )
            for run in grid.runs
            if run.outcome is Outcome.OK and run.configuration == 0
        ]
        return cls(draws, rng)


@dataclass
class SimulatedBenchmark:
    """The benchmark port over noise and an effect; its clock goes on by each run's seconds."""

    noise: Noise
    effect: Effect
    now: float = 0.0
    simulated: bool = True
    #: Of which the times that it prints are multiples; 0 for none.
    step_s: float = 0.0

    def clock(self) -> float:
        """Virtual seconds."""
        return self.now

    def measure(self, request: RunRequest, time_limit_s: float) -> RunResult:
        """One run, in no time."""
        del time_limit_s
        draw = self.noise(request)
        started, self.now = self.now, self.now + draw.wall_s
        found = []
        for size in request.workload.sizes:
            median = draw.times_s[size] * math.exp(self.effect(request.configuration, size))
            if self.step_s:
                median = max(1, round(median / self.step_s)) * self.step_s
            before, after = draw.canaries_s.get(size, (None, None))
            found.append(_measurement(size, median, before, after))
        return RunResult(request.run_id, Outcome.OK, started, draw.wall_s, tuple(found))

    def recover(self, request: RunRequest) -> RunResult | None:
        """Nothing is ever left of a run."""
        del request
        return None

    def trace(self, request: RunRequest, time_limit_s: float) -> Execution | None:
        """Nothing is executed."""
        del request, time_limit_s
        return None


def _measurement(
    size: int, median: float, before: float | None, after: float | None
) -> Measurement:
    return Measurement(
        bytes=size,
        median_s=median,
        min_s=median,
        mean_s=median,
        p95_s=median,
        max_s=median,
        algbw=size / median,
        busbw=size / median,
        canary_s=before,
        canary_after_s=after,
    )


@cache
def space() -> Space:
    """The space of ten variables with three values each, and unset."""
    return build_space(parse_document(SPACE))


def run_campaign(
    noise: Noise, effect: Effect, seed: int, budget: Budget | None = None
) -> tuple[Plan, CampaignResult]:
    """One simulated campaign, by default with the default budget."""
    campaign = make_campaign(SimulatedBenchmark(noise, effect), seed, budget)
    return campaign.runner.plan, campaign.run()


def make_campaign(
    benchmark: SimulatedBenchmark, seed: int, budget: Budget | None = None
) -> Campaign:
    """A simulated campaign that has not begun, by default with the default budget."""
    workload = Workload(Operation.ALLREDUCE, SIZES)
    plan = Plan("simulated", space(), workload, seed=seed, budget=budget or Budget())
    runner = Runner(plan, 1, benchmark, InMemoryStore(str(plan.seed)), clock=benchmark.clock)
    return Campaign(plan, runner, QuietReporter())
