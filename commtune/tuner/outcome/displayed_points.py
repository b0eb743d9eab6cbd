"""Which points of a profile to show. Imports nothing that starts slowly."""

from __future__ import annotations

from collections.abc import Sequence

from commtune.model import FEWEST_PAIRS, PointEvidence, Verdict
from commtune.tuner.statistics.machine_states import ALL


def overall_points(points: Sequence[PointEvidence]) -> dict[int, PointEvidence]:
    """The points over all machine states, by size, if they rest on enough pairs."""
    return {p.bytes: p for p in points if p.speed == ALL and p.gain.pairs >= FEWEST_PAIRS}


def slower_state(
    size: int, points: Sequence[PointEvidence], minimum_gain: float
) -> PointEvidence | None:
    """The machine state that kept a speedup at a size (bytes) from being shown, where one did.

    Over all states the interval is above the minimum gain, and the verdict is open all the same.
    """
    overall = overall_points(points).get(size)
    if overall is None or overall.verdict is not Verdict.UNDECIDED:
        return None
    if overall.gain.low <= 1 + minimum_gain or overall.gain.is_too_noisy:
        return None
    states = [p for p in points if p.bytes == size and p.speed != ALL and p.gain.pairs > 1]
    return min(states, key=lambda state: state.gain.ratio, default=None)


def displayed_points(points: Sequence[PointEvidence]) -> list[PointEvidence]:
    """The points over all machine states, and beside them those of single speeds that say more.

    A single speed says more where at least two have enough pairs; where one has nearly all of
    them, it says the same again. Points of a profile without any over all speeds stay as they are.
    """
    found = []
    for point in points:
        here = [p for p in points if (p.operation, p.bytes) == (point.operation, point.bytes)]
        known = [p for p in here if p.speed != ALL and p.gain.pairs >= FEWEST_PAIRS]
        has_overall = any(p.speed == ALL for p in here)
        if point.speed == ALL or not has_overall or (point in known and len(known) > 1):
            found.append(point)
    return found
