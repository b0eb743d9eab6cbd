"""Finds active values by multivariate regression, over all sizes together.

The evidence of the Gaussian process is for an effect at all sizes, in units of how much runs
differ there. So noise that is large at many sizes can hide an effect at one where there is little,
and noise that all sizes of a run share can hide an effect that they don't share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commtune.tuner.search.encoding import EncodedValue, Matrix, Rows

#: The family-wise error rate: the probability to find any active value where none is, were runs
#: independent and normal. Bonferroni's correction is over values.
_ERROR_RATE = 0.001
#: The p-value above which a value shows nothing.
_SHOWS_NOTHING = 0.05
#: The least weight of a value, in runs that tell it from the values that were found.
_LEAST_WEIGHT = 2.5


@dataclass(frozen=True)
class ValueTests:
    """What the tests of values found.

    Attributes:
        active: values that change times beyond doubt.
        idle: other values of the same parameters, which show nothing.
        likeliest: the value with the least p-value.
    """

    active: tuple[EncodedValue, ...] = ()
    idle: tuple[EncodedValue, ...] = ()
    likeliest: EncodedValue = (0, 1)


def find_active_values(rows: Rows, means: Matrix, runs: Matrix) -> ValueTests:
    """Finds values that change times beyond doubt, by forward selection.

    Args:
        means: log speedups, configurations x sizes, of any scale.
        runs: number of runs of each configuration, as a column.
    """
    items = [(n, value) for n in range(rows.shape[1]) for value in np.unique(rows[:, n]) if value]
    if not items:
        return ValueTests()
    weights = np.sqrt(runs)
    columns = weights * np.array([rows[:, n] == value for n, value in items]).T
    found: list[int] = []
    while True:
        kept = np.hstack([weights, columns[:, found]])
        chances = _compute_p_values(columns, weights * means, kept)
        best = int(chances.argmin())
        likeliest = items[found[0] if found else best]
        if len(items) * chances[best] > _ERROR_RATE:
            break
        found.append(best)
    active = tuple(items[n] for n in found)
    owners = {owner for owner, _ in active}
    idle = np.flatnonzero((chances > _SHOWS_NOTHING) & (chances < 1.0)).tolist()
    return ValueTests(active, tuple(items[n] for n in idle if items[n][0] in owners), likeliest)


def _compute_p_values(columns: Matrix, means: Matrix, kept: Matrix) -> NDArray[np.float64]:
    """Computes the p-value of each column beside those that are kept.

    The test is Hotelling's, as an F test of the multiple correlation of a column with all sizes.
    The p-value is 1 where too few runs tell a column from those that are kept.
    """
    from scipy.special import fdtrc  # 0.1 s to import; only a tuning process needs it

    basis = _find_basis(kept)
    values, left = (one - basis @ (basis.T @ one) for one in (columns, means))
    sizes = _find_basis(left)
    count, weight = sizes.shape[1], (values**2).sum(axis=0)
    freedom = len(columns) - basis.shape[1] - count
    is_known = (weight >= _LEAST_WEIGHT) & (min(freedom, count) > 0)
    explained = ((sizes.T @ values) ** 2).sum(axis=0) / np.maximum(weight, 1e-12)
    explained = np.where(is_known, np.minimum(explained, 1 - 1e-12), 0.0)
    ratio = explained / (1 - explained) * freedom / max(1, count)
    found: NDArray[np.float64] = fdtrc(max(1, count), max(1, freedom), ratio)
    return found


def _find_basis(columns: Matrix) -> Matrix:
    """Returns an orthonormal basis of what columns span."""
    vectors, singular, _ = np.linalg.svd(columns, full_matrices=False)
    found: Matrix = vectors[:, singular > 1e-9 * singular.max()]
    return found
