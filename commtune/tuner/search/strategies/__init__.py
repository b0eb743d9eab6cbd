"""Strategies by the names that a campaign file gives them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from commtune.errors import UserError
from commtune.spaces import Space
from commtune.tuner.search.scores import SizeRange
from commtune.tuner.search.strategies.exhaustive import Exhaustive
from commtune.tuner.search.strategies.optuna_samplers import (
    SHORT_NAMES,
    OptunaStrategy,
    sampler_of,
)
from commtune.tuner.search.strategies.random_sampling import RandomSampling
from commtune.tuner.search.strategies.strategy import Strategy

#: Enumerates a space that fits the budget; else a TPE for each size range, on shared evidence.
DEFAULT_STRATEGY = "tpe-by-range"


def make_strategy(
    name: str, space: Space, ranges: Sequence[SizeRange], seed: int, *, fits: bool = False
) -> Strategy:
    """The strategy of a name.

    Args:
        fits: whether the whole space can be tried within the budget.

    Raises:
        UserError: no strategy has this name, or it lacks a package.
    """
    if name == "exhaustive" or (name == DEFAULT_STRATEGY and fits):
        return Exhaustive(space, seed)
    rng = random.Random(seed)
    if name == DEFAULT_STRATEGY:
        return OptunaStrategy(space, ranges, rng)
    if name == "random":
        return RandomSampling(space, rng)
    make_sampler = sampler_of(name)
    if make_sampler is None:
        known = ", ".join([DEFAULT_STRATEGY, "exhaustive", "random", *sorted(SHORT_NAMES)])
        raise UserError(
            f"no search strategy is called {name!r}",
            hint=f"take one of {known}, or a class of optuna.samplers",
        )
    return OptunaStrategy(space, ranges, rng, make_sampler)
