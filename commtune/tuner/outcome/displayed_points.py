"""Selects the points of a profile to show. Imports nothing slow: fast commands need it."""

from __future__ import annotations

from collections.abc import Sequence

from commtune.model import FEWEST_PAIRS, PointEvidence, Verdict
from commtune.tuner.statistics.machine_states import ALL


def overall_points(points: Sequence[PointEvidence]) -> dict[int, PointEvidence]:
    """Returns the points over all machine states by size (bytes), if they have five pairs."""
    return {p.bytes: p for p in points if p.speed == ALL and p.gain.pairs >= FEWEST_PAIRS}


def slower_state(
    size: int, points: Sequence[PointEvidence], minimum_gain: float
) -> PointEvidence | None:
    """Returns the machine state that vetoed a speedup at a size (bytes), or ``None``.

    Then the interval over all states is above the minimum gain, but the verdict is inconclusive.
    """
    overall = overall_points(points).get(size)
    if overall is None or overall.verdict is not Verdict.UNDECIDED:
        return None
    if overall.gain.low <= 1 + minimum_gain or overall.gain.is_too_noisy:
        return None
    states = [p for p in points if p.bytes == size and p.speed != ALL and p.gain.pairs > 1]
    return min(states, key=lambda state: state.gain.ratio, default=None)


def displayed_points(points: Sequence[PointEvidence]) -> list[PointEvidence]:
    """Selects points over all machine states, and those of single states that add something.

    They do if at least two states have enough pairs; one with nearly all pairs repeats the whole.
    Points of a profile without any over all states stay as they are.
    """
    found = []
    for point in points:
        here = [p for p in points if (p.operation, p.bytes) == (point.operation, point.bytes)]
        known = [p for p in here if p.speed != ALL and p.gain.pairs >= FEWEST_PAIRS]
        has_overall = any(p.speed == ALL for p in here)
        if point.speed == ALL or not has_overall or (point in known and len(known) > 1):
            found.append(point)
    return found
