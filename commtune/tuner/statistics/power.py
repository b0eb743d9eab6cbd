"""Power: the gain that so many pairs would have shown in nine of ten cases.

Pairs are drawn anew from those that were made. So they have their shape: hidden modes, rare
disturbances, and what the order does, as far as these pairs met them. How large the noise is, few
pairs know badly, and less than these draws make believe: what is lacking is made up as for normal
noise.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist, fmean

from commtune.tuner.statistics.intervals import (
    SITTING_ALLOWANCE,
    Estimate,
    after_more_pairs,
    combine_strata,
    estimate_ratio,
    t_quantile,
    trimmed_pairs,
)
from commtune.tuner.statistics.pairs import Pairs, clip_outliers

#: The probability with which the minimum detectable effect is found.
_CHANCE = 0.9
#: Points of the distribution of an error over which power is averaged.
_ERROR_POINTS = 64
#: How often pairs are drawn anew: the share found is then within 2 points.
_DRAWS = 200
#: Degrees of freedom of an error that is known.
_KNOWN = 1e6


def detectable_gain(
    found: Estimate,
    level: float,
    minimum_gain: float,
    times: float = 1.0,
    strata: Sequence[Pairs] = (),
) -> float:
    """The gain that would have been found in 9 of 10 cases (0.1 is 10 %).

    Args:
        found: whose error tells how noisy pairs are.
        level: level of the interval that has to lie above the minimum gain.
        times: how many times these pairs there will be.
        strata: the pairs behind it, by machine state; without them noise is taken as normal.
    """
    least = math.log1p(minimum_gain)
    final = after_more_pairs(found, times)
    quantile = t_quantile((1 + level) / 2, final.freedom)
    reach = _reach(quantile, found.freedom, final.freedom, _CHANCE)
    pools = [(_without_gain(pairs), round(len(pairs) * times)) for pairs in strata]
    pools = [(pool, count) for pool, count in pools if pool]
    if pools and not any(pairs.is_across_states for pairs in strata):
        unknown = reach / _reach(quantile, _KNOWN, final.freedom, _CHANCE)
        rng = random.Random(found.pairs)  # the same pairs say the same
        lacking = sorted(_lacking(pools, level, least, found.rounding, rng) for _ in range(_DRAWS))
        most = least + unknown * (lacking[math.ceil(_CHANCE * _DRAWS) - 1] - least)
    else:
        error = final.error * _trimming_loss(final.pairs) / _trimming_loss(found.pairs)
        within = math.hypot(quantile * error, found.rounding)
        most = _least_mean(within, least + (reach - quantile) * error)
    return math.exp(min(most, 700)) - 1


def _lacking(
    pools: Sequence[tuple[Sequence[tuple[float, float]], int]],
    level: float,
    least: float,
    rounding: float,
    rng: random.Random,
) -> float:
    """What a gain (its logarithm) has to be for so many pairs, drawn once, to show it.

    Args:
        pools: of each machine state, what pairs are drawn from, and how many.
        least: where the interval has to begin.
    """
    drawn = combine_strata([_draw(pool, count, rng) for pool, count in pools])
    assert drawn is not None  # two pairs or more of each
    within = math.hypot(t_quantile((1 + level) / 2, drawn.freedom) * drawn.error, rounding)
    return _least_mean(within, least) - drawn.mean


def _without_gain(pairs: Pairs) -> list[tuple[float, float]]:
    """Log times of the first and the second run of each pair, had neither side a gain.

    A little wider than in these pairs, whose own mean is taken for the true one.
    """
    found = pairs.estimate()
    if found is None:
        return []
    wider = math.sqrt(len(pairs) / (len(pairs) - 1))
    sides = [(one - found.mean, other) for one, other in pairs.log_times]
    runs = [x if first else x[::-1] for x, first in zip(sides, pairs.is_first, strict=True)]
    one, other = (fmean(side) for side in zip(*runs, strict=True))
    return [(one + wider * (x - one), other + wider * (y - other)) for x, y in runs]


def _draw(pool: Sequence[tuple[float, float]], count: int, rng: random.Random) -> Estimate | None:
    is_first = [place % 2 == 0 for place in range(count)]
    runs = zip(rng.choices(pool, k=count), is_first, strict=True)
    return estimate_ratio(clip_outliers([x if first else x[::-1] for x, first in runs]), is_first)


def _least_mean(within: float, least: float) -> float:
    """The mean whose interval begins at ``least``: the inverse of ``half_width``.

    Args:
        within: how far noise and rounding reach to either side.
    """
    rest = 1 - SITTING_ALLOWANCE**2
    return (least + math.sqrt((SITTING_ALLOWANCE * least) ** 2 + rest * within**2)) / rest


@lru_cache(maxsize=4096)
def _reach(quantile: float, known: float, then: float, chance: float) -> float:
    """How many of its errors a mean has to be above 0, to be found with probability ``chance``.

    The error is an estimate, and so will be that of the interval to come: the probability is the
    mean over what both may be. (With a known error, this is the noncentral t distribution.)

    Args:
        quantile: errors from the middle of the interval to its ends.
        known: degrees of freedom of the error.
        then: those of the error of the interval to come.
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


@lru_cache(maxsize=4096)
def _trimming_loss(pairs: int) -> float:
    """How many times larger trimming makes the error of a mean of normal pairs: up to 1.07.

    Of many pairs (Tukey and McLaughlin); 10 pairs lose 1 % less.
    """
    share = trimmed_pairs(pairs) / pairs
    if not share:
        return 1.0
    normal = NormalDist()
    end = normal.inv_cdf(1 - share)
    # Of normal values that are drawn in to the two ends.
    squares = 1 - 2 * share - 2 * end * normal.pdf(end) + 2 * share * end**2
    return math.sqrt(squares) / (1 - 2 * share)
