"""What is lost where a program prints few digits, or where its clock is coarse.

Found from the times themselves: outputs of one format come with any number of digits, and stored
times don't say by which clock they were taken.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from itertools import pairwise
from statistics import median

#: A number with more digits was not printed for people: a clock's steps are no decimal ones.
_PRINTED_DIGITS = 6


def smallest_step(times_s: Collection[float]) -> float:
    """The step of which times (seconds) seem to be multiples; 0 for none.

    A single time tells its last digit.
    """
    distinct = sorted(set(map(_as_decimal, times_s)))
    gaps = [high - low for low, high in pairwise(distinct)]
    last = _last_digit(distinct)
    if last is None:
        return float(min(gaps, default=0))
    units = math.gcd(*(int(gap.scaleb(-last)) for gap in gaps)) or 1
    return float(Decimal(units).scaleb(last))


def step_of_bandwidths(times_s: Collection[float], size: int) -> float:
    """The step of times (seconds) that come from printed bandwidths of a size; 0 if they don't."""
    bandwidths = [_as_decimal(size / time_s / 1e6) for time_s in times_s]
    last = _last_digit(bandwidths)
    if last is None or _last_digit([*map(_as_decimal, times_s)]) is not None:
        return 0.0
    return median(times_s) * 10.0**last / float(median(bandwidths))


def rounding_error(times_s: Sequence[float], step_s: Callable[[], float]) -> float:
    """How far rounding may have moved what is typical of times, as a share of it.

    Half a step, if all times are equal. Where they differ, so do their errors, and average out.
    How many are equal shows it: two that have normal noise with a deviation of d steps are equal
    with a probability of 0.28 / d, which leaves 0.56 / d of half a step. No two times of a fine
    clock are equal.

    Args:
        times_s: two or more.
    """
    count = len(times_s)
    equal = sum(n * (n - 1) for n in Counter(times_s).values()) / (count * (count - 1))
    return min(1.0, 2 * equal) * step_s() / 2 / median(times_s) if equal else 0.0


def _as_decimal(value: float) -> Decimal:
    return Decimal(f"{value:.12g}").normalize()


def _last_digit(numbers: Collection[Decimal]) -> int | None:
    """The decimal place of the last digit of printed numbers; ``None`` where they are none."""
    if any(len(one.as_tuple().digits) > _PRINTED_DIGITS for one in numbers):
        return None
    return min(one.adjusted() + 1 - len(one.as_tuple().digits) for one in numbers)
