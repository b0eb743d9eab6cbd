"""Estimates the trend of the machine's speed in the order of runs, by a running median.

Neighbouring runs share the machine's state of the moment, which would otherwise pass for the
effect of what the search tried then.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from commtune.tuner.search.encoding import Matrix

#: Runs before, and runs after, a run whose median is its trend.
_NEIGHBOURS = 4
#: Residuals (logarithm) are clipped at this on both sides: one disturbed run is no trend.
_CLIPPED_AT = 0.45
#: Standard errors by which neighbours have to predict a run's residual. With two, too much is
#: removed in large spaces: consecutive runs set similar values, and what the model does not know
#: of these looks like a trend (docs/search-trials.md, autocorrelated noise).
_LEAST_ERRORS = 3.5


def find_trend(residuals: Matrix) -> Matrix:
    """Estimates the trend at each run: the median residual of its neighbours, or 0 everywhere.

    It is 0 unless a regression of residuals on these medians is significant, with a standard
    error that allows for the correlation of a run's sizes (clustered by run).

    Args:
        residuals: log speedups less the model's predictions, runs in their order x sizes.
    """
    if len(residuals) < 2:
        return np.zeros_like(residuals)
    clipped = np.clip(residuals, -_CLIPPED_AT, _CLIPPED_AT)
    padded = np.pad(clipped, ((_NEIGHBOURS, _NEIGHBOURS), (0, 0)), constant_values=np.nan)
    windows = sliding_window_view(padded, 2 * _NEIGHBOURS + 1, axis=0)
    around = _median_of_each(np.delete(windows, _NEIGHBOURS, axis=-1))
    here, there = clipped - clipped.mean(axis=0), around - around.mean(axis=0)
    square = max(float((there * there).sum()), 1e-12)
    share = float((there * here).sum()) / square
    by_run = (there * (here - share * there)).sum(axis=1)
    is_significant = share * square > _LEAST_ERRORS * float(np.sqrt((by_run**2).sum()))
    return around * float(is_significant)


def _median_of_each(windows: Matrix) -> Matrix:
    """Returns the medians of the last axis, where only windows at both ends have gaps (NaN)."""
    found: Matrix = np.median(windows, axis=-1)
    for ends in (slice(_NEIGHBOURS), slice(-_NEIGHBOURS, None)):
        found[ends] = np.nanmedian(windows[ends], axis=-1)  # for all, it takes five times as long
    return found
