"""What to recommend at each size after a number of runs, whoever chose the runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .halves import Floats
from .player import Picks, Played

#: How many standard errors a bound lies beside the mean.
_DOUBT = 1.0
#: What runs differ by, as logarithms, before any configuration was run twice; and at least.
_UNKNOWN, _LEAST = 0.1, 0.005
RULES = ("lcb", "own")


@dataclass(frozen=True)
class Means:
    """Mean logarithms of seconds, a row a configuration that was run, and their errors.

    Attributes:
        rows: the configurations' rows in the grid.
        runs: how many each has.
    """

    rows: NDArray[np.int64]
    runs: NDArray[np.int64]
    mean: Floats
    error: Floats


def average_runs(played: Played, until: int) -> Means:
    """What the first runs say; the error is by what all repeated runs differ by."""
    of = np.array(played.configurations[:until])
    times = np.array(played.log_times[:until])
    good = ~np.isnan(times).any(axis=1)
    of, times = of[good], times[good]
    rows, place, runs = np.unique(of, return_inverse=True, return_counts=True)
    total = np.zeros((len(rows), times.shape[1]))
    np.add.at(total, place, times)
    mean = total / runs[:, None]
    noise = _noise(times - mean[place], runs[place])
    return Means(rows, runs, mean, noise / np.sqrt(runs)[:, None])


def _noise(residuals: Floats, runs: NDArray[np.int64]) -> Floats:
    freedom = float((1 - 1 / runs).sum())
    if freedom < 1:
        return np.full(residuals.shape[1], _UNKNOWN)
    spread: Floats = np.sqrt((residuals**2).sum(axis=0) / freedom)
    return np.maximum(spread, _LEAST)


def pick_rows(played: Played, until: int, rule: str) -> Picks | None:
    """The recommended row at each size; none where the method has no opinion of its own.

    Args:
        rule: ``lcb``, the best lower confidence bound of the speedup; ``own``, what the method
            itself says.
    """
    if rule == "own":
        return played.own.get(until)
    means = average_runs(played, until)
    bound = means.mean + _DOUBT * means.error
    chosen: Picks = means.rows[bound.argmin(axis=0)]
    return chosen
