"""Confidence intervals for the ratio of two run times, from pairs of runs of the same block.

The unit is the pair: a run of the default and one of the candidate in the same machine state, each
with its median. The estimate is the mean of log ratios default/candidate with Student's t, without
the few that are far from all others. Where the rest has outliers, it is the trimmed mean, with the
interval of Tukey & McLaughlin (Sankhya A 25, 1963): Student's t with the winsorized deviation. The
order within a block is random, so if the candidate changes nothing, the log ratio is symmetric
about 0 whatever the noise. An effect of the order is estimated and removed where it is large.

Machine states are strata: each is estimated by itself, and they are averaged by their shares, with
the degrees of freedom of Satterthwaite (Biometrics Bulletin 2, 1946) and Welch.

Pairs of one session can't show the variation of a gain between sessions, which is about a share
of the gain itself. Every interval is widened by it (see ``session_spread``). docs/method.md has
the reasons.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from statistics import fmean, linear_regression
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commtune.model import FEWEST_PAIRS, SESSION_SPREAD, Interval, Verdict

#: Samples x pairs, or a column with a number for each sample; and such numbers that count pairs.
_Matrix = NDArray[np.float64]
_Counts = NDArray[np.intp]
_NORMAL_95 = 1.96
#: The fewest pairs of each order from which its effect is estimated.
_FEWEST_OF_AN_ORDER = 3
#: The effect of the order is removed if the squared error is more than this many times smaller
#: without it: by chance in 5 % of samples of 6 normal pairs, 1 % of 8 and 0.1 % of 12. Removed
#: always, it would cost a degree of freedom, and disturbed pairs would affect others.
_ORDER_SHOWN = 3
#: Pairs are left out if they are this many times the median distance from the median: 6 standard
#: deviations of normal pairs.
_OUTLIER_AT = 6 * 1.4826
#: The fewest pairs of which any are left out. Of fewer, where runs have two speeds, those of one
#: speed may be taken for outliers: intervals of 99.5 % then miss up to 1.6 % with 14 to 24 pairs.
_FEWEST_WITH_OUTLIERS = 25
#: Pairs are trimmed if that makes the error less than this share of the mean's, or moves the mean
#: by more than this share of its error. Then some pairs are outliers, or most are alike and few
#: differ. Trimmed always, pairs with one of two values equally often, as where runs are slow by
#: turns, have an error that is twice as large.
_TRIMMED_AT = 0.7


class Estimate(NamedTuple):
    """A mean of log ratios with its standard error and degrees of freedom.

    Attributes:
        pairs: number of pairs.
        rounding: bound of the error from rounded times.
        spread: standard deviation of the mean between sessions, as a share of it.
    """

    mean: float
    error: float
    freedom: float
    pairs: int
    rounding: float = 0.0
    spread: float = SESSION_SPREAD

    @property
    def between_sessions(self) -> float:
        """The half width of a 95 % interval for the variation between sessions alone."""
        return session_half_width(self.spread) * abs(self.mean)

    def half_width(self, level: float) -> float:
        """Returns the half width of the interval of the log ratio."""
        within = t_quantile((1 + level) / 2, self.freedom) * self.error
        return math.hypot(within, self.between_sessions, self.rounding)

    def after_more_pairs(self, times: float) -> Estimate:
        """Predicts the estimate with ``times`` as many pairs: the same mean, a smaller error."""
        pairs = int(self.pairs * times)
        freedom = self.freedom * (pairs - 1) / (self.pairs - 1)
        error = self.error / math.sqrt(times)
        return self._replace(error=error, freedom=freedom, pairs=pairs)

    def blocks_to_decide(self, level: float, minimum_gain: float) -> float:
        """Returns how many pairs would show a gain, or none, in 9 of 10 cases if this held.

        Infinite where no number would.
        """
        above = self.mean - math.log1p(minimum_gain)
        distance, share = abs(above), session_half_width(self.spread)
        room = distance**2 - self.between_sessions**2 - self.rounding**2
        if room <= 0:
            return math.inf
        quantile = t_quantile((1 + level) / 2, max(30.0, self.freedom))
        margin = t_quantile(0.9, 1e6)
        # The error at which half width and margin, which both grow with it, fill the distance. A
        # mean that is nearer by the margin varies less between sessions.
        near = margin * (distance - math.copysign(share**2, above) * self.mean)
        root = math.sqrt(near**2 + (quantile**2 - (1 - share**2) * margin**2) * room)
        error = room / (near + root)
        return max(self.pairs, self.pairs * (self.error / error) ** 2)


def session_half_width(spread: float) -> float:
    """Returns the half width of a 95 % interval for a standard deviation between sessions."""
    return _NORMAL_95 * spread


def corrected_level(level: float, comparisons: int) -> float:
    """Returns the level of each of ``comparisons`` intervals that hold together at ``level``."""
    return 1 - (1 - level) / max(1, comparisons)


def estimate_ratio(logs: Sequence[float], is_first: Sequence[bool] = ()) -> Estimate | None:
    """Estimates the mean of log ratios; ``None`` for fewer than two.

    Args:
        is_first: for each, whether the first side of its pair ran first; empty if not known.
    """
    return estimate_ratios([logs], is_first)[0] if len(logs) > 1 else None


def estimate_ratios(
    samples: Sequence[Sequence[float]], is_first: Sequence[bool]
) -> list[Estimate]:
    """Estimates the mean of log ratios of each sample, all of as many (two or more).

    Removes the effect of the order within blocks where it is large: balance keeps it out of the
    mean, but not out of the error.

    Args:
        is_first: for each pair of a sample, as in ``estimate_ratio``.
    """
    logs, first = np.array(samples), np.array(is_first, dtype=bool)
    rows, count = logs.shape
    if min(first.sum(), count - first.sum()) < _FEWEST_OF_AN_ORDER:
        found = _estimate_means(logs)
    else:
        before, after = (_interquartile_means(logs[:, of]) for of in (first, ~first))
        even = logs - np.where(first, 0.5, -0.5) * (before - after)
        both = _estimate_means(np.vstack([logs, even]))
        found, rest = both[:, :rows], both[:, rows:]
        is_shown = _ORDER_SHOWN * rest[1] ** 2 < found[1] ** 2
        found = np.where(is_shown, _spend_freedom(rest, count, 1), found)
    columns = found[:, :, 0].T.tolist()
    return [Estimate(mean, error, freedom, count) for mean, error, freedom in columns]


def estimate_adjusted(logs: Sequence[float], shifts: Sequence[float]) -> Estimate | None:
    """Estimates the mean log ratio within a machine state from pairs across states.

    The effect of a step between states is estimated by least squares and removed. ``None`` for
    fewer than three pairs, or the same shift in all of them.

    Args:
        shifts: steps between the states of the two runs of each pair.
    """
    count = len(logs)
    if count < 3:
        return None
    shift = fmean(shifts)
    squares = math.fsum((x - shift) ** 2 for x in shifts)
    if squares == 0:
        return None
    slope, mean = linear_regression(shifts, logs)
    both = zip(shifts, logs, strict=True)
    rest = math.fsum((y - mean - slope * x) ** 2 for x, y in both) / (count - 2)
    error = math.sqrt(rest * (1 / count + shift**2 / squares))
    return Estimate(mean, error, count - 2, count)


def estimate_mean_ratio(times_s: Sequence[tuple[float, float]]) -> Estimate | None:
    """Estimates the log ratio of two mean times; ``None`` for fewer than two pairs.

    The error is by the delta method. Nothing is trimmed, so slow runs count by their time. Slow
    runs that no pair met are not in the error.
    """
    count = len(times_s)
    if count < 2:
        return None
    one_s, other_s = (fmean(side) for side in zip(*times_s, strict=True))
    moves = math.fsum((one / one_s - other / other_s) ** 2 for one, other in times_s)
    error = math.sqrt(moves / (count * (count - 1)))
    return Estimate(math.log(one_s / other_s), error, count - 1, count)


def _estimate_means(logs: _Matrix) -> _Matrix:
    """Estimates the mean of each row without outliers, trimmed where the rest needs that.

    Returns:
        Mean, error and degrees of freedom, each a column.
    """
    ordered = np.sort(logs)
    center = _find_medians(ordered)
    ordered -= center  # pairs that are all the same then have no error at all
    low, high = _find_outliers(ordered)
    cut = _count_trimmed(high - low)
    whole, trimmed = _trim_means(ordered, low, high, np.array([0 * cut, cut]))
    limit = _TRIMMED_AT * whole[1]
    is_trimmed = (trimmed[1] < limit) | (np.abs(trimmed[0] - whole[0]) > limit)
    found = np.where(is_trimmed, trimmed, _spend_freedom(whole, high - low, np.sign(cut)))
    found[0] += center
    return found


def _find_medians(ordered: _Matrix) -> _Matrix:
    """Returns the median of each sorted row."""
    count = ordered.shape[1]
    found: _Matrix = ordered[:, [(count - 1) // 2, count // 2]].sum(axis=1, keepdims=True) / 2
    return found


def _find_outliers(ordered: _Matrix) -> tuple[_Counts, _Counts]:
    """Finds where outliers end and begin again in each row, with a median of 0.

    If too many would be left out, none are outliers.
    """
    rows, count = ordered.shape
    if count < _FEWEST_WITH_OUTLIERS:
        return np.zeros((rows, 1), dtype=np.intp), np.full((rows, 1), count)
    reach = _OUTLIER_AT * _find_medians(np.sort(np.abs(ordered)))
    below, above = (
        [(side > limit).sum(axis=1, keepdims=True) for limit in (reach, reach / 2)]
        for side in (-ordered, ordered)
    )
    # If all pairs are the same except for a random sign, all that dissent would be left out in at
    # most 0.2 % of cases.
    most = int(count / 2 - 1.6 * math.sqrt(count))
    # Rounded values may be equal for the most part; then the others are no outliers.
    # Those that are half as far count: else a part of the rarer of two modes would be left out.
    is_few = (reach > 0) & (np.maximum(below[1], above[1]) <= most)
    return below[0] * is_few, count - above[0] * is_few


def _spend_freedom(found: _Matrix, pairs: _Counts | int, spent: _Counts | int) -> _Matrix:
    """Widens estimates for further numbers that the same pairs determined."""
    mean, error, freedom = found
    error = error * np.sqrt((pairs - 1) / (pairs - 1 - spent))
    return np.array([mean, error, freedom - spent])


def _trim_means(ordered: _Matrix, low: _Counts, high: _Counts, cut: _Counts) -> _Matrix:
    """Estimates means without the ``cut`` smallest and largest values.

    Of the h values that are kept, h - 1 - cut / 2 are the degrees of freedom. With Tukey &
    McLaughlin's h - 1, intervals of normal pairs miss up to 1.6 times too often. With these, error
    rates of 0.5 % and 0.1 % are right within 0.03 % and 0.01 % (simulated, 11 to 100 pairs).

    Args:
        low, high: where the values of each row begin and end; the others are outliers.
        cut: how many to leave out on each side, a column for each choice.

    Returns:
        For each choice, mean, error and degrees of freedom.
    """
    first, end, place = low + cut, high - cut, np.arange(ordered.shape[1])
    rows = np.arange(len(ordered))[:, None]
    winsorized = np.minimum(np.maximum(ordered, ordered[rows, first]), ordered[rows, end - 1])
    is_in, is_kept = (low <= place) & (place < high), (first <= place) & (place < end)
    center = (winsorized * is_in).sum(axis=-1, keepdims=True) / (high - low)
    squares = ((winsorized - center) ** 2 * is_in).sum(axis=-1, keepdims=True)
    count = end - first
    mean = (ordered * is_kept).sum(axis=-1, keepdims=True) / count
    error = np.sqrt(squares / (count * (count - 1)))
    return np.stack([mean, error, count - 1 - cut / 2], axis=1)


def _interquartile_means(values: _Matrix) -> _Matrix:
    """Returns the mean of the middle half of each row, of few without the two extremes."""
    count = values.shape[1]
    cut = max(1, count // 4)
    found: _Matrix = np.sort(values)[:, cut : count - cut].mean(axis=1, keepdims=True)
    return found


def _count_trimmed(pairs: _Counts) -> _Counts:
    """Counts the pairs to trim on each side: one of 12, one more of every three, up to a fifth.

    A fifth of fewer would be unsafe. If all pairs are the same except for a random sign, all that
    dissent are trimmed, and no error is left, in at most 0.8 % of cases; with 2 of 10, in 11 %.
    """
    return np.minimum(pairs // 5, (pairs - 9) // 3).clip(0)


def combine_strata(strata: Iterable[Estimate | None]) -> Estimate | None:
    """Averages the estimates of strata, weighted by their shares of the pairs.

    ``None`` stands for a stratum of one pair, which has no error and is left out.
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


@lru_cache(maxsize=4096)
def t_quantile(probability: float, freedom: float) -> float:
    from scipy.special import stdtrit  # 0.1 s to import; only new intervals need it

    return float(stdtrit(freedom, probability))


def interval_of_ratio(found: Estimate | None, level: float, pairs: int | None = None) -> Interval:
    """Returns the interval of a ratio, from 0 to infinity without an estimate.

    Args:
        level: confidence level of this one interval.
        pairs: the number to state without an estimate.
    """
    if found is None:
        return Interval(ratio=1.0, low=0.0, high=math.inf, pairs=pairs or 0)
    half = found.half_width(level)
    # A level of almost 1 with two pairs is wider than a float can hold.
    low, high = math.exp(max(found.mean - half, -700)), math.exp(min(found.mean + half, 700))
    return Interval(ratio=math.exp(found.mean), low=low, high=high, pairs=found.pairs)


def judge_interval(gain: Interval, minimum_gain: float) -> Verdict:
    """Returns the verdict of an interval for a gain of ``minimum_gain`` (0.02 is 2 %)."""
    if gain.pairs < FEWEST_PAIRS:
        return Verdict.UNDECIDED
    if gain.low > 1 + minimum_gain:
        return Verdict.UNDECIDED if gain.is_too_noisy else Verdict.FASTER
    return Verdict.DEFAULT if gain.high < 1 + minimum_gain else Verdict.UNDECIDED
