"""Finds active parameters by multivariate regression, over all sizes together.

The evidence of the Gaussian process is for an effect at all sizes, in units of how much runs
differ there. So noise that is large at many sizes can hide an effect at one where there is little,
and noise that all sizes of a run share can hide an effect that they don't share.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commtune.tuner.search.encoding import Matrix, Rows

#: The family-wise error rate: the probability to find any parameter that does nothing, were runs
#: independent and normal. Bonferroni's correction is over values.
_ERROR_RATE = 0.001
#: The least weight of a value, in runs that tell it from the parameters that are kept.
_LEAST_WEIGHT = 2.5


def find_active_parameters(
    rows: Rows, means: Matrix, runs: NDArray[np.float64], idle: Sequence[int]
) -> list[int]:
    """Finds parameters, among those taken for idle, of which a value changes times beyond doubt.

    Forward selection, beside the parameters that are kept already. The test is Hotelling's, as an
    F test of the multiple correlation of a value with all sizes.

    Args:
        means: log speedups, configurations x sizes, of any scale.
        runs: number of runs of each configuration.
        idle: numbers of parameters.
    """
    from scipy.special import fdtrc  # 0.1 s to import; only a tuning process needs it

    found: list[int] = []
    if not len(rows):
        return found
    weights = np.sqrt(runs)[:, None]
    while rest := [n for n in idle if n not in found]:
        kept = [n for n in range(rows.shape[1]) if n not in rest]
        basis = _find_basis(weights * np.hstack([np.ones_like(weights), _indicate(rows, kept)]))
        values, left = (
            weights * one - basis @ (basis.T @ (weights * one))
            for one in (_indicate(rows, rest), means)
        )
        sizes = _find_basis(left)
        freedom = len(rows) - basis.shape[1] - sizes.shape[1]
        explained = _correlate(values, sizes)
        best = min(float(explained.max(initial=0.0)), 1 - 1e-12)
        if freedom < 1 or not best:
            break
        ratio = best / (1 - best) * freedom / sizes.shape[1]
        if len(explained) * fdtrc(sizes.shape[1], freedom, ratio) > _ERROR_RATE:
            break
        owners = [n for n, _ in _list_values(rows, rest)]
        found.append(owners[int(explained.argmax())])
    return found


def _list_values(rows: Rows, parameters: Sequence[int]) -> list[tuple[int, int]]:
    """Lists the values that occur, but for unset: the parameter's number and the value's."""
    return [(n, value) for n in parameters for value in np.unique(rows[:, n]).tolist() if value]


def _indicate(rows: Rows, parameters: Sequence[int]) -> Matrix:
    """Returns a column for each value that occurs, 1 where it is set."""
    columns = [rows[:, n] == value for n, value in _list_values(rows, parameters)]
    return np.array(columns, dtype=np.float64).reshape(-1, len(rows)).T


def _find_basis(columns: Matrix) -> Matrix:
    """Returns an orthonormal basis of what columns span."""
    vectors, singular, _ = np.linalg.svd(columns, full_matrices=False)
    found: Matrix = vectors[:, singular > 1e-9 * singular.max()]
    return found


def _correlate(values: Matrix, sizes: Matrix) -> NDArray[np.float64]:
    """Returns the squared multiple correlation of each value; 0 for values of too little weight.

    Args:
        sizes: an orthonormal basis of the log speedups.
    """
    weight = (values**2).sum(axis=0)
    explained = ((sizes.T @ values) ** 2).sum(axis=0) / np.maximum(weight, 1e-12)
    found: NDArray[np.float64] = np.where(weight < _LEAST_WEIGHT, 0.0, explained)
    return found
