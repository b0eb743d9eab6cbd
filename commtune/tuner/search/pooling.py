"""Idle parameters that matter beside the best only: what ranks within its runs tell of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from commtune.model import Configuration
from commtune.spaces.space import Space
from commtune.tuner.search.covariance import Flags
from commtune.tuner.search.encoding import Matrix, Rows
from commtune.tuner.search.model import TableModel
from commtune.tuner.search.standings import Speedups

#: The probability that a parameter that does nothing is taken for one that matters, all together.
_BY_CHANCE = 0.05


@dataclass(frozen=True)
class _Pool:
    """Runs that count as runs of one configuration, at the sizes at which it may be the best."""

    rows: Rows
    speedups: Matrix
    sizes: Flags


def find_hidden(
    model: TableModel, runs: Sequence[tuple[Configuration, Speedups]]
) -> dict[str, str]:
    """Values of idle parameters that make what may be the best faster, at some size.

    A parameter may work only beside another and at some sizes: over all runs and sizes that is
    little. But runs that count as one configuration's differ in nothing else.

    Args:
        runs: that were taken in, without their trend: a value is tried in runs that follow each
            other, and one that does nothing would be taken for the cause of a good hour.
    """
    sizes = model.may_be_best()
    known, table = model.complete(runs)
    rows = model.encoding.rows(known)
    made: defaultdict[Configuration, list[int]] = defaultdict(list)
    for place, configuration in enumerate(known):
        made[model.reduce(configuration)].append(place)
    pools = [
        _Pool(rows[mine], table[mine][:, sizes[small]], sizes[small])
        for small, mine in made.items()
        if len(mine) > 1 and small in sizes and sizes[small].any()
    ]
    found: dict[str, str] = {}
    for place, parameter in enumerate(model.encoding.space.parameters):
        if parameter.name in model.idle:
            values = model.encoding.values[place][1:]
            chances = [_chance(pools, place, number) for number in range(1, len(values) + 1)]
            best = min(range(len(values)), key=chances.__getitem__)
            if chances[best] * len(values) * len(model.idle) < _BY_CHANCE:
                found[parameter.name] = str(values[best])
    return found


def add_values(space: Space, small: Configuration, values: Mapping[str, str]) -> Configuration:
    """A configuration with further values, where they may be set beside its own."""
    own = {name: value for name, value in space.assignment(small).items() if value is not None}
    added = space.configuration(space.consistent({**values, **own}))
    return small if small.is_default or space.check(added) else added


def _chance(pools: Sequence[_Pool], place: int, value: int) -> float:
    """How likely a value that does nothing looks so good at some size (van Elteren's test)."""
    ahead, variance = np.zeros((2, len(pools[0].sizes) if pools else 0))
    for pool in pools:
        of = pool.rows[:, place]
        one, other = pool.speedups[of == value], np.sort(pool.speedups[of == 0], axis=0)
        pairs, weight = len(one) * len(other), 1 / (len(one) + len(other) + 1)
        won = np.array([_count_won(*columns) for columns in zip(one.T, other.T, strict=True)])
        ahead[pool.sizes] += weight * (won - pairs / 2)
        variance[pool.sizes] += weight * pairs / 12
    known = variance > 0
    deviations = ahead[known] / np.sqrt(variance[known])
    return float(known.sum() * ndtr(-deviations.max(initial=0.0))) if known.any() else 1.0


def _count_won(one: Matrix, others: Matrix) -> float:
    """Pairs in which one is larger than a sorted other; of those that are equal, half."""
    found = [np.searchsorted(others, one, side).sum() for side in ("left", "right")]
    return float(sum(found)) / 2
