"""Blocks of made-up runs, in which a candidate is held against the default."""

from __future__ import annotations

import math
import random

from made_up_runs import THRESHOLD_S, block, made_up_run, sizes

from commtune.model import Configuration, Outcome, PointEvidence, Run
from commtune.tuner.confirmation.comparison import Rules
from commtune.tuner.statistics.blocks import Blocks
from commtune.tuner.statistics.machine_states import ALL, MachineStates

A, B = Configuration({"V": "a"}), Configuration({"V": "b"})
SIZE = 1024
RULES = Rules(level=0.95, minimum_gain=0.02, tolerance=0.05, comparisons=1)
ONE_SPEED, TWO_SPEEDS = MachineStates(), MachineStates((THRESHOLD_S,))


def run(
    configuration: Configuration,
    number: int = 0,
    time_s: float = 1.0,
    outcome: Outcome = Outcome.OK,
    session: str = "one",
) -> Run:
    found = sizes({SIZE: time_s}) if outcome is Outcome.OK else ()
    return made_up_run(configuration, number, found, outcome=outcome, session=session)


def ratios(count: int, ratio: float, spread: float = 0.01, seed: int = 1) -> list[float]:
    rng = random.Random(seed)
    return [ratio * math.exp(rng.gauss(0, spread)) for _ in range(count)]


def blocks_of(
    found: list[float], canary_s: float | None = None, candidate: Configuration = A
) -> Blocks:
    """Blocks in which a candidate is faster by these ratios, at one size and machine state."""
    return [block({SIZE: 1.0}, {candidate: {SIZE: 1 / r}}, canary_s=canary_s) for r in found]


def overall(points: tuple[PointEvidence, ...]) -> PointEvidence:
    (found,) = [p for p in points if p.speed == ALL]
    return found
