"""Runs and blocks written down by hand, for what is calculated from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from commtune.model import (
    DEFAULT,
    BlockPlan,
    Configuration,
    Interval,
    Operation,
    Outcome,
    Phase,
    PointEvidence,
    Run,
    SizeTime,
)
from commtune.tuner.confirmation.comparison import Compared, Comparison
from commtune.tuner.statistics.intervals import judge_interval
from commtune.tuner.statistics.machine_states import ALL

#: Canaries (seconds) of the two machine states, and what tells them apart.
FAST_S, SLOW_S, THRESHOLD_S = 80e-9, 430e-9, 200e-9


def made_up_run(
    configuration: Configuration,
    block: int,
    measurements: Sequence[SizeTime] = (),
    *,
    phase: Phase = Phase.CONFIRM,
    outcome: Outcome = Outcome.OK,
    **others: Any,
) -> Run:
    """A run as the tuner sees it; ``others`` are fields of ``Run``."""
    known: dict[str, Any] = {"run_id": "", "trial": 0, "position": 0, "session": "one"}
    known |= {"operation": str(Operation.ALLREDUCE), "started_at": 0.0, "wall_s": 1.0, **others}
    return Run(
        configuration=configuration,
        block=block,
        measurements=tuple(measurements),
        phase=phase,
        outcome=outcome,
        **known,
    )


def made_up_size(
    size: int, time_s: float, canary_s: float | None = None, operation: str = ""
) -> SizeTime:
    """One size of a run, its canaries alike before and after."""
    return SizeTime(size, time_s, canary_s, canary_s, size / time_s, operation)


def sizes(times_s: Mapping[int, float], canary_s: float | None = None) -> tuple[SizeTime, ...]:
    """The sizes of a run, all at one machine state."""
    return tuple(made_up_size(size, time, canary_s) for size, time in times_s.items())


def plan_of(number: int, *order: Configuration, phase: Phase = Phase.CONFIRM) -> BlockPlan:
    """A block that was planned."""
    return BlockPlan(number, phase, Operation.ALLREDUCE, order)


def block(
    default_s: Mapping[int, float],
    others: Mapping[Configuration, Mapping[int, float]],
    *,
    canary_s: float | None = None,
) -> dict[Configuration, Run]:
    """A whole block from the times (seconds) of the default and of the others, by size."""
    arms = {DEFAULT: default_s, **others}
    return {
        configuration: made_up_run(configuration, 0, sizes(times_s, canary_s))
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
    """Evidence at one size over all machine states, with the verdict that its interval gives."""
    gain = Interval(ratio, low, high, pairs)
    said = judge_interval(gain, minimum_gain)
    return PointEvidence("allreduce", size, ALL, default_s, default_s / ratio, gain, said)


def comparison(points: Mapping[Configuration, Sequence[PointEvidence]]) -> Comparison:
    """A comparison of which only the points are known."""
    return {
        configuration: Compared(tuple(found), {p.bytes: None for p in found}, 0.99)
        for configuration, found in points.items()
    }
