"""Halves of what is good: which of its variables matter?

The search meets its best configurations with whatever else they happened to set, and what it
changes of them keeps most of that. So their variables come together in all that is good, and no
model can tell which of them matter. A run of half of them can.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from commtune.model import Configuration
from commtune.tuner.search.model import TableModel

#: All that is left out together is expected to cost so much of the speedup (logarithms), or this
#: share of it, at most.
_LEAST_LOSS, _LOST_SHARE = 0.01, 0.5
#: Of what is behind the best by no more than this many of its standard errors, the smallest is
#: halved. Small, since few runs leave large errors: then all could be the best, and what is
#: merely small would be halved, or nothing.
_BEHIND = 0.1


def list_smaller_variants(model: TableModel) -> list[Configuration]:
    """Of the smallest configuration that looks best at each size, half of what it gains.

    What looks like no gain, and what a single variable gains, has none. Some may have been tried.
    """
    if not model.kept:
        return []
    mean, error = model.predict(model.encoding.rows(model.kept))
    least = (mean - _BEHIND * error).max(axis=0)
    lengths = np.array([len(one) for one in model.kept])
    sizes_of: defaultdict[int, list[int]] = defaultdict(list)
    for size in np.flatnonzero(least > 0).tolist():
        good = np.flatnonzero(mean[:, size] >= least[size])
        sizes_of[min(good.tolist(), key=lambda n: (lengths[n], -mean[n, size]))].append(size)
    large = [(model.kept[n], sizes) for n, sizes in sizes_of.items() if lengths[n] > 1]
    return list(dict.fromkeys(halve_configuration(model, one, sizes) for one, sizes in large))


def halve_configuration(
    model: TableModel, large: Configuration, sizes: Sequence[int]
) -> Configuration:
    """A configuration without what the model expects to bring the lesser half at some sizes.

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
