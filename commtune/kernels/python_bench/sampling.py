"""Statistics of samples, and when there are enough: as src/timing/statistics.cpp and stopping.cpp.

Without NumPy. Both sides are tested from tests/kernels/golden/.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_TAIL = 0.025  # one side of a 95 % interval
_EXACT_UP_TO = 200  # beyond it the normal approximation is good enough
_NORMAL_QUANTILE = 1.96
_QUANTILES = {"p5": 0.05, "p25": 0.25, "median": 0.5, "p75": 0.75, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True)
class _Summary:
    """Samples, summed up; with the 95 % confidence interval of their median."""

    times: dict[str, float]
    median_low: float
    median_high: float

    @property
    def median(self) -> float:
        return self.times["median"]


def summarise_samples(samples: Sequence[float]) -> _Summary:
    """Sums up one sample or more."""
    ordered = sorted(samples)
    low, high = _median_bounds(len(ordered))
    mean = math.fsum(ordered) / len(ordered)
    times = {"min": ordered[0], **{n: _quantile(ordered, s) for n, s in _QUANTILES.items()}}
    times |= {"max": ordered[-1], "mean": mean, "stdev": _deviation(ordered, mean)}
    return _Summary(times, ordered[low], ordered[high])


def _quantile(ascending: Sequence[float], share: float) -> float:
    """A quantile, by linear interpolation between neighbours."""
    position = share * (len(ascending) - 1)
    below = int(position)
    above = min(below + 1, len(ascending) - 1)
    return ascending[below] + (position - below) * (ascending[above] - ascending[below])


def _median_bounds(count: int) -> tuple[int, int]:
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


#: Past this many time caps a size ends even with fewer samples than the minimum.
_HARD_CAP_FACTOR = 20.0

_SHORTEST_SAMPLE_S = 10e-6
_RESOLUTION_STEPS = 200.0
# A clock that is so coarse that more are needed measures nothing of short messages anyway.
_LARGEST_BATCH = 1024
_FEWEST_FOR_INTERVAL = 6  # fewer hold no 95 % interval of the median
# Decisions cost an agreement of all ranks: not after every sample.
_CHUNK = 10
_CHUNK_SHARE = 0.1  # of the time cap
_GROWTH = 4  # after many samples, decide after each further quarter


def batch_for(operation_s: float, clock_resolution_s: float) -> int:
    """Operations to time together: a power of two, so that a sample is not lost in the noise."""
    target_s = max(_SHORTEST_SAMPLE_S, _RESOLUTION_STEPS * clock_resolution_s)
    batch = 1
    while batch < _LARGEST_BATCH and batch * operation_s < target_s:
        batch *= 2
    return batch


@dataclass(frozen=True)
class StoppingRule:
    """How long a size is measured; times are arguments, so that one rank can decide for all."""

    warmup: int = 5
    min_samples: int = 10
    max_samples: int = 200
    relative_ci: float = 0.01
    time_cap_s: float = 0.05

    def next_warmup(self, done: int, spent_s: float, slowest_s: float) -> int:
        """How many warm-up operations to do next; 0 when it is enough."""
        left = self.warmup - done
        allowed_s = self.time_cap_s / 2
        if left <= 0 or spent_s >= allowed_s:
            return 0
        return left if slowest_s * left < allowed_s - spent_s else 1

    def stop(self, samples_s: Sequence[float], spent_s: float) -> str | None:
        """Why to stop now, in the word of the records, or ``None``."""
        taken = len(samples_s)
        if taken >= self.max_samples:
            return "max-samples"
        if taken and spent_s >= _HARD_CAP_FACTOR * self.time_cap_s:
            return "hard-cap"
        if taken < self.min_samples:
            return None
        if self._converged(samples_s):
            return "converged"
        return "time-cap" if spent_s >= self.time_cap_s else None

    def next_chunk(self, taken: int, sample_wall_s: float) -> int:
        """How many samples to take before the next decision, at least 1."""
        missing = self.min_samples - taken
        wanted = missing if missing > 0 else max(_CHUNK, taken // _GROWTH)
        allowed = min(wanted, self.max_samples - taken)
        # Long samples are decided on one by one: the next may take far longer than the last did.
        fitting = _CHUNK_SHARE * self.time_cap_s / sample_wall_s
        return max(1, int(fitting) if fitting < allowed else allowed)

    def _converged(self, samples_s: Sequence[float]) -> bool:
        if len(samples_s) < _FEWEST_FOR_INTERVAL:
            return False
        found = summarise_samples(samples_s)
        return found.median_high - found.median_low < self.relative_ci * found.median
