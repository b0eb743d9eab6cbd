"""Finds idle parameters that help only beside the best configurations, by a stratified rank test.

Over all runs and sizes such an interaction is too little evidence to keep a parameter. But runs
that count as one configuration's differ in nothing else than idle parameters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from commtune.model import Configuration
from commtune.spaces.space import Space
from commtune.tuner.search.covariance import Flags
from commtune.tuner.search.encoding import Matrix, Rows
from commtune.tuner.search.model import TableModel
from commtune.tuner.search.standings import Speedups

#: The family-wise error rate: the probability to add any value that does nothing. Bonferroni's
#: correction is over parameters, values and sizes.
_ERROR_RATE = 0.05


@dataclass(frozen=True)
class _Pool:
    """The runs (rows, and their speedups) that count as those of one configuration.

    Attributes:
        speedups: runs x those sizes at which the configuration may be the best.
        sizes: flags of these, over all sizes.
    """

    rows: Rows
    speedups: Matrix
    sizes: Flags


def find_interacting_values(
    model: TableModel, runs: Sequence[tuple[Configuration, Speedups]]
) -> dict[str, str]:
    """Finds values of idle parameters that make possibly best configurations faster at some size.

    Args:
        runs: those of the model, without their trend: a value is tried in consecutive runs, so
            one that does nothing would pass for the cause of a fast hour.

    Returns:
        Values by the name of their parameter, at most one for each.
    """
    sizes = model.find_possibly_best()
    known, table = model.complete(runs)
    rows = model.encoding.rows(known)
    made: defaultdict[Configuration, list[int]] = defaultdict(list)
    for place, configuration in enumerate(known):
        made[model.drop_idle(configuration)].append(place)
    pools = [
        _Pool(rows[mine], table[mine][:, sizes[small]], sizes[small])
        for small, mine in made.items()
        if len(mine) > 1 and small in sizes and sizes[small].any()
    ]
    found: dict[str, str] = {}
    idle = {owner for owner, _ in model.idle}
    for place, parameter in enumerate(model.encoding.space.parameters):
        if place in idle:
            values = model.encoding.values[place][1:]
            chances = [
                _compute_p_value(pools, place, number) for number in range(1, len(values) + 1)
            ]
            best = min(range(len(values)), key=chances.__getitem__)
            if chances[best] * len(values) * len(idle) < _ERROR_RATE:
                found[parameter.name] = str(values[best])
    return found


def add_values(space: Space, small: Configuration, values: Mapping[str, str]) -> Configuration:
    """Adds values to a configuration; returns it as it is where the result is not allowed."""
    own = {name: value for name, value in space.assignment(small).items() if value is not None}
    added = space.configuration(space.consistent({**values, **own}))
    return small if small.is_default or space.check(added) else added


def _compute_p_value(pools: Sequence[_Pool], place: int, value: int) -> float:
    """Returns the p-value of a parameter's value against unset, corrected for the sizes.

    Van Elteren's test (1960), one-sided: Wilcoxon rank sums within each pool, summed.
    """
    from scipy.special import ndtr  # 0.1 s to import; only a tuning process needs it

    ahead, variance = np.zeros((2, len(pools[0].sizes) if pools else 0))
    for pool in pools:
        of = pool.rows[:, place]
        one, other = pool.speedups[of == value], np.sort(pool.speedups[of == 0], axis=0)
        pairs, weight = len(one) * len(other), 1 / (len(one) + len(other) + 1)
        won = np.array([_count_wins(*columns) for columns in zip(one.T, other.T, strict=True)])
        ahead[pool.sizes] += weight * (won - pairs / 2)
        variance[pool.sizes] += weight * pairs / 12
    known = variance > 0
    deviations = ahead[known] / np.sqrt(variance[known])
    return float(known.sum() * ndtr(-deviations.max(initial=0.0))) if known.any() else 1.0


def _count_wins(one: Matrix, others: Matrix) -> float:
    """Counts pairs in which the first is larger than the other (sorted), ties as half."""
    found = [np.searchsorted(others, one, side).sum() for side in ("left", "right")]
    return float(sum(found)) / 2
