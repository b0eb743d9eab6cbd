"""Statistics of samples, without NumPy; the same numbers as src/statistics.cpp gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_TAIL = 0.025  # one side of a 95 % interval
_EXACT_UP_TO = 200  # beyond it the normal approximation is good enough
_NORMAL_QUANTILE = 1.96
_QUANTILES = {"p5": 0.05, "p25": 0.25, "median": 0.5, "p75": 0.75, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True)
class Summary:
    """Samples, summed up.

    Attributes:
        times: min, p5, p25, median, p75, p95, p99, max, mean, stdev.
        median_low, median_high: 95 % confidence interval of the median, from order statistics.
    """

    times: dict[str, float]
    median_low: float
    median_high: float

    @property
    def median(self) -> float:
        return self.times["median"]


def summarise_samples(samples: Sequence[float]) -> Summary:
    """Sums up one sample or more."""
    ordered = sorted(samples)
    low, high = median_bounds(len(ordered))
    mean = math.fsum(ordered) / len(ordered)
    times = {"min": ordered[0], **{n: quantile(ordered, s) for n, s in _QUANTILES.items()}}
    times |= {"max": ordered[-1], "mean": mean, "stdev": _deviation(ordered, mean)}
    return Summary(times, ordered[low], ordered[high])


def quantile(ascending: Sequence[float], share: float) -> float:
    """By linear interpolation between neighbours."""
    position = share * (len(ascending) - 1)
    below = int(position)
    above = min(below + 1, len(ascending) - 1)
    return ascending[below] + (position - below) * (ascending[above] - ascending[below])


def median_bounds(count: int) -> tuple[int, int]:
    """Indices of the ordered samples between which the median lies, with 95 % confidence."""
    if count <= _EXACT_UP_TO:
        rank = _lower_rank(count)
    else:
        rank = int((count - _NORMAL_QUANTILE * math.sqrt(count)) / 2)
    low = max(rank - 1, 0)
    return low, count - 1 - low


def _lower_rank(count: int) -> int:
    """Largest k for which P(B <= k - 1) <= 0.025, for B binomial with probability 1/2."""
    term: float = 0.5**count
    below = term
    k = 0
    while below <= _TAIL:
        k += 1
        term *= (count - k + 1) / k
        below += term
    return k


def _deviation(values: Sequence[float], mean: float) -> float:
    if len(values) < 2:
        return 0.0
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))
