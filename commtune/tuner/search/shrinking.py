"""Finds parts of the best configurations: to be run, or to be confirmed in their place.

The variables of a good configuration occur together in all good runs, since the search varies it
only a little. So no model can tell which of them matter, but a run of half of them can.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

import numpy as np

from commtune.model import Configuration
from commtune.tuner.search.model import TableModel

#: What is left out may cost so much of the log speedup by the model, or this share of it.
_LEAST_LOSS, _LOST_SHARE = 0.01, 0.5
#: The smallest of the configurations within this many standard errors of the best is halved. With
#: one, everything may be the best after few runs, and what is merely small is halved, or nothing
#: (docs/search-trials.md, halving before a gain is certain).
_BEHIND_ERRORS = 0.1
#: A variable is dropped where time is too short to ablate all candidates, unless it gains this
#: many standard errors by the model at some size (docs/search-trials.md, weak variables).
_LEAST_LEAD = 1.0


def list_smaller_variants(model: TableModel) -> list[Configuration]:
    """Lists the halves of the smallest configuration that looks best at each size.

    Sizes without a speedup, or with one by a single variable, add none. Some may have been tried.
    """
    if not model.fitted:
        return []
    mean, error = model.predict(model.encoding.rows(model.fitted))
    least = (mean - _BEHIND_ERRORS * error).max(axis=0)
    lengths = np.array([len(one) for one in model.fitted])
    sizes_of: defaultdict[int, list[int]] = defaultdict(list)
    for size in np.flatnonzero(least > 0).tolist():
        good = np.flatnonzero(mean[:, size] >= least[size])
        sizes_of[min(good.tolist(), key=lambda n: (lengths[n], -mean[n, size]))].append(size)
    large = [(model.fitted[n], sizes) for n, sizes in sizes_of.items() if lengths[n] > 1]
    return list(dict.fromkeys(_halve_configuration(model, one, sizes) for one, sizes in large))


def _halve_configuration(
    model: TableModel, large: Configuration, sizes: Sequence[int]
) -> Configuration:
    """Drops variables as long as the model expects half of the speedup to stay at some sizes.

    Args:
        sizes: indices of sizes in the model.
    """
    space, rows = model.encoding.space, model.encoding.rows
    whole = model.predict_mean(rows([large]))[0, sizes]
    allowed = np.maximum(_LEAST_LOSS, _LOST_SHARE * whole)
    small = large
    while variants := [one for one in space.parameter_units(small).values() if one]:
        lost = (whole - model.predict_mean(rows(variants))[:, sizes] - allowed).max(axis=1)
        if lost.min() > 0:
            break
        small = variants[int(lost.argmin())]
    return small


def drop_weak_variables(
    model: TableModel, large: Configuration, sizes: Collection[int]
) -> Configuration:
    """Drops the variables, weakest first, that gain too little at all of some sizes (bytes)."""
    here = np.isin(model.sizes, [*sizes])
    small = large
    while parts := [one for one in model.encoding.space.parameter_units(small).values() if one]:
        leads = [model.predict_lead(small, part)[here].max() for part in parts]
        if min(leads) >= _LEAST_LEAD:
            break
        small = parts[int(np.argmin(leads))]
    return small
