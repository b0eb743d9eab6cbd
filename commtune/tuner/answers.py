"""What the comparison allows to recommend: where which configuration, and one for all sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from commtune.model import DEFAULT, Configuration, PointEvidence, Verdict
from commtune.tuner.confirm import Comparison
from commtune.tuner.plan import Plan
from commtune.tuner.speeds import ALL
from commtune.tuner.stats import FEWEST_PAIRS

#: Of two configurations, the one with fewer variables is better if it keeps so much of the gain.
_NEARLY = 0.9


@dataclass(frozen=True)
class Range:
    """Neighbouring sizes (bytes) that share a configuration."""

    configuration: Configuration
    sizes: tuple[int, ...]


def overall(points: Sequence[PointEvidence]) -> dict[int, PointEvidence]:
    """The points over all machine speeds, by size, if they rest on enough pairs."""
    return {p.bytes: p for p in points if p.speed == ALL and p.gain.pairs >= FEWEST_PAIRS}


def ranges(plan: Plan, comparison: Comparison) -> list[Range]:
    """Cuts the sizes into ranges with a configuration each, as few as the evidence supports.

    Sizes, from the smallest up, share a range as long as one configuration is as good as the best
    at all of them, as far as the intervals can tell. Sizes at which no gain was shown go with the
    ranges on both sides of them, if these share a configuration that does no harm there.
    """
    cut: list[tuple[set[Configuration], list[int]]] = []
    for size in sorted(plan.workload.sizes):
        good = good_at(size, comparison, plan.minimum_gain)
        if cut and cut[-1][0] & good:
            shared, members = cut.pop()
            cut.append((shared & good, [*members, size]))
        else:
            cut.append((good, [size]))
    joined = _bridged(cut, comparison, plan)
    return [Range(_best_of(good, sizes, comparison), tuple(sizes)) for good, sizes in joined]


_Cut = list[tuple[set[Configuration], list[int]]]


def _bridged(cut: _Cut, comparison: Comparison, plan: Plan) -> _Cut:
    """Joins two ranges over one between them that shows nothing, where that does no harm."""
    found: _Cut = []
    for good, sizes in cut:
        found.append((good, sizes))
        if len(found) < 3 or found[-2][0] != {DEFAULT}:
            continue
        (left, low), (_, middle), (right, high) = found[-3:]
        shared = {c for c in left & right if is_unharmed(c, middle, comparison, plan.tolerance)}
        if shared - {DEFAULT}:
            found[-3:] = [(shared, [*low, *middle, *high])]
    return found


def is_unharmed(
    configuration: Configuration, sizes: Sequence[int], comparison: Comparison, tolerance: float
) -> bool:
    """Whether a configuration is at each of some sizes surely not slower beyond a tolerance."""
    points = overall(comparison.points.get(configuration, ()))
    return all(size in points and points[size].gain.low >= 1 - tolerance for size in sizes)


def good_at(size: int, comparison: Comparison, minimum_gain: float) -> set[Configuration]:
    """The configurations that are faster at a size, and that no other beats by much there.

    By much is: surely, by more than the smallest gain that is worth a recommendation. Only the
    default, where none is faster.
    """
    faster = {
        configuration: point
        for configuration, points in comparison.points.items()
        if (point := overall(points).get(size)) and point.verdict is Verdict.FASTER
    }
    best = max((point.gain.low for point in faster.values()), default=0.0)
    good = {c for c, p in faster.items() if p.gain.high * (1 + minimum_gain) >= best}
    return good or {DEFAULT}


def _best_of(
    good: set[Configuration], sizes: Sequence[int], comparison: Comparison
) -> Configuration:
    """The one with the fewest variables of those that come close to the largest mean gain."""

    def gain(configuration: Configuration) -> float:
        points = overall(comparison.points.get(configuration, ()))
        return math.fsum(math.log(points[size].gain.ratio) for size in sizes if size in points)

    return _smallest({configuration: gain(configuration) for configuration in good})


def _smallest(gains: Mapping[Configuration, float]) -> Configuration:
    """Of configurations with nearly the largest gain the smallest; the key breaks ties."""
    enough = _NEARLY * max(gains.values())
    near = [configuration for configuration, gain in gains.items() if gain >= enough]
    return min(near, key=lambda c: (len(c), -round(gains[c], 3), c.key))


def everywhere(plan: Plan, comparison: Comparison) -> Configuration | None:
    """The configuration that saves most and hurts no size beyond the tolerance, if one does."""
    found: dict[Configuration, float] = {}
    for configuration, points in comparison.points.items():
        sound = overall(points)
        measured = sound.keys() == set(plan.workload.sizes)
        unharmed = is_unharmed(configuration, tuple(sound), comparison, plan.tolerance)
        faster = any(p.verdict is Verdict.FASTER for p in sound.values())
        gain = mean_gain(sound, plan.messages)
        if measured and unharmed and faster and gain > 0:
            found[configuration] = gain
    return _smallest(found) if found else None


def mean_gain(points: Mapping[int, PointEvidence], messages: Mapping[int, float]) -> float:
    """The logarithm of the gain over several sizes together.

    Without a histogram of messages, the mean over sizes; with one, the ratio of the times that
    all its messages take, each as long as the nearest measured size (by ratio) takes per byte.
    """
    if not points:
        return 0.0
    if not messages:
        return math.fsum(math.log(p.gain.ratio) for p in points.values()) / len(points)
    default = tuned = 0.0
    for size, count in messages.items():
        near = min(points, key=lambda measured: abs(math.log(measured / size)))
        point, scale = points[near], max(1.0, size / near)
        default += count * scale * point.default_s
        tuned += count * scale * point.default_s / point.gain.ratio
    return math.log(default / tuned) if tuned > 0 else 0.0


def trade_off(
    plan: Plan, comparison: Comparison, cut: Sequence[Range], one: Configuration | None
) -> dict[str, object]:
    """What one environment for all sizes loses against one per size range, in plain data."""
    by_range = {}
    for part in cut:
        points = overall(comparison.points.get(part.configuration, ()))
        by_range.update({size: points[size] for size in part.sizes if size in points})
    single = overall(comparison.points.get(one, ())) if one is not None else {}
    lost = {
        str(size): 1 - single[size].gain.ratio / point.gain.ratio if size in single else None
        for size, point in by_range.items()
    }
    sizes = plan.workload.sizes
    return {
        "one_mean_gain": _over_all(single, plan, sizes),
        "ranges_mean_gain": _over_all(by_range, plan, sizes),
        "lost_by_one": lost,
    }


def _over_all(points: Mapping[int, PointEvidence], plan: Plan, sizes: Sequence[int]) -> float:
    """The gain over all sizes together; those that keep the default gain nothing."""
    if plan.messages and points.keys() == set(sizes):
        return math.exp(mean_gain(points, plan.messages))
    total = math.fsum(math.log(point.gain.ratio) for point in points.values())
    return math.exp(total / len(sizes))


def boundaries(cut: Sequence[Range], comparison: Comparison) -> list[dict[str, object]]:
    """What decided each border between ranges: both configurations on both sides of it."""
    found = []
    for left, right in pairwise(cut):
        sides = []
        for size in (left.sizes[-1], right.sizes[0]):
            for configuration in dict.fromkeys((left.configuration, right.configuration)):
                point = overall(comparison.points.get(configuration, ())).get(size)
                if point is not None:
                    gain = point.gain
                    sides.append(
                        {
                            "bytes": size,
                            "configuration": dict(configuration),
                            "ratio": gain.ratio,
                            "low": gain.low,
                            "high": gain.high,
                        }
                    )
        found.append({"below": left.sizes[-1], "from": right.sizes[0], "evidence": sides})
    return found
