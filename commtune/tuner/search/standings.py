"""What the search knows of every configuration that it ran: the interface to what follows it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from commtune.model import Configuration, Phase
from commtune.tuner.statistics.evidence import Evidence, default_times, log_gains

#: What runs differ by, as logarithms: at least, and before anything was run twice.
_LEAST_NOISE, _UNKNOWN_NOISE = 0.005, 0.1

#: Log speedup over the default by size (bytes), of one run.
Speedups = Mapping[int, float]


@dataclass(frozen=True)
class Standing:
    """What is known of a configuration's speedup; it picks candidates and is never a claim.

    Attributes:
        runs: good runs of the search.
        mean: log speedup over the default, by size in bytes.
        error: its standard error, by size in bytes.
    """

    configuration: Configuration
    runs: int
    mean: Mapping[int, float]
    error: Mapping[int, float]


def average_runs(
    runs: Sequence[tuple[Configuration, Speedups]],
) -> tuple[Standing, ...]:
    """Standings by plain means of runs, with the noise that repeated runs show at each size."""
    found: defaultdict[Configuration, defaultdict[int, list[float]]]
    found = defaultdict(lambda: defaultdict(list))
    counts: defaultdict[Configuration, int] = defaultdict(int)
    for configuration, speedups in runs:
        counts[configuration] += 1
        for size, value in speedups.items():
            found[configuration][size].append(value)
    noise = _pool_noise(list(found.values()))
    return tuple(
        Standing(
            configuration,
            counts[configuration],
            {size: fmean(values) for size, values in by_size.items()},
            {size: noise[size] / math.sqrt(len(values)) for size, values in by_size.items()},
        )
        for configuration, by_size in found.items()
        if not configuration.is_default
    )


def _pool_noise(samples: Sequence[Mapping[int, Sequence[float]]]) -> dict[int, float]:
    squares: defaultdict[int, float] = defaultdict(float)
    freedom: defaultdict[int, int] = defaultdict(int)
    for by_size in samples:
        for size, values in by_size.items():
            mean = fmean(values)
            squares[size] += math.fsum((value - mean) ** 2 for value in values)
            freedom[size] += len(values) - 1
    return {
        size: max(_LEAST_NOISE, math.sqrt(squares[size] / n)) if n else _UNKNOWN_NOISE
        for size, n in freedom.items()
    }


def list_speedups(evidence: Evidence) -> list[tuple[Configuration, Speedups]]:
    """The log speedups of all good runs of the search, the default's among them, in order."""
    runs = list(evidence.good(Phase.SEARCH))
    states = evidence.speeds()
    reference = default_times(runs, states)
    return [
        (
            run.configuration,
            {size: v for (size, _), v in log_gains(run, states, reference).items()},
        )
        for run in runs
    ]
