"""Intervals for the ratio of two run times, from pairs of runs made close together.

The unit is the pair: a run of the default and a run of the candidate from one block, at the same
machine state, each with its median. The ratio default/candidate is log-transformed, so that twice
as fast and half as fast are the same distance from 1. Inside a block the order is random, so if
the candidate changes nothing the log ratio is symmetric about 0, whatever the shape of the noise:
two hidden modes, a heavy tail or a drift are in both arms alike.

Where the first run of a block is slower, or the second, that is estimated from both orders and
taken out.

Other load on a machine makes some pairs worthless: one of the two runs was disturbed. So the
ratio is a trimmed mean with Tukey and McLaughlin's interval (Student's t with the winsorized
deviation; Sankhya A 25, 1963): from 20 pairs on, a fifth may be wild on either side. With fewer
pairs fewer are trimmed: what a few dissent from may be a coin that fell on one side. Of 7 to 9,
none are; the ratio of one disturbed run is clipped (``pairs.clip_outliers``). Pairs of several
machine states are strata: each is estimated by itself, and they are put together by their shares
with Welch and Satterthwaite's degrees of freedom (Biometrics Bulletin 2, 1946).

Pairs made within seconds can't show how much a gain moves from one session to the next. A
configuration that changes nothing has no gain to move; a real gain varies by a share of itself
(``SITTING_SPREAD``), by which every interval is widened.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean

from commtune.model import FEWEST_PAIRS, Interval, Verdict

#: Standard deviation, between sessions, of the logarithm of a gain as a share of itself: what
#: reruns in later launches on a virtual machine with 2 cores differed by beyond the noise of
#: their pairs (benchmarks/rerun.py).
SITTING_SPREAD = 0.06
_NORMAL_95 = 1.96
#: How far that reaches to either side, at 95 %.
SITTING_ALLOWANCE = _NORMAL_95 * SITTING_SPREAD
#: Pairs with each order that it takes to tell what the order does.
_FEWEST_OF_AN_ORDER = 3
#: What the order does is taken out where the squared error is so many times smaller without it:
#: by chance, 5 % of 6 normal pairs come to that, 1 % of 8 and 0.1 % of 12. Taken out always, it
#: would cost a degree of freedom, and wild pairs would spread to others.
_ORDER_SHOWN = 3


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


def estimate_ratio(logs: Sequence[float], is_first: Sequence[bool] = ()) -> Estimate | None:
    """The trimmed mean of log ratios, or ``None`` for fewer than two.

    Where it shows that the first or the second run of a block is slower, that is taken out.
    Balanced orders keep it out of the mean, but not out of the error.

    Args:
        is_first: for each whether the first side of its pair ran first; empty if not known.
    """
    count = len(logs)
    if count < 2:
        return None
    found = _trimmed_mean(logs)
    before = [x for x, first in zip(logs, is_first, strict=False) if first]
    after = [x for x, first in zip(logs, is_first, strict=False) if not first]
    if min(len(before), len(after)) < _FEWEST_OF_AN_ORDER:
        return found
    effect = (_middle_mean(before) - _middle_mean(after)) / 2
    even = [x - effect if first else x + effect for x, first in zip(logs, is_first, strict=True)]
    rest = _trimmed_mean(even)
    if _ORDER_SHOWN * rest.error**2 >= found.error**2:
        return found
    # One more number was estimated from the same pairs.
    error = rest.error * math.sqrt((count - 1) / (count - 2))
    return replace(rest, error=error, freedom=rest.freedom - 1)


def estimate_adjusted(logs: Sequence[float], shifts: Sequence[float]) -> Estimate | None:
    """The mean log ratio of pairs whose runs were in the same machine state, from all pairs.

    What a step between states does is estimated by least squares, and taken out. ``None`` where
    the pairs don't tell it from the mean: fewer than three, or the same shift in all of them.

    Args:
        shifts: by how many states the runs of each pair were apart.
    """
    count = len(logs)
    if count < 3:
        return None
    middle, shift = fmean(logs), fmean(shifts)
    squares = math.fsum((x - shift) ** 2 for x in shifts)
    if squares == 0:
        return None
    both = zip(shifts, logs, strict=True)
    slope = math.fsum((x - shift) * (y - middle) for x, y in both) / squares
    mean = middle - slope * shift
    both = zip(shifts, logs, strict=True)
    rest = math.fsum((y - mean - slope * x) ** 2 for x, y in both) / (count - 2)
    error = math.sqrt(rest * (1 / count + shift**2 / squares))
    return Estimate(mean, error, count - 2, count)


def estimate_mean_ratio(times_s: Sequence[tuple[float, float]]) -> Estimate | None:
    """The logarithm of the ratio of two mean times; ``None`` for fewer than two pairs.

    By the delta method: by how much each pair moves the logarithm. Nothing is trimmed, so slow
    runs count as much as they take. Those that no run met, nobody knows.
    """
    count = len(times_s)
    if count < 2:
        return None
    one_s, other_s = (fmean(side) for side in zip(*times_s, strict=True))
    moves = math.fsum((one / one_s - other / other_s) ** 2 for one, other in times_s)
    error = math.sqrt(moves / (count * (count - 1)))
    return Estimate(math.log(one_s / other_s), error, count - 1, count)


def _trimmed_mean(logs: Sequence[float]) -> Estimate:
    ordered = sorted(logs)
    count = len(ordered)
    cut = trimmed_pairs(count)
    kept = ordered[cut : count - cut]
    squares = _winsorized_squares(ordered, cut)
    error = math.sqrt(squares / (len(kept) * (len(kept) - 1)))
    return Estimate(math.fsum(kept) / len(kept), error, _freedom(count), count)


def _middle_mean(values: Sequence[float]) -> float:
    """The mean of the middle half; of a few, without the smallest and the largest."""
    cut = max(1, len(values) // 4)
    return fmean(sorted(values)[cut : len(values) - cut])


def trimmed_pairs(pairs: int) -> int:
    """How many pairs are trimmed on each side: one of 10, one more of every three, to a fifth.

    If all of some pairs are either +d or -d by the toss of a coin, all that dissent are trimmed,
    and nothing is left of the error, in at most 2.2 % of cases. A fifth of 10 pairs: in 11 %.
    """
    return max(0, min(pairs // 5, (pairs - 7) // 3))


def _freedom(pairs: int) -> float:
    """Degrees of freedom of a trimmed mean.

    Tukey and McLaughlin's are those of the pairs kept, less 1. With them, intervals of normal
    pairs miss up to 1.6 times too often; half of one less for each pair trimmed on a side makes
    it right within 0.03 of 0.5 %, and within 0.01 of 0.1 % (simulated, 11 to 100 pairs).
    """
    return pairs - 1 - 2.5 * trimmed_pairs(pairs)


def after_more_pairs(found: Estimate, times: float) -> Estimate:
    """What an estimate will probably be with so many times its pairs."""
    pairs = int(found.pairs * times)
    freedom = found.freedom * _freedom(pairs) / _freedom(found.pairs)
    return replace(found, error=found.error / math.sqrt(times), freedom=freedom, pairs=pairs)


def combine_strata(strata: Iterable[Estimate | None]) -> Estimate | None:
    """One estimate over those of strata, each with the share that it has of all pairs.

    A stratum of one pair has no error of its own, hence no estimate, and is left out.
    """
    found = [part for part in strata if part is not None]
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


def half_width(found: Estimate, level: float, spread: float = SITTING_SPREAD) -> float:
    """How far the interval of a log ratio reaches to either side.

    Args:
        spread: between sittings, as a share of the log ratio.
    """
    within = t_quantile((1 + level) / 2, found.freedom) * found.error
    return math.hypot(within, _NORMAL_95 * spread * found.mean, found.rounding)


@lru_cache(maxsize=4096)
def t_quantile(probability: float, freedom: float) -> float:
    from scipy.special import stdtrit  # 0.1 s to import; only a tuning process needs it

    return float(stdtrit(freedom, probability))


def interval_of_ratio(
    found: Estimate | None,
    level: float,
    pairs: int | None = None,
    spread: float = SITTING_SPREAD,
) -> Interval:
    """The interval of a ratio; one that reaches everywhere where nothing is known.

    Args:
        level: confidence level of this one interval.
        pairs: the number to state where nothing could be estimated.
        spread: between sittings, as a share of the log ratio.
    """
    if found is None:
        return Interval(ratio=1.0, low=0.0, high=math.inf, pairs=pairs or 0)
    half = half_width(found, level, spread)
    # A level of almost 1 with two pairs is wider than a float can hold.
    low, high = math.exp(max(found.mean - half, -700)), math.exp(min(found.mean + half, 700))
    return Interval(ratio=math.exp(found.mean), low=low, high=high, pairs=found.pairs)


def _winsorized_squares(ordered: Sequence[float], cut: int) -> float:
    """Squared deviations after the outermost ``cut`` values were drawn in to their neighbours."""
    kept = ordered[cut : len(ordered) - cut]
    drawn = [kept[0]] * cut + list(kept) + [kept[-1]] * cut
    mean = math.fsum(drawn) / len(drawn)
    return math.fsum((value - mean) ** 2 for value in drawn)


def judge_interval(gain: Interval, minimum_gain: float) -> Verdict:
    """What an interval says of a gain of at least ``minimum_gain`` (0.02 is 2 %)."""
    if gain.pairs < FEWEST_PAIRS:
        return Verdict.UNDECIDED
    if gain.low > 1 + minimum_gain:
        return Verdict.UNDECIDED if gain.is_too_noisy else Verdict.FASTER
    return Verdict.DEFAULT if gain.high < 1 + minimum_gain else Verdict.UNDECIDED


def predict_interval(pairs: int, level: float) -> tuple[float, float]:
    """Standard error and half width of an interval to come, in standard deviations of a pair."""
    error = 1 / math.sqrt(pairs)
    return error, error * t_quantile((1 + level) / 2, _freedom(pairs))


def blocks_to_decide(found: Estimate, level: float, minimum_gain: float) -> float:
    """How many pairs would decide in 9 of 10 cases, were the estimate right: a gain, or none."""
    distance = abs(found.mean - math.log1p(minimum_gain))
    room = distance**2 - (SITTING_ALLOWANCE * found.mean) ** 2 - found.rounding**2
    if room <= 0:
        return math.inf
    quantile = t_quantile((1 + level) / 2, max(30.0, found.freedom))
    margin = t_quantile(0.9, 1e6)
    # Where the half width and the margin, both of which go with the error, fill the distance.
    root = math.sqrt((margin * distance) ** 2 + (quantile**2 - margin**2) * room)
    error = room / (margin * distance + root)
    return max(found.pairs, found.pairs * (found.error / error) ** 2)
