"""Estimates the ratio of the 95th percentiles of two sides, by order statistics.

Of n independent runs, the number that take less than the 95th percentile is binomial, whatever the
noise. So two of the ordered times enclose it with a known probability; with few runs, the slowest
one may well be below it, and nothing bounds it from above (David & Nagaraja, Order statistics,
2003). Runs in slow states that last for many blocks are not independent: docs/adr/0032 has what
that costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from commtune.tuner.statistics.intervals import Estimate

_SHARE = 0.95
#: The level at which an interval's half width is the standard error of a normal estimate.
_ONE_ERROR = 0.6827


@dataclass(frozen=True)
class PercentileRatio(Estimate):
    """The log ratio of two 95th percentiles; its error is that of a normal estimate as wide.

    Attributes:
        sides_s: times of both sides (seconds), ascending.
    """

    sides_s: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())

    def noise_half_width(self, level: float) -> float:
        """Returns the half width from noise alone: the larger one of both ends.

        Both percentiles are inside their intervals with probability ``level``.
        """
        (low_s, high_s), (other_low_s, other_high_s) = (
            _enclose(side_s, (1 + level) / 2) for side_s in self.sides_s
        )
        low, high = _log_ratio(low_s, other_high_s), _log_ratio(high_s, other_low_s)
        return max(high - self.mean, self.mean - low)

    def count_fewest_pairs(self, _level: float) -> int:
        """Returns the fewest pairs of which an interval at this level has two ends."""
        return count_needed_pairs(_level)


def estimate_percentile_ratio(times_s: Sequence[tuple[float, float]]) -> PercentileRatio | None:
    """Estimates the log ratio of two 95th percentiles; ``None`` for fewer than 50 pairs."""
    pairs = len(times_s)
    if pairs < count_needed_pairs(_ONE_ERROR):
        return None
    one_s, other_s = (tuple(sorted(side)) for side in zip(*times_s, strict=True))
    mean = math.log(find_p95(one_s) / find_p95(other_s))
    wide = PercentileRatio(mean, 0.0, pairs - 1, pairs, sides_s=(one_s, other_s))
    return PercentileRatio(
        mean, wide.noise_half_width(_ONE_ERROR), pairs - 1, pairs, sides_s=(one_s, other_s)
    )


def find_p95(times_s: Sequence[float]) -> float:
    """Returns the 95th percentile by nearest rank: of fewer than 20 runs, the slowest one."""
    return sorted(times_s)[math.ceil(_SHARE * len(times_s)) - 1]


def count_needed_pairs(level: float) -> int:
    """Counts the pairs with which the slowest runs of both sides bound their percentiles.

    Each of four ends may be wrong with a quarter of the error rate.
    """
    return math.ceil(math.log((1 - level) / 4) / math.log(_SHARE))


def _enclose(ordered_s: Sequence[float], level: float) -> tuple[float, float]:
    """Returns two of the times, between which the percentile is; 0 and infinity for none."""
    below, above = _find_ranks(len(ordered_s), level)
    low_s = ordered_s[below - 1] if below > 0 else 0.0
    return low_s, ordered_s[above - 1] if above <= len(ordered_s) else math.inf


@lru_cache(maxsize=1024)
def _find_ranks(count: int, level: float) -> tuple[int, int]:
    """Finds the ranks (from 1) of the times that enclose the percentile."""
    from scipy.special import bdtr, bdtrc  # 0.1 s to import; only a tuning process needs it

    miss = (1 - level) / 2
    below, above = 0, count + 1
    while below < count and bdtr(below, count, _SHARE) <= miss:
        below += 1
    while above > 1 and bdtrc(above - 2, count, _SHARE) <= miss:
        above -= 1
    return below, above


def _log_ratio(one_s: float, other_s: float) -> float:
    if one_s in (0.0, math.inf) or other_s in (0.0, math.inf):
        return math.inf if one_s > other_s else -math.inf
    return math.log(one_s / other_s)
