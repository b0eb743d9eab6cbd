"""Intervals for the ratio of two run times, from pairs of runs made close together.

The unit is the pair: a run of the default and a run of the candidate from one block, at the same
machine speed, each with its median. The ratio default/candidate is log-transformed, so that twice
as fast and half as fast are the same distance from 1. Inside a block the order is random, so if
the candidate changes nothing the log ratio is symmetric about 0, whatever the shape of the noise.

Other load on a machine makes some pairs worthless: one of the two runs was disturbed. So the
ratio is a trimmed mean with Tukey and McLaughlin's interval (Student's t with the winsorized
deviation; Sankhya A 25, 1963): a fifth of the pairs may be wild on either side. With few pairs
nothing is trimmed, since the interval would become too wide to say anything.
All intervals of one confirmation share the error rate by Bonferroni's inequality.

Pairs made within seconds can't show how much a ratio moves from one sitting to the next; so every
interval is widened by what reruns minutes later showed of that (``SESSION_SPREAD``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from commtune.model import Interval, Verdict

#: Fewer pairs than this are never believed, however well they agree.
FEWEST_PAIRS = 5
#: Standard deviation of the logarithm of a ratio between sittings minutes apart: what reruns on
#: a virtual machine with 2 cores differed by beyond the noise of their pairs
#: (benchmarks/rerun.py). A machine of one's own should do better.
SESSION_SPREAD = 0.025
_SPREAD_QUANTILE = 1.96
#: The share of pairs trimmed on each side, and the number of pairs from which that is done.
_TRIMMED = 0.2
_FEWEST_TRIMMED = 8


def corrected_level(level: float, comparisons: int) -> float:
    """The level of each of ``comparisons`` intervals, so that all hold together at ``level``."""
    return 1 - (1 - level) / max(1, comparisons)


def ratio_interval(
    default_s: Sequence[float],
    candidate_s: Sequence[float],
    level: float,
    *,
    spread: float = 0.0,
) -> Interval:
    """The ratio default/candidate of paired times with its two-sided interval.

    Args:
        default_s, candidate_s: medians of the runs of each pair, seconds, in the same order.
        level: confidence level of this interval, already corrected.
        spread: standard deviation of the log ratio between sittings, to widen the interval by.

    With fewer than two pairs nothing is known: the interval is (0, infinity).
    """
    from scipy.stats import t as student  # 0.3 s to import; only a tuning process needs it

    logs = sorted(math.log(d / c) for d, c in zip(default_s, candidate_s, strict=True))
    count = len(logs)
    if count < 2:
        ratio = math.exp(logs[0]) if logs else 1.0
        return Interval(ratio=ratio, low=0.0, high=math.inf, pairs=count)
    cut = int(_TRIMMED * count) if count >= _FEWEST_TRIMMED else 0
    kept = logs[cut : count - cut]
    mean = math.fsum(kept) / len(kept)
    error = math.sqrt(_winsorized_squares(logs, cut) / (len(kept) * (len(kept) - 1)))
    within = float(student.ppf((1 + level) / 2, len(kept) - 1)) * error
    half = math.hypot(within, _SPREAD_QUANTILE * spread)
    # A level of almost 1 with two pairs is wider than a float can hold.
    low, high = math.exp(max(mean - half, -700)), math.exp(min(mean + half, 700))
    return Interval(ratio=math.exp(mean), low=low, high=high, pairs=count)


def _winsorized_squares(ordered: Sequence[float], cut: int) -> float:
    """Squared deviations after the outermost ``cut`` values were drawn in to their neighbours."""
    low, high = ordered[cut], ordered[len(ordered) - cut - 1]
    drawn = [min(max(value, low), high) for value in ordered]
    mean = math.fsum(drawn) / len(drawn)
    return math.fsum((value - mean) ** 2 for value in drawn)


def verdict(gain: Interval, minimum_gain: float) -> Verdict:
    """What an interval says of a gain of at least ``minimum_gain`` (0.02 is 2 %)."""
    if gain.pairs < FEWEST_PAIRS:
        return Verdict.UNDECIDED
    if gain.low > 1 + minimum_gain:
        return Verdict.FASTER
    return Verdict.DEFAULT if gain.high < 1 + minimum_gain else Verdict.UNDECIDED
