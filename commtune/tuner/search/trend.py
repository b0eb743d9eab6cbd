"""What runs made about the same time have in common: the machine changes while a search runs."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from commtune.tuner.search.encoding import Matrix

#: Runs before and after one that were made about the same time.
_NEAR = 4
#: Residuals (logarithm) are drawn in to this: one stray run is no trend.
_FAR = 0.45
#: Standard errors by which runs must tell of the next ones. So many, since runs that follow each
#: other set alike values, and what the model doesn't know of these is no trend.
_SURE = 3.5


def find_trend(residuals: Matrix) -> Matrix:
    """What the runs around each run tell of its residual: zero where that may be chance.

    Args:
        residuals: of runs, one after the other, at each size (logarithm).
    """
    if len(residuals) < 2:
        return np.zeros_like(residuals)
    drawn = np.clip(residuals, -_FAR, _FAR)
    padded = np.pad(drawn, ((_NEAR, _NEAR), (0, 0)), constant_values=np.nan)
    windows = sliding_window_view(padded, 2 * _NEAR + 1, axis=0)
    around: Matrix = np.nanmedian(np.delete(windows, _NEAR, axis=-1), axis=-1)
    here, there = drawn - drawn.mean(axis=0), around - around.mean(axis=0)
    square = max(float((there * there).sum()), 1e-12)
    share = float((there * here).sum()) / square
    by_run = (there * (here - share * there)).sum(axis=1)
    is_sure = share * square > _SURE * float(np.sqrt((by_run**2).sum()))
    return around * float(is_sure)
