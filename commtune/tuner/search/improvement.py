"""The acquisition function of the search: the knowledge gradient, summed over sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from commtune.model import DEFAULT, Configuration
from commtune.tuner.search.encoding import Matrix
from commtune.tuner.search.model import TableModel


def expected_improvement(
    mean: Matrix, error: Matrix, noise: Matrix, best: Matrix, weights: Matrix
) -> Matrix:
    """Returns how much one more run of each configuration is expected to improve the best means.

    The knowledge gradient (Frazier, Powell & Dayanik 2009) at each size, summed by weight. One
    run moves a mean with the standard deviation error**2 / sqrt(error**2 + noise**2), little
    where it is well known; so new configurations and re-runs compete by the same figure.

    Args:
        mean, error: log speedup and its standard error, configurations x sizes.
        noise: standard deviation of one run at each size (logarithm).
        best: the best mean of all others at each size; one row, or one for each configuration.
        weights: of the sizes.
    """
    from scipy.special import ndtr  # 0.1 s to import; only a tuning process needs it

    moves = error**2 / np.sqrt(error**2 + noise**2)
    behind = np.abs(mean - best) / moves
    density = np.exp(-0.5 * behind**2) / math.sqrt(2 * math.pi)
    found: Matrix = (moves * (density - behind * ndtr(-behind))) @ weights
    return found


def _best_of_others(mean: Matrix) -> Matrix:
    """Returns, for each row, the largest value of all other rows in each column."""
    ordered = np.sort(mean, axis=0)
    best, second = ordered[-1], ordered[-2:][0]  # the same where there is one row
    found: Matrix = np.where(mean == best, second, best)
    return found


def weigh_sizes(sizes: Matrix, messages: Mapping[int, float], default_s: Matrix) -> Matrix:
    """Returns the weights of sizes: equal, or by the time that a program's messages take.

    Sizes without messages share a tenth of the weight, since profiles are for all sizes.

    Args:
        messages: number of messages by size (bytes); empty for equal weights.
        default_s: seconds that the default takes at each size.
    """
    if not messages:
        return np.full(len(sizes), 1 / len(sizes))
    times = np.zeros(len(sizes))
    for size, count in messages.items():
        near = int(np.argmin(np.abs(np.log(sizes / max(1, size)))))
        times[near] += count * max(1.0, size / sizes[near]) * default_s[near]
    found: Matrix = 0.9 * times / times.sum() + 0.1 / len(sizes)
    return found


def rank_reruns(
    model: TableModel, weights: Matrix, most_runs: int
) -> list[tuple[Configuration, float]]:
    """Ranks fitted configurations by the expected improvement (logarithm) of one more run.

    Args:
        most_runs: configurations with as many runs are left out.
    """
    known = [DEFAULT, *model.fitted]
    mean, error = model.predict(model.encoding.rows(known))
    value = expected_improvement(mean, error, model.noise, _best_of_others(mean), weights)
    found = [
        (configuration, worth)
        for configuration, worth in zip(known, value.tolist(), strict=True)
        if not configuration.is_default and model.runs_of(configuration) < most_runs
    ]
    return sorted(found, key=lambda pair: -pair[1])
