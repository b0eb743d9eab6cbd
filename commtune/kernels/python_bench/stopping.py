"""When a size has been measured enough; the rules of src/stopping.cpp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from commtune.kernels.python_bench.statistics import summarise_samples

#: Past this many time caps a size ends even with fewer samples than the minimum.
HARD_CAP_FACTOR = 20.0

_SHORTEST_SAMPLE_S = 10e-6
_RESOLUTION_STEPS = 200.0
_LARGEST_BATCH = 1024
_FEWEST_FOR_INTERVAL = 6  # fewer hold no 95 % interval of the median
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
        if taken and spent_s >= HARD_CAP_FACTOR * self.time_cap_s:
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
