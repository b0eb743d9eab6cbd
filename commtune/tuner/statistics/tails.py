"""Slow runs: how often a configuration takes far longer than it usually does.

An interval is of the typical ratio. A configuration that is a little faster in most runs, and far
slower in some, has a good one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import comb, fsum
from statistics import median

#: A run is slow that took so many times the median of its configuration.
SLOW = 1.5
#: With how much chance as many of all slow runs, or more, would be the candidate's.
_CHANCE = 0.25


@dataclass(frozen=True)
class Tail:
    """Slow runs of a candidate and of the default, in the same blocks at the same size.

    Attributes:
        slow, default_slow: how many of each.
        total_s, default_total_s: of the times of all runs, slow or not.
    """

    pairs: int
    slow: int
    default_slow: int
    total_s: float
    default_total_s: float

    @property
    def mean_ratio(self) -> float:
        """Mean time of the default over that of the candidate."""
        return self.default_total_s / self.total_s

    @property
    def is_heavier(self) -> bool:
        """Whether the candidate has more of the slow runs than chance would often give it."""
        both = self.slow + self.default_slow
        ways = sum(comb(both, count) for count in range(self.slow, both + 1))
        return self.slow > 0 and ways <= _CHANCE * 2**both

    def __add__(self, other: Tail) -> Tail:
        """Of two machine states together."""
        return Tail(
            self.pairs + other.pairs,
            self.slow + other.slow,
            self.default_slow + other.default_slow,
            self.total_s + other.total_s,
            self.default_total_s + other.default_total_s,
        )


def measure_tail(strata: Sequence[Sequence[tuple[float, float]]]) -> Tail:
    """Of times (seconds) of default and candidate, those of each machine state by themselves."""
    return reduce(Tail.__add__, map(_of_one_state, strata))


def _of_one_state(times_s: Sequence[tuple[float, float]]) -> Tail:
    defaults_s, candidates_s = zip(*times_s, strict=True)
    return Tail(
        len(times_s),
        _slow_runs(candidates_s),
        _slow_runs(defaults_s),
        fsum(candidates_s),
        fsum(defaults_s),
    )


def _slow_runs(times_s: Sequence[float]) -> int:
    usual_s = median(times_s)
    return sum(time_s > SLOW * usual_s for time_s in times_s)
