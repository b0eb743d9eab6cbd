"""Intervals for the ratio of two run times, from pairs of runs made close together.

The unit is the pair: a run of the default and a run of the candidate from one block, at the same
machine state, each with its median. The ratio default/candidate is log-transformed, so that twice
as fast and half as fast are the same distance from 1. Inside a block the order is random, so if
the candidate changes nothing the log ratio is symmetric about 0, whatever the shape of the noise:
two hidden modes, a heavy tail or a drift are in both arms alike.

Other load on a machine makes some pairs worthless: one of the two runs was disturbed. So the
ratio is a trimmed mean with Tukey and McLaughlin's interval (Student's t with the winsorized
deviation; Sankhya A 25, 1963): a fifth of the pairs may be wild on either side. With few pairs
nothing is trimmed, since the interval would become too wide to say anything. Pairs of several
machine states are strata: each is estimated by itself, and they are put together by their shares
with Welch and Satterthwaite's degrees of freedom (Biometrics Bulletin 2, 1946).

Pairs made within seconds can't show how much a gain moves from one session to the next. A
configuration that changes nothing has no gain to move; a real gain varies by a share of itself
(``SITTING_SPREAD``), by which every interval is widened.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from commtune.model import Interval, Verdict

#: Fewer pairs than this are never believed, however well they agree.
FEWEST_PAIRS = 5
#: Standard deviation, between sessions, of the logarithm of a gain as a share of itself: what
#: reruns in later launches on a virtual machine with 2 cores differed by beyond the noise of
#: their pairs (benchmarks/rerun.py).
SITTING_SPREAD = 0.06
_NORMAL_95 = 1.96
#: How far that reaches to either side, at 95 %.
SITTING_ALLOWANCE = _NORMAL_95 * SITTING_SPREAD
#: The share of pairs trimmed on each side, and the number of pairs from which that is done.
_TRIMMED = 0.2
_FEWEST_TRIMMED = 8


@dataclass(frozen=True)
class Estimate:
    """A mean of log ratios with its standard error and degrees of freedom.

    Attributes:
        pairs: how many pairs it rests on.
        rounding: how far rounding of the times may have moved the mean.
    """

    mean: float
    error: float
    freedom: float
    pairs: int
    rounding: float = 0.0


def corrected_level(level: float, comparisons: int) -> float:
    """The level of each of ``comparisons`` intervals, so that all hold together at ``level``."""
    return 1 - (1 - level) / max(1, comparisons)


def estimate_ratio(logs: Sequence[float]) -> Estimate | None:
    """The trimmed mean of log ratios, or ``None`` for fewer than two."""
    ordered = sorted(logs)
    count = len(ordered)
    if count < 2:
        return None
    cut = int(_TRIMMED * count) if count >= _FEWEST_TRIMMED else 0
    kept = ordered[cut : count - cut]
    squares = _winsorized_squares(ordered, cut)
    error = math.sqrt(squares / (len(kept) * (len(kept) - 1)))
    return Estimate(math.fsum(kept) / len(kept), error, len(kept) - 1, count)


def combine_strata(strata: Sequence[Sequence[float]]) -> Estimate | None:
    """One estimate over strata of log ratios, each with the share that it has of all pairs.

    A stratum of one pair has no error of its own and is left out.
    """
    found = [part for part in map(estimate_ratio, strata) if part is not None]
    if len(found) <= 1:
        return found[0] if found else None
    total = sum(part.pairs for part in found)
    shares = [part.pairs / total for part in found]
    mean = math.fsum(w * part.mean for w, part in zip(shares, found, strict=True))
    parts = [(w * part.error) ** 2 for w, part in zip(shares, found, strict=True)]
    variance = math.fsum(parts)
    spent = math.fsum(v**2 / part.freedom for v, part in zip(parts, found, strict=True))
    freedom = variance**2 / spent if spent > 0 else math.fsum(p.freedom for p in found)
    return Estimate(mean, math.sqrt(variance), freedom, total)


def half_width(found: Estimate, level: float) -> float:
    """How far the interval of a log ratio reaches to either side."""
    within = t_quantile((1 + level) / 2, found.freedom) * found.error
    return math.hypot(within, SITTING_ALLOWANCE * found.mean, found.rounding)


@lru_cache(maxsize=4096)
def t_quantile(probability: float, freedom: float) -> float:
    from scipy.special import stdtrit  # 0.1 s to import; only a tuning process needs it

    return float(stdtrit(freedom, probability))


def interval_of_ratio(found: Estimate | None, level: float, pairs: int | None = None) -> Interval:
    """The interval of a ratio; one that reaches everywhere where nothing is known.

    Args:
        level: confidence level of this one interval.
        pairs: the number to state where nothing could be estimated.
    """
    if found is None:
        return Interval(ratio=1.0, low=0.0, high=math.inf, pairs=pairs or 0)
    half = half_width(found, level)
    # A level of almost 1 with two pairs is wider than a float can hold.
    low, high = math.exp(max(found.mean - half, -700)), math.exp(min(found.mean + half, 700))
    return Interval(ratio=math.exp(found.mean), low=low, high=high, pairs=found.pairs)


def _winsorized_squares(ordered: Sequence[float], cut: int) -> float:
    """Squared deviations after the outermost ``cut`` values were drawn in to their neighbours."""
    low, high = ordered[cut], ordered[len(ordered) - cut - 1]
    drawn = [min(max(value, low), high) for value in ordered]
    mean = math.fsum(drawn) / len(drawn)
    return math.fsum((value - mean) ** 2 for value in drawn)


def judge_interval(gain: Interval, minimum_gain: float) -> Verdict:
    """What an interval says of a gain of at least ``minimum_gain`` (0.02 is 2 %)."""
    if gain.pairs < FEWEST_PAIRS:
        return Verdict.UNDECIDED
    if gain.low > 1 + minimum_gain:
        return Verdict.FASTER
    return Verdict.DEFAULT if gain.high < 1 + minimum_gain else Verdict.UNDECIDED


def predict_interval(pairs: int, level: float) -> tuple[float, float]:
    """Standard error and half width of an interval to come, in standard deviations of a pair."""
    cut = int(_TRIMMED * pairs) if pairs >= _FEWEST_TRIMMED else 0
    error = 1 / math.sqrt(pairs)
    return error, error * t_quantile((1 + level) / 2, pairs - 2 * cut - 1)


def blocks_to_decide(
    found: Estimate, level: float, minimum_gain: float, chance: float = 0.9
) -> float:
    """How many pairs would decide, were the estimate right: a gain above the minimum, or not.

    Args:
        chance: probability with which that many pairs decide it.
    """
    distance = abs(found.mean - math.log1p(minimum_gain))
    allowance = math.hypot(SITTING_ALLOWANCE * found.mean, found.rounding)
    reach = t_quantile((1 + level) / 2, max(30.0, found.freedom)) + t_quantile(chance, 1e6)
    spread = found.error * math.sqrt(found.pairs)
    room = distance - allowance
    return math.inf if room <= 0 else max(found.pairs, (reach * spread / room) ** 2)


def detectable_gain(
    error: float,
    freedom: float,
    level: float,
    minimum_gain: float,
    chance: float = 0.9,
    rounding: float = 0.0,
) -> float:
    """The gain that would have been found with probability ``chance`` (0.1 is 10 %).

    Args:
        error: standard error of a log ratio.
        level: level of the interval that has to lie above the minimum gain.
        rounding: as of an ``Estimate``.
    """
    reach = (t_quantile((1 + level) / 2, freedom) + t_quantile(chance, 1e6)) * error
    logarithm = (math.log1p(minimum_gain) + reach + rounding) / (1 - SITTING_ALLOWANCE)
    return math.exp(min(logarithm, 700)) - 1
