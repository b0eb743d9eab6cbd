"""What is likely where the default stays, and not proven: with its figure, and what would tell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from commtune import formatting
from commtune.campaign.plan import Plan
from commtune.model import DEFAULT, Configuration, PointEvidence, Verdict
from commtune.model.conclusion import LOOK_SHARES, error_share
from commtune.tuner.confirmation.comparison import Comparison
from commtune.tuner.outcome.displayed_points import overall_points, slower_state
from commtune.tuner.outcome.ranges import Range
from commtune.tuner.statistics.intervals import (
    Estimate,
    blocks_to_decide,
    corrected_level,
    t_quantile,
)

#: By itself, a gain above the minimum is at least so probable. It is no claim: of many sizes at
#: which nothing is to be had, one in twenty is "likely".
_LIKELY = 0.95
#: More sizes than these are not told one by one.
_MOST_TOLD = 3


def describe_likely_gains(sizes: Sequence[int], plan: Plan, comparison: Comparison) -> str:
    """The largest of the speedups that are likely at some sizes (bytes); empty without any."""
    found = sorted(_find_likely(sizes, plan, comparison), key=lambda one: -one[0].gain.ratio)
    said: dict[Configuration, list[str]] = {}
    for point, configuration, runs in found[:_MOST_TOLD]:
        said.setdefault(configuration, []).append(_told(point, runs))
    parts = [f"{', '.join(points)} by {configuration}" for configuration, points in said.items()]
    rest = len(found) - _MOST_TOLD
    more = f"; and at {formatting.format_count(rest, 'more size')}" if rest > 0 else ""
    return f"likely, not proven: {'; '.join(parts)}{more}" if found else ""


def find_likely_ranges(sizes: Sequence[int], plan: Plan, comparison: Comparison) -> list[Range]:
    """Neighbouring sizes (of those, bytes, at which the default stays) with a likely speedup.

    Each has the configuration with the largest one.
    """
    best: dict[int, tuple[float, Configuration]] = {}
    for point, configuration, _ in _find_likely(sizes, plan, comparison):
        found = (point.gain.ratio, configuration)
        best[point.bytes] = max(best.get(point.bytes, found), found, key=lambda one: one[0])
    chosen = [(size, best.get(size, (0.0, DEFAULT))[1]) for size in sorted(plan.workload.sizes)]
    ranges = groupby(chosen, key=lambda one: one[1])
    return [
        Range(configuration, tuple(size for size, _ in inside))
        for configuration, inside in ranges
        if not configuration.is_default
    ]


def _find_likely(
    sizes: Sequence[int], plan: Plan, comparison: Comparison
) -> Iterator[tuple[PointEvidence, Configuration, float]]:
    """Points with a likely speedup, and how many more runs would probably decide each."""
    # A further confirmation begins with fresh blocks, and has a share of what is left to err.
    share = error_share(1) * LOOK_SHARES[-1]
    level = corrected_level(1 - (1 - plan.level) * share, len(plan.workload.sizes))
    for configuration, points in comparison.points.items():
        for size, point in overall_points(points).items():
            estimate = comparison.estimates.get(configuration, {}).get(size)
            # Where a machine state speaks against it, nobody should accept it as likely.
            against = slower_state(size, points, plan.minimum_gain)
            is_open = point.verdict is Verdict.UNDECIDED and not point.gain.is_too_noisy
            is_open = is_open and size in sizes and against is None
            if is_open and estimate is not None and _is_likely(estimate, plan.minimum_gain):
                pairs = blocks_to_decide(estimate, level, plan.minimum_gain)
                yield point, configuration, 2 * pairs


def _is_likely(estimate: Estimate, minimum_gain: float) -> bool:
    within = t_quantile(_LIKELY, estimate.freedom) * estimate.error
    low = estimate.mean - math.hypot(within, estimate.rounding)
    return low > math.log1p(minimum_gain)


def _told(point: PointEvidence, runs: float) -> str:
    gain = point.gain
    what = formatting.describe_speedup(gain, point.bytes)
    tell = f"about {math.ceil(runs)} more runs would tell" if math.isfinite(runs) else "too close"
    return f"{what} ({tell})"
