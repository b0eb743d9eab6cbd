"""Intervals for the ratio of two run times, from pairs of runs made close together.

The unit is the pair: a run of the default and a run of the candidate from one block, at the same
machine speed, each with its median. The ratio default/candidate is log-transformed, so that twice
as fast and half as fast are the same distance from 1, and gets Student's t interval. Inside a
block the order is random, so if the candidate changes nothing the log ratio is symmetric about 0,
whatever the shape of the noise; t intervals of symmetric heavy-tailed data err on the wide side.
All intervals of one confirmation share the error rate by Bonferroni's inequality.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from commtune.model import Interval, Verdict

#: Fewer pairs than this are never believed, however well they agree.
FEWEST_PAIRS = 5


def corrected_level(level: float, comparisons: int) -> float:
    """The level of each of ``comparisons`` intervals, so that all hold together at ``level``."""
    return 1 - (1 - level) / max(1, comparisons)


def ratio_interval(
    default_s: Sequence[float], candidate_s: Sequence[float], level: float
) -> Interval:
    """The ratio default/candidate of paired times with its two-sided interval.

    Args:
        default_s, candidate_s: medians of the runs of each pair, seconds, in the same order.
        level: confidence level of this interval, already corrected.

    With fewer than two pairs nothing is known: the interval is (0, infinity).
    """
    from scipy.stats import t as student  # 0.3 s to import; only a tuning process needs it

    logs = [math.log(d / c) for d, c in zip(default_s, candidate_s, strict=True)]
    count = len(logs)
    if count == 0:
        return Interval(ratio=1.0, low=0.0, high=math.inf, pairs=0)
    mean = math.fsum(logs) / count
    if count == 1:
        return Interval(ratio=math.exp(mean), low=0.0, high=math.inf, pairs=1)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in logs) / (count - 1))
    half = float(student.ppf((1 + level) / 2, count - 1)) * deviation / math.sqrt(count)
    return Interval(
        ratio=math.exp(mean), low=math.exp(mean - half), high=math.exp(mean + half), pairs=count
    )


def verdict(gain: Interval, minimum_gain: float) -> Verdict:
    """What an interval says of a gain of at least ``minimum_gain`` (0.02 is 2 %)."""
    if gain.pairs < FEWEST_PAIRS:
        return Verdict.UNDECIDED
    if gain.low > 1 + minimum_gain:
        return Verdict.FASTER
    return Verdict.DEFAULT if gain.high < 1 + minimum_gain else Verdict.UNDECIDED
