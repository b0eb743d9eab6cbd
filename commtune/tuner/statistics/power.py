"""Computes the minimum detectable effect: the gain at a size that is found in 9 of 10 cases.

Pairs are resampled from those that were made (a bootstrap), so the shape of the noise counts, and
the effect of the order. Few pairs, or pairs with outliers, tell the size of the noise poorly. So
the effect is a multiple of the half width of the interval, such that what one sample states in
this way is found in nine in ten of the other samples.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean, median

from commtune.tuner.statistics.intervals import (
    Estimate,
    combine_strata,
    estimate_ratios,
    session_half_width,
    t_quantile,
)
from commtune.tuner.statistics.pairs import Pairs, clip_outliers

#: The probability to find the minimum detectable effect, and that among resampled pairs. Those
#: have fewer outliers than new pairs: with this, campaigns find it in 87 to 93 % of cases with
#: 26 of 27 kinds of noise (docs/method.md).
_POWER, _RESAMPLED_POWER = 0.9, 0.92
#: Quantiles of the distribution of an error over which power is averaged.
_ERROR_POINTS = 64
#: Samples of pairs; the standard error of a share of 0.9 is then 0.02.
_DRAWS = 200


def detectable_gain(
    found: Estimate,
    level: float,
    minimum_gain: float,
    times: float = 1.0,
    strata: Sequence[Pairs] = (),
) -> float:
    """Returns the gain that would be found in 9 of 10 cases (0.1 is 10 %).

    Args:
        found: an estimate, whose error tells the noise of pairs.
        level: level of the interval that has to lie above the minimum gain.
        times: planned pairs over pairs so far; less than 1 counts as 1.
        strata: the pairs of the estimate, by machine state; without them noise is taken as normal.
    """
    least = math.log1p(minimum_gain)
    times = max(1.0, times)
    pools = list(filter(None, map(_center_pairs, strata)))
    if pools and not any(pairs.is_across_states for pairs in strata):
        rng = random.Random(found.pairs)  # the same pairs say the same
        now = _draw_samples(pools, 1.0, found.rounding, rng)
        then = now  # of all combinations, few are of a sample with itself
        if times > 1.0:
            then = _draw_samples(pools, times, found.rounding, rng)
        half_widths = [_half_width(one, level) for one in now]
        # Shown by pairs without noise: it does not grow with the half width.
        base = _least_mean(0.0, least, found.spread)
        lacking = [
            _least_mean(_half_width(one, level), least, found.spread) - one.mean - base
            for one in then
        ]
        widened = _widen_narrowest(half_widths, found.pairs)
        most = base + _find_multiple(lacking, widened) * _half_width(found, level)
    else:
        final = found.after_more_pairs(times)
        quantile = t_quantile((1 + level) / 2, final.freedom)
        reach = _errors_needed(quantile, found.freedom, final.freedom, _POWER)
        most = _least_mean(_half_width(final, level), least, found.spread)
        most += (reach - quantile) * final.error
    return math.exp(min(most, 700)) - 1


def _find_multiple(lacking: Sequence[float], half_widths: Sequence[float]) -> float:
    """Finds the multiple of a half width that suffices in most cases.

    Args:
        lacking: log gains, beyond those shown without noise, that samples need to show a gain.
        half_widths: of other samples, each combined with every one of these.
    """
    import numpy as np

    known = np.maximum(half_widths, 1e-12)
    return float(np.quantile(np.array(lacking)[:, None] / known, _RESAMPLED_POWER))


def _widen_narrowest(half_widths: Sequence[float], pairs: int) -> list[float]:
    """Returns half widths, none narrower than one in 1,000 samples of normal noise would be.

    Where runs have two speeds, pairs of equal speed outnumber the others by chance in some
    samples, and the others are trimmed. That says nothing about how well the noise is known.

    Args:
        pairs: of each sample.
    """
    from scipy.special import chdtri  # only a tuning process needs it

    freedom = pairs - 1
    least = median(half_widths) * math.sqrt(chdtri(freedom, 0.999) / freedom)
    return [max(least, one) for one in half_widths]


def _half_width(found: Estimate, level: float) -> float:
    """Returns the half width of an interval of a log gain from noise and rounding alone."""
    return math.hypot(t_quantile((1 + level) / 2, found.freedom) * found.error, found.rounding)


def _draw_samples(
    pools: Sequence[Sequence[tuple[float, float]]],
    times: float,
    rounding: float,
    rng: random.Random,
) -> list[Estimate]:
    """Draws samples of pairs and estimates the mean log gain of each.

    Args:
        pools: the pairs of each machine state that are drawn from.
        times: pairs to draw over their number.
    """
    parts = []
    for pool in pools:
        count = round(len(pool) * times)
        logs = [_draw_ratios(pool, count, rng) for _ in range(_DRAWS)]
        parts.append(estimate_ratios(logs, [place % 2 == 0 for place in range(count)]))
    found = filter(None, map(combine_strata, zip(*parts, strict=True)))
    return [one._replace(rounding=rounding) for one in found]


def _center_pairs(pairs: Pairs) -> list[tuple[float, float]]:
    """Returns log times of the first and the second run of pairs, less their mean gain.

    They are scaled to the unbiased variance, as their own mean was subtracted.
    """
    found = pairs.estimate()
    if found is None:
        return []
    wider = math.sqrt(len(pairs) / (len(pairs) - 1))
    sides = [(one - found.mean, other) for one, other in pairs.log_times]
    runs = [x if first else x[::-1] for x, first in zip(sides, pairs.is_first, strict=True)]
    one, other = (fmean(side) for side in zip(*runs, strict=True))
    return [(one + wider * (x - one), other + wider * (y - other)) for x, y in runs]


def _draw_ratios(
    pool: Sequence[tuple[float, float]], count: int, rng: random.Random
) -> Sequence[float]:
    """Draws log ratios from a pool, every second one of a pair in the other order."""
    log_times = rng.choices(pool, k=count)
    log_times[1::2] = [(other, one) for one, other in log_times[1::2]]
    return clip_outliers(log_times)


def _least_mean(within: float, least: float, spread: float) -> float:
    """Returns the mean whose interval begins at ``least``, by inverting ``half_width``.

    Args:
        within: the half width from noise and rounding alone.
        spread: standard deviation between sessions, as a share of the mean.
    """
    share = session_half_width(spread)
    rest = 1 - share**2
    return (least + math.sqrt((share * least) ** 2 + rest * within**2)) / rest


@lru_cache(maxsize=4096)
def _errors_needed(quantile: float, known: float, then: float, chance: float) -> float:
    """Returns the mean, in estimated errors, that is shown to be above 0 with a probability.

    The error is an estimate, and so is that of the interval to come. The probability is averaged
    over both. (With a known error, this is the noncentral t distribution.)

    Args:
        quantile: half width of the interval in errors.
        known: degrees of freedom of the error.
        then: degrees of freedom of the error of the interval to come.
        chance: the probability.
    """
    import numpy as np
    from scipy.special import chdtri, ndtr

    shares = (np.arange(_ERROR_POINTS) + 0.5) / _ERROR_POINTS
    now, later = (np.sqrt(chdtri(freedom, shares) / freedom) for freedom in (known, then))
    low, high = 0.0, 1.0
    while np.mean(ndtr(high * now[:, None] - quantile * later)) < chance:
        low, high = high, 2 * high
    for _ in range(30):
        middle = (low + high) / 2
        is_found = np.mean(ndtr(middle * now[:, None] - quantile * later)) >= chance
        low, high = (low, middle) if is_found else (middle, high)
    return high
