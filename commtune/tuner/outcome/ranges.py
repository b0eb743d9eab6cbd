"""Finds size ranges that share a configuration, and one environment for all sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from commtune.campaign.plan import Plan
from commtune.model import DEFAULT, FEWEST_PAIRS, Configuration, PointEvidence, Verdict
from commtune.model.conclusion import TradeOff
from commtune.model.profile import BoundarySide, RangeBoundary
from commtune.tuner.confirmation.comparison import Comparison
from commtune.tuner.outcome.displayed_points import overall_points, slower_state
from commtune.tuner.statistics.intervals import Estimate
from commtune.tuner.statistics.machine_states import ALL

#: A configuration within this share of the best at a size counts as equal.
_NEARLY = 0.02


@dataclass(frozen=True)
class Range:
    """Neighbouring sizes (bytes) that share a configuration."""

    configuration: Configuration
    sizes: tuple[int, ...]


def overall_of(
    comparison: Comparison, configuration: Configuration | None
) -> dict[int, PointEvidence]:
    """Returns a configuration's points over all machine states by size; none for the default."""
    found = comparison.get(configuration) if configuration is not None else None
    return overall_points(found.points) if found is not None else {}


def list_open_points(
    comparison: Comparison, minimum_gain: float
) -> Iterator[tuple[Configuration, PointEvidence, Estimate]]:
    """Yields the points that more runs may decide, with configuration and estimate.

    Those are inconclusive, no machine state vetoes a gain, and the configuration does not fail
    more often than the default: further runs would not change that.
    """
    for configuration, one in comparison.items():
        for size, point in overall_points(one.points).items():
            estimate = one.estimates.get(size)
            is_open = point.verdict is Verdict.UNDECIDED and not one.failures.is_worse
            if is_open and estimate and not slower_state(size, one.points, minimum_gain):
                yield configuration, point, estimate


def find_ranges(plan: Plan, comparison: Comparison) -> list[Range]:
    """Divides the sizes into ranges with a configuration each, as few as the evidence supports.

    Neighbouring sizes share a range if one configuration is within 2 % of the best at all of
    them. Sizes without a gain join the ranges on both sides if these share a configuration that
    does no harm there. Of divisions with equally few ranges, the one that gains most is taken
    (dynamic programming).
    """
    sizes = sorted(plan.workload.sizes)
    good = [_find_good(size, comparison) for size in sizes]
    # For the sizes up to each: the number of ranges, minus their log gain, the ranges.
    best: list[tuple[int, float, list[Range]]] = [(0, 0.0, [])]
    for end in range(1, len(sizes) + 1):
        ways = []
        for start in range(end):
            inside = tuple(sizes[start:end])
            usable = _usable(good[start:end], inside, comparison, plan)
            if usable:
                count, lost, before = best[start]
                chosen = _smallest(usable)
                part = Range(chosen, inside)
                ways.append((count + 1, lost - usable[chosen], [*before, part]))
        best.append(min(ways, key=lambda way: way[:2]))
    return best[-1][2]


def recommended_ranges(plan: Plan, comparison: Comparison) -> list[Range]:
    """Finds the ranges that get a profile: those of sizes, then one for all if there are several.

    There is one for all if one configuration is faster somewhere, and nowhere slower than the
    tolerance.
    """
    cut, whole = find_ranges(plan, comparison), best_single(plan, comparison)
    if whole is not None and len(cut) > 1:
        cut.append(Range(whole, tuple(sorted(plan.workload.sizes))))
    return cut


def _usable(
    good: Sequence[set[Configuration]],
    sizes: Sequence[int],
    comparison: Comparison,
    plan: Plan,
) -> dict[Configuration, float]:
    """Finds the configurations that some sizes may share, with the sum of their log gains.

    Args:
        good: the good configurations at each of the sizes.
    """
    found = {}
    for configuration in good[0] & good[-1]:
        fits = all(
            configuration in here
            or (here == {DEFAULT} and _is_neutral(configuration, size, comparison, plan))
            for here, size in zip(good, sizes, strict=True)
        )
        points = overall_of(comparison, configuration)
        gain = math.fsum(math.log(points[size].gain.ratio) for size in sizes if size in points)
        # Small losses at sizes in the middle may add up to more than the gains.
        if fits and (configuration.is_default or gain > 0):
            found[configuration] = gain
    return found


def _is_neutral(
    configuration: Configuration, size: int, comparison: Comparison, plan: Plan
) -> bool:
    """Whether a configuration is shown neither harmful nor slower at a size without a gain."""
    point = overall_of(comparison, configuration).get(size)
    harmless = _is_unharmed(configuration, (size,), comparison, plan.tolerance)
    return harmless and point is not None and point.gain.high >= 1


def _is_unharmed(
    configuration: Configuration, sizes: Sequence[int], comparison: Comparison, tolerance: float
) -> bool:
    """Whether a configuration is shown to be no slower than the tolerance at each of some sizes.

    Nor may it look slower than that in a machine state with five pairs.
    """
    known = comparison[configuration].points if configuration in comparison else ()
    points = overall_points(known)
    hurt = {
        p.bytes
        for p in known
        if p.speed != ALL and p.gain.pairs >= FEWEST_PAIRS and p.gain.ratio < 1 - tolerance
    }
    return all(
        size in points and points[size].gain.low >= 1 - tolerance and size not in hurt
        for size in sizes
    )


def _find_good(size: int, comparison: Comparison) -> set[Configuration]:
    """Finds the configurations that are faster at a size and within 2 % of the best one there.

    Only the default if none is faster.
    """
    faster = {
        configuration: point.gain.ratio
        for configuration in comparison
        if (point := overall_of(comparison, configuration).get(size))
        and point.verdict is Verdict.FASTER
    }
    best = max(faster.values(), default=0.0)
    return {c for c, ratio in faster.items() if ratio * (1 + _NEARLY) >= best} or {DEFAULT}


def _smallest(gains: Mapping[Configuration, float]) -> Configuration:
    """Returns the smallest configuration with nearly the largest log gain."""
    enough = max(gains.values()) - math.log1p(_NEARLY)
    near = [configuration for configuration, gain in gains.items() if gain >= enough]
    return min(near, key=lambda c: (len(c), -round(gains[c], 3), c.key))


def best_single(plan: Plan, comparison: Comparison) -> Configuration | None:
    """Finds the one environment: it saves most, and is nowhere slower than the tolerance."""
    found: dict[Configuration, float] = {}
    for configuration in comparison:
        sound = overall_of(comparison, configuration)
        measured = sound.keys() == set(plan.workload.sizes)
        unharmed = _is_unharmed(configuration, tuple(sound), comparison, plan.tolerance)
        faster = any(p.verdict is Verdict.FASTER for p in sound.values())
        ratios = {size: point.gain.ratio for size, point in sound.items()}
        default_s = {size: point.default_s for size, point in sound.items()}
        gain = _mean_gain(ratios, default_s, plan.messages)
        if measured and unharmed and faster and gain > 0:
            found[configuration] = gain
    return _smallest(found) if found else None


def _mean_gain(
    ratios: Mapping[int, float], default_s: Mapping[int, float], messages: Mapping[int, float]
) -> float:
    """Returns the logarithm of the gain over several sizes together.

    Without a histogram of messages, the mean over sizes; with one, the ratio of the times that
    all its messages take, each as long as the nearest measured size (by ratio) takes per byte.
    """
    if not ratios:
        return 0.0
    if not messages:
        return math.fsum(math.log(ratio) for ratio in ratios.values()) / len(ratios)
    default = tuned = 0.0
    for size, count in messages.items():
        # A message without content takes as long as the smallest.
        near = min(ratios, key=lambda measured: abs(math.log(measured / max(1, size))))
        time_s = count * max(1.0, size / near) * default_s[near]
        default += time_s
        tuned += time_s / ratios[near]
    return math.log(default / tuned) if tuned > 0 else 0.0


def trade_off(
    plan: Plan, comparison: Comparison, cut: Sequence[Range], one: Configuration | None
) -> TradeOff:
    """Compares one environment for all sizes with one for each size range."""
    ranged = {size: 1.0 for part in cut for size in part.sizes}
    for part in cut:
        points = overall_of(comparison, part.configuration)
        ranged.update({s: points[s].gain.ratio for s in part.sizes if s in points})
    sound = overall_of(comparison, one)
    single = {size: point.gain.ratio for size, point in sound.items()}
    return TradeOff(
        weighted=bool(plan.messages),
        one_mean_gain=_over_all(single, plan, comparison),
        ranges_mean_gain=_over_all(ranged, plan, comparison),
        lost_by_one={s: 1 - single[s] / ratio for s, ratio in ranged.items() if s in single},
    )


def _over_all(gains: Mapping[int, float], plan: Plan, comparison: Comparison) -> float:
    """Returns the mean speedup over all sizes; those that keep the default gain nothing."""
    ratios = {size: gains.get(size, 1.0) for size in plan.workload.sizes}
    default_s = {
        size: point.default_s
        for one in comparison.values()
        for size, point in overall_points(one.points).items()
    }
    measured = default_s.keys() >= ratios.keys()
    return math.exp(_mean_gain(ratios, default_s, plan.messages if measured else {}))


def range_boundaries(cut: Sequence[Range], comparison: Comparison) -> list[RangeBoundary]:
    """Lists the boundaries between ranges, with both configurations' intervals on both sides."""
    found = []
    for left, right in pairwise(cut):
        sides = []
        for size in (left.sizes[-1], right.sizes[0]):
            for configuration in dict.fromkeys((left.configuration, right.configuration)):
                point = overall_of(comparison, configuration).get(size)
                if point is not None:
                    side = BoundarySide(
                        bytes=size, configuration=configuration, **vars(point.gain)
                    )
                    sides.append(side)
        found.append(RangeBoundary(left.sizes[-1], right.sizes[0], tuple(sides)))
    return found
