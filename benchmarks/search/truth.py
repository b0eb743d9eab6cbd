"""What the held-out runs say of every configuration, no louder than their number allows.

The least of many noisy medians is a lucky one: with one held-out run a configuration, whose
times differ by a tenth, the "best" of 500 is 30 % below any true time. So medians are shrunk: a
configuration's time is what its values predict (each alone and in pairs) and an effect of its
own, in the proportion that makes the whole recording most likely. With many runs the median
remains; with none the prediction.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
#: Variance between configurations, as a share of what medians show: of single values, of pairs
#: of values, of each configuration by itself.
_MIXTURES = [
    (scale * alone, scale * (1 - alone), own)
    for scale in (0.3, 1.0)
    for alone in (0.3, 0.8)
    for own in (0.001, 0.01, 0.1, 0.4)
]
#: A median's variance beside a mean's, of many runs.
_MEDIAN = 1.57
#: Beyond this many times the distance from the best to the middle one, a slow configuration is
#: outside of what a smooth prediction can hold, and its median stays as it is.
_FAR = 1.5
#: Halves of each configuration that are compared, and the share of the comparisons that count.
_SPLITS, _KEPT = 4, 0.97
#: At how many sizes mixtures are chosen: each that divides by this.
_STEP = 3


@dataclass(frozen=True)
class Prior:
    """What a whole recording says of noise, and of how configurations resemble each other.

    Attributes:
        kernels: covariance of two configurations' logarithms of seconds, by size.
        noise: standard deviation between runs of one configuration, by size.
    """

    kernels: tuple[Floats, ...]
    noise: Floats


def fit_prior(log_times: Floats, of: Rows, features: Sequence[tuple[str, ...]]) -> Prior:
    """The likeliest mixture at every size.

    Args:
        log_times: logarithms of seconds, a row a run and a column a size.
        of: the configuration of each row.
        features: each configuration's values.
    """
    counts = np.bincount(of, minlength=len(features))
    noise = _noise(log_times, of, counts)
    one, two = _alike(features)
    known, medians = take_medians(log_times, of)
    parts, inner = (one, two, np.eye(len(one))), np.ix_(known, known)
    chosen: list[Floats] = []
    scale = 1.0
    for size, spread in enumerate(noise):
        values, middle, _ = _capped(medians[:, size])
        variance = float(np.var(values - middle))
        if size % _STEP:  # as at the size before: it differs little, and the choice costs most
            chosen.append(chosen[-1] * variance / scale)
        else:
            diagonal = _variance(spread, counts[known])
            kernels = [variance * _mixed(parts, mixture) for mixture in _MIXTURES]
            likely = [_likelihood(k[inner], diagonal, values - middle) for k in kernels]
            chosen.append(kernels[int(np.argmax(likely))])
        scale = variance
    return Prior(tuple(chosen), noise)


def shrink_medians(held: Floats, of: Rows, prior: Prior) -> Floats:
    """Logarithms of seconds, a row a configuration, by these runs of them."""
    counts = np.bincount(of, minlength=len(prior.kernels[0]))
    known, medians = take_medians(held, of)
    columns = []
    for size, kernel in enumerate(prior.kernels):
        values, middle, cap = _capped(medians[:, size])
        inner = kernel[np.ix_(known, known)] + np.diag(_variance(prior.noise[size], counts[known]))
        found = middle + kernel[:, known] @ np.linalg.solve(inner, values - middle)
        found[known] = np.where(medians[:, size] < cap, found[known], medians[:, size])
        columns.append(found)
    return np.stack(columns, axis=1)


def take_medians(log_times: Floats, of: Rows) -> tuple[Rows, Floats]:
    """The configurations that have runs, and the medians of these at each size."""
    known = np.unique(of)
    return known, np.array([np.nanmedian(log_times[of == c], axis=0) for c in known])


def _capped(medians: Floats) -> tuple[Floats, float, float]:
    middle = float(np.median(medians))
    cap = middle + _FAR * (middle - float(np.quantile(medians, 0.02)))
    return np.minimum(medians, cap), middle, cap


def _variance(noise: float, counts: Rows) -> Floats:
    found: Floats = noise**2 * np.where(counts > 2, _MEDIAN, 1.0) / counts
    return found


def _noise(log_times: Floats, of: Rows, counts: Rows) -> Floats:
    """By how much medians of halves differ, as a run's standard deviation, by size.

    Where single runs go wild, this is more than what most runs differ by.
    """
    rng, parts = np.random.default_rng(1), []
    for configuration in np.flatnonzero(counts > 1):
        rows, half = log_times[of == configuration], counts[configuration] // 2
        variance = _variance(1.0, np.array([half, half])).sum()
        for _ in range(_SPLITS):
            order = rng.permutation(len(rows))
            one, other = rows[order[:half]], rows[order[half : 2 * half]]
            away = np.nanmedian(one, axis=0) - np.nanmedian(other, axis=0)
            parts.append(away**2 / variance)
    squares = np.sort(np.array(parts), axis=0)[: int(_KEPT * len(parts))]
    spread: Floats = np.sqrt(squares.mean(axis=0))
    return np.maximum(spread, 1e-3)


def _alike(features: Sequence[tuple[str, ...]]) -> tuple[Floats, Floats]:
    """Shares of single values, and of pairs of values, that two configurations have in common."""
    table = np.array(features)
    same = np.array([column[:, None] == column[None, :] for column in table.T], dtype=float)
    pairs = [a * b for a, b in itertools.combinations(same, 2)] or [same[0]]
    return same.mean(axis=0), np.mean(pairs, axis=0)


def _mixed(parts: Sequence[Floats], weights: Sequence[float]) -> Floats:
    found: Floats = np.tensordot(np.array(weights), np.array(parts), axes=1)
    return found


def _likelihood(kernel: Floats, noise: Floats, values: Floats) -> float:
    factor = np.linalg.cholesky(kernel + np.diag(noise))
    whitened: Floats = solve_triangular(factor, values, lower=True, check_finite=False)
    return -0.5 * float(whitened @ whitened) - float(np.log(np.diag(factor)).sum())
