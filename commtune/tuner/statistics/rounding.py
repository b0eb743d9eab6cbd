"""Bounds the rounding error of times, where a program prints few digits or its clock is coarse.

The step is found from the times themselves: outputs of one format have any number of digits, and
stored times don't say which clock measured them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from itertools import pairwise
from statistics import median

#: Numbers with more digits were not printed for people; the steps of a clock aren't decimal.
_PRINTED_DIGITS = 6
#: Exponents of the second decimal of microseconds, and of millions of bytes a second. Numbers of
#: any length that end there or before were printed: clocks tell nanoseconds.
_OF_TIMES, _OF_BANDWIDTHS = -8, -2


def smallest_step(times_s: Collection[float]) -> float:
    """Finds the step (seconds) of which times are multiples.

    For printed times it is in units of the last digit, also for a single one. Otherwise it is the
    smallest distance between two times, or of one from 0: that may be one tick of a clock.
    """
    distinct = sorted(set(map(_as_decimal, times_s)))
    gaps = [high - low for low, high in pairwise(distinct)]
    last = _last_digit(distinct, _OF_TIMES)
    if last is None:
        return float(min([distinct[0], *gaps]))
    units = math.gcd(*(int(gap.scaleb(-last)) for gap in gaps)) or 1
    return float(Decimal(units).scaleb(last))


def count_digits(times_s: Collection[float]) -> int:
    """Returns how many digits the time (seconds) with the most of them has."""
    return max(len(_as_decimal(one).as_tuple().digits) for one in times_s)


def step_at(time_s: float, digits: int) -> float:
    """Finds the step of times around one (seconds), where a program prints so many digits.

    Of ``1.23e-05`` and ``1.23e-02`` it differs. Where a number of decimals is printed instead, it
    is at most their step, because the longest time has the most digits.
    """
    if digits > _PRINTED_DIGITS:
        return 0.0
    return float(Decimal(1).scaleb(_as_decimal(time_s).adjusted() + 1 - digits))


def step_of_bandwidths(times_s: Collection[float], size: int) -> float:
    """Finds the step of times (seconds) that come from printed bandwidths; 0 if they don't."""
    bandwidths = [_as_decimal(size / time_s / 1e6) for time_s in times_s]
    last = _last_digit(bandwidths, _OF_BANDWIDTHS)
    if last is None or _last_digit([*map(_as_decimal, times_s)], _OF_TIMES) is not None:
        return 0.0
    return median(times_s) * 10.0**last / float(median(bandwidths))


def rounding_error(times_s: Sequence[float], step_s: Callable[[], float]) -> float:
    """Returns a bound of the rounding error of typical times, as a share of their median.

    Half a step if all times are equal. If they differ, their errors average out, as the share of
    equal pairs shows: with normal noise of d steps it is 0.28 / d, which leaves 0.56 / d of half
    a step. With a fine clock, no two times are equal.

    Args:
        times_s: two or more.
        step_s: computes the step, only if it is needed.
    """
    count = len(times_s)
    equal = sum(n * (n - 1) for n in Counter(times_s).values()) / (count * (count - 1))
    return min(1.0, 2 * equal) * step_s() / 2 / median(times_s) if equal else 0.0


def _as_decimal(value: float) -> Decimal:
    return Decimal(f"{value:.12g}").normalize()


def _last_digit(numbers: Collection[Decimal], printed: int) -> int | None:
    """Returns the exponent of the last digit of printed numbers; ``None`` if they aren't such.

    Args:
        printed: the exponent of the last digit that numbers of any length may have.
    """
    digits = [len(one.as_tuple().digits) for one in numbers]
    last = min(one.adjusted() + 1 - n for one, n in zip(numbers, digits, strict=True))
    return last if last >= printed or max(digits) <= _PRINTED_DIGITS else None
