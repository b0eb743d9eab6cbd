"""Strategies by the names that a campaign file gives them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from commtune.documents.nearest import find_nearest, quote_value
from commtune.errors import UserError
from commtune.spaces.space import Space
from commtune.tuner.search.scores import SizeRange
from commtune.tuner.search.strategies.exhaustive import Exhaustive
from commtune.tuner.search.strategies.optuna_samplers import (
    SHORT_NAMES,
    OptunaStrategy,
    list_samplers,
    sampler_of,
)
from commtune.tuner.search.strategies.random_sampling import RandomSampling
from commtune.tuner.search.strategies.strategy import Strategy

#: Enumerates a space that fits the budget; else a TPE for each size range, on shared evidence.
DEFAULT_STRATEGY = "tpe-by-range"
_OWN = (DEFAULT_STRATEGY, "exhaustive", "random")


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
        raise _unknown(name)
    return OptunaStrategy(space, ranges, rng, make_sampler)


def check_strategy(name: str) -> None:
    """Refuses at once what ``make_strategy`` would refuse when the search begins.

    Raises:
        UserError: no strategy has this name, it lacks a package, or can't be made.
    """
    if name in _OWN:
        return
    make_sampler = sampler_of(name)
    if make_sampler is None:
        raise _unknown(name)
    make_sampler(0)


def _unknown(name: str) -> UserError:
    known = [*_OWN, *sorted(SHORT_NAMES)]
    nearest = find_nearest(name, [*known, *list_samplers()])
    all_of_them = f"known: {', '.join(known)}, or a class of optuna.samplers"
    hint = f"nearest: {nearest}\n{all_of_them}" if nearest else all_of_them
    return UserError(f"strategy: no search strategy is called {quote_value(name)}", hint=hint)
