"""Counts slow runs, in which a configuration takes far longer than usual, and failed launches.

They are no part of the interval, which is for the typical ratio: a configuration that is a little
faster in most runs, and in some far slower or failing, counts as faster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil, comb
from statistics import median

from commtune.formatting import format_size, format_speedup
from commtune.model import FEW_PAIRS, Tail
from commtune.tuner.statistics.evidence import Cell
from commtune.tuner.statistics.intervals import estimate_mean_ratio, interval_of_ratio
from commtune.tuner.statistics.pairs import Pairs

#: A run is slow if it took more than this many times the median of its configuration.
SLOW = 1.5
#: The level of the one-sided sign test for more slow runs. It warns and claims nothing, so it is
#: lenient: two beside none. With few pairs, one beside none is enough, since a share of slow runs
#: that matters may show as one.
_SLOW_BY_CHANCE = 0.25
_SLOW_BY_CHANCE_OF_FEW = 0.5
#: The level of the same test for more failed launches, after which nothing is recommended: five
#: without one of the default.
_FAILS_BY_CHANCE = 0.05


@dataclass(frozen=True)
class FailedLaunches:
    """Launches of a candidate and of the default, in the same blocks, that failed."""

    launches: int = 0
    failed: int = 0
    default_failed: int = 0

    @property
    def is_worse(self) -> bool:
        """Whether the candidate is shown to fail more often than the default, by a sign test."""
        return _sign_test(self.failed, self.default_failed) <= _FAILS_BY_CHANCE


def measure_tail(size: int, strata: Sequence[Sequence[tuple[float, float]]]) -> Tail:
    """Counts slow runs in pairs of times (seconds) of default and candidate.

    Args:
        size: bytes.
        strata: pairs by machine state; a run is compared with the median in its own state.
    """
    states = [tuple(zip(*times_s, strict=True)) for times_s in strata]
    defaults_s, candidates_s = ([t for sides in states for t in sides[n]] for n in (0, 1))
    mean = interval_of_ratio(estimate_mean_ratio([*chain(*strata)]), 0.95, len(candidates_s))
    return Tail(
        bytes=size,
        pairs=len(candidates_s),
        slow_runs=sum(_slow_runs(of) for _, of in states),
        default_slow_runs=sum(_slow_runs(of) for of, _ in states),
        mean_ratio=mean.ratio,
        mean_low=mean.low,
        mean_high=mean.high,
        p95_ratio=_p95(defaults_s) / _p95(candidates_s),
    )


def measure_tails(cells: Mapping[Cell, Pairs]) -> tuple[Tail, ...]:
    """Counts slow runs of a candidate and of the default, by ascending size.

    A single pair tells nothing, and makes no tail.

    Args:
        cells: pairs of default and candidate, by size and machine state.
    """
    strata: defaultdict[int, list[list[tuple[float, float]]]] = defaultdict(list)
    for (size, _), found in cells.items():
        strata[size].append(found.times_s)
    measured = (measure_tail(size, strata[size]) for size in sorted(strata))
    return tuple(tail for tail in measured if tail.pairs > 1)


def is_heavier(tail: Tail) -> bool:
    """Whether the candidate has more slow runs than the default, by a lenient sign test."""
    by_chance = _SLOW_BY_CHANCE_OF_FEW if tail.pairs < FEW_PAIRS else _SLOW_BY_CHANCE
    return _sign_test(tail.slow_runs, tail.default_slow_runs) <= by_chance


def describe_slow_runs(tails: Sequence[Tail], beside: str = "the default") -> str:
    """Describes the slow runs at the worst size; empty if no size has more than the default.

    Args:
        beside: what the candidate was compared with.
    """
    heavier = [tail for tail in tails if is_heavier(tail)]
    if not heavier:
        return ""
    tail = min(heavier, key=lambda tail: tail.mean_ratio)
    return (
        f"more slow runs than with {beside} at "
        f"{', '.join(format_size(tail.bytes) for tail in heavier)}; "
        f"at {format_size(tail.bytes)}, {tail.slow_runs} of {tail.pairs} took over {SLOW} times "
        f"the median ({beside.removeprefix('the ')}: {tail.default_slow_runs}); speedup of mean "
        f"times {format_speedup(tail.mean)}, 95 % CI by itself, and of the slowest runs (95th "
        f"percentile) {tail.p95_ratio:.2f}x ({tail.pairs} pairs, no interval)"
    )


def _p95(times_s: Sequence[float]) -> float:
    """Returns the 95th percentile by nearest rank: of fewer than 20 runs, the slowest one."""
    return sorted(times_s)[ceil(0.95 * len(times_s)) - 1]


def _sign_test(of_candidate: int, of_default: int) -> float:
    """Returns the probability that chance alone gives the candidate so many of them, or more."""
    both = of_candidate + of_default
    return sum(comb(both, count) for count in range(of_candidate, both + 1)) / (1 << both)


def _slow_runs(times_s: Sequence[float]) -> int:
    usual_s = median(times_s)
    return sum(time_s > SLOW * usual_s for time_s in times_s)
