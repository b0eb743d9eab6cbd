"""Slow runs: how often a configuration takes far longer than it usually does.

An interval is of the typical ratio. A configuration that is a little faster in most runs, and far
slower in some, has a good one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, comb
from statistics import fmean, median

#: A run is slow that took so many times the median of its configuration.
SLOW = 1.5
#: With how much chance as many of all slow runs, or more, would be the candidate's.
_CHANCE = 0.25


@dataclass(frozen=True)
class Tail:
    """Slow runs of a candidate and of the default, in the same blocks at the same size.

    Attributes:
        slow, default_slow: how many of each.
        mean_ratio, p95_ratio: mean time, and 95th percentile, of the default over that of the
            candidate; both over all runs, slow or not, whatever the machine state.
    """

    pairs: int
    slow: int
    default_slow: int
    mean_ratio: float
    p95_ratio: float

    @property
    def is_heavier(self) -> bool:
        """Whether the candidate has more of the slow runs than chance would often give it."""
        both = self.slow + self.default_slow
        ways = sum(comb(both, count) for count in range(self.slow, both + 1))
        return self.slow > 0 and ways <= _CHANCE * 2**both


def measure_tail(strata: Sequence[Sequence[tuple[float, float]]]) -> Tail:
    """Compares slow runs of default and candidate (seconds), each machine state by itself."""
    states = [tuple(zip(*times_s, strict=True)) for times_s in strata]
    defaults_s, candidates_s = ([t for sides in states for t in sides[n]] for n in (0, 1))
    return Tail(
        len(candidates_s),
        sum(_slow_runs(of) for _, of in states),
        sum(_slow_runs(of) for of, _ in states),
        fmean(defaults_s) / fmean(candidates_s),
        _p95(defaults_s) / _p95(candidates_s),
    )


def _p95(times_s: Sequence[float]) -> float:
    """The 95th percentile, by nearest rank: of fewer than 20 runs the slowest one."""
    return sorted(times_s)[ceil(0.95 * len(times_s)) - 1]


def _slow_runs(times_s: Sequence[float]) -> int:
    usual_s = median(times_s)
    return sum(time_s > SLOW * usual_s for time_s in times_s)
