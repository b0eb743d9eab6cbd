"""Smaller variants of what is good, without the variables that seem to do nothing.

The search meets its best configurations with whatever else they happened to set. The model has
seen each value in many others, so it can tell what a variable brings. What it makes smaller is
measured like everything else: only runs count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from commtune.model import Configuration
from commtune.tuner.search.model import TableModel

#: All that is left out together may cost so much of the speedup (logarithms), or this share of it.
_LEAST_LOSS, _LOST_SHARE = 0.01, 0.05


def list_smaller_variants(model: TableModel) -> list[Configuration]:
    """Of the configuration that surely gains most at each size, what seems to matter of it.

    Those that were tried, or gain nothing, are absent.
    """
    if not model.kept:
        return []
    mean, error = model.predict(model.encoding.rows(model.kept))
    lower = mean - error
    best = lower.argmax(axis=0)
    found: dict[Configuration, None] = {}
    for index in dict.fromkeys(best.tolist()):
        sizes = np.flatnonzero((best == index) & (lower[index] > 0)).tolist()
        if sizes:
            small = leave_out_idle(model, model.kept[index], sizes)
            found[small] = None
    return list(found)


def leave_out_idle(model: TableModel, large: Configuration, sizes: Sequence[int]) -> Configuration:
    """A configuration without what the model expects to bring nothing at some sizes.

    Args:
        sizes: their places in the model.
    """
    space, rows = model.encoding.space, model.encoding.rows
    whole = model.predict(rows([large]))[0][0, sizes]
    allowed = np.maximum(_LEAST_LOSS, _LOST_SHARE * whole)
    small = large
    while variants := [one for one in space.parameter_units(small).values() if one]:
        lost = (whole - model.predict(rows(variants))[0][:, sizes] - allowed).max(axis=1)
        if lost.min() > 0:
            break
        small = variants[int(lost.argmin())]
    return small
