"""What is lost where a program prints few digits, or where its clock is coarse."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from itertools import pairwise
from statistics import median

#: A number with more digits was not printed for people: a clock's steps are no decimal ones.
_PRINTED_DIGITS = 6


def smallest_step(times_s: Iterable[float]) -> float:
    """The step of which times (seconds) seem to be multiples.

    As they tell it: outputs of one format may come with any number of digits, and stored times
    don't say by which clock they were taken. A single time tells its last digit.
    """
    distinct = sorted({Decimal(f"{time_s:.12g}").normalize() for time_s in times_s})
    gaps = [high - low for low, high in pairwise(distinct)]
    if any(len(one.as_tuple().digits) > _PRINTED_DIGITS for one in distinct):
        return float(min(gaps, default=0))
    last = min(one.adjusted() + 1 - len(one.as_tuple().digits) for one in distinct)
    units = math.gcd(*(int(gap.scaleb(-last)) for gap in gaps)) or 1
    return float(Decimal(units).scaleb(last))


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
