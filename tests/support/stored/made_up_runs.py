"""Runs and blocks written down by hand, for what is calculated from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from commtune.model import (
    DEFAULT,
    BlockPlan,
    Configuration,
    Interval,
    Operation,
    Outcome,
    Phase,
    PointEvidence,
)
from commtune.tuner.confirmation.comparison import Comparison
from commtune.tuner.statistics.intervals import judge_interval
from commtune.tuner.statistics.machine_states import ALL

#: Canaries (seconds) of the two machine speeds, and what tells them apart.
FAST_S, SLOW_S, THRESHOLD_S = 80e-9, 430e-9, 200e-9


@dataclass(frozen=True)
class MadeUpSize:
    """One size of a run; times in seconds."""

    bytes: int
    median_s: float
    canary_s: float | None = None
    canary_after_s: float | None = None
    operation: str = ""


@dataclass(frozen=True)
class MadeUpRun:
    """A run as the tuner sees it."""

    configuration: Configuration
    block: int
    measurements: tuple[MadeUpSize, ...] = ()
    position: int = 0
    session: str = "one"
    outcome: Outcome = Outcome.OK
    phase: Phase = Phase.CONFIRM
    operation: str = str(Operation.ALLREDUCE)
    run_id: str = ""
    trial: int = 0
    started_at: float = 0.0
    wall_s: float = 1.0
    oversubscribed: bool = False
    other_load: float | None = None
    nodes: tuple[str, ...] = ()
    distance: str = ""
    then: tuple[str, ...] = ()


def sizes(times_s: Mapping[int, float], canary_s: float | None = None) -> tuple[MadeUpSize, ...]:
    """The sizes of a run, all at one machine speed."""
    return tuple(MadeUpSize(size, time, canary_s, canary_s) for size, time in times_s.items())


def plan_of(number: int, *order: Configuration, phase: Phase = Phase.CONFIRM) -> BlockPlan:
    """A block that was planned."""
    return BlockPlan(number, phase, Operation.ALLREDUCE, order)


def block(
    default_s: Mapping[int, float],
    others: Mapping[Configuration, Mapping[int, float]],
    *,
    canary_s: float | None = None,
) -> dict[Configuration, MadeUpRun]:
    """A whole block from the times (seconds) of the default and of the others, by size."""
    arms = {DEFAULT: default_s, **others}
    return {
        configuration: MadeUpRun(configuration, 0, sizes(times_s, canary_s))
        for configuration, times_s in arms.items()
    }


def point(
    size: int,
    ratio: float,
    low: float,
    high: float,
    *,
    pairs: int = 20,
    default_s: float = 1.0,
    minimum_gain: float = 0.02,
) -> PointEvidence:
    """Evidence at one size over all machine speeds, with the verdict that its interval gives."""
    gain = Interval(ratio, low, high, pairs)
    said = judge_interval(gain, minimum_gain)
    return PointEvidence("allreduce", size, ALL, default_s, default_s / ratio, gain, said)


def comparison(points: Mapping[Configuration, Sequence[PointEvidence]]) -> Comparison:
    """A comparison of which only the points are known."""
    return Comparison(
        "allreduce",
        {configuration: tuple(found) for configuration, found in points.items()},
        {configuration: {p.bytes: None for p in found} for configuration, found in points.items()},
        dict.fromkeys(points, 0.99),
        dict.fromkeys(points, "decided"),
    )
