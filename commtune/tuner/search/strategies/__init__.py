"""Makes search strategies by the names that campaign files use."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from commtune.documents.nearest import find_nearest, quote_value
from commtune.errors import UserError
from commtune.tuner.search.encoding import Matrix
from commtune.tuner.search.model import TableModel
from commtune.tuner.search.strategies.exhaustive import Exhaustive
from commtune.tuner.search.strategies.random_sampling import RandomSampling
from commtune.tuner.search.strategies.strategy import Strategy
from commtune.tuner.search.strategies.table_gp import TableImprovement

if TYPE_CHECKING:
    from commtune.tuner.search.strategies.optuna_samplers import MakeSampler

#: One model of all configurations and sizes; see ``table_gp``.
DEFAULT_STRATEGY = "table-gp"
_OWN = (DEFAULT_STRATEGY, "exhaustive", "random")


def make_strategy(name: str, model: TableModel, weights: Matrix, seed: int) -> Strategy:
    """Makes the strategy of a name.

    Args:
        model: is updated with each run before the strategy is told.
        weights: of the model's sizes, in their order.

    Raises:
        UserError: no strategy has this name, or it lacks a package.
    """
    space, rng = model.encoding.space, random.Random(seed)
    if name == DEFAULT_STRATEGY:
        return TableImprovement(model, weights, rng)
    if name == "exhaustive":
        return Exhaustive(space, rng)
    if name == "random":
        return RandomSampling(space, rng)
    from commtune.tuner.search.strategies.optuna_samplers import OptunaStrategy

    return OptunaStrategy(space, weights, rng, _sampler_of(name))


def check_strategy(name: str) -> None:
    """Checks the name of a strategy before a campaign starts.

    Raises:
        UserError: no strategy has this name, it lacks a package, or can't be made.
    """
    if name in _OWN:
        return
    _sampler_of(name)(0)


def _sampler_of(name: str) -> MakeSampler:
    # Optuna takes 0.2 s to import, which campaigns with a strategy of our own need not wait for.
    from commtune.tuner.search.strategies.optuna_samplers import (
        SHORT_NAMES,
        list_samplers,
        sampler_of,
    )

    make_sampler = sampler_of(name)
    if make_sampler is not None:
        return make_sampler
    known = [*_OWN, *sorted(SHORT_NAMES)]
    nearest = find_nearest(name, [*known, *list_samplers()])
    all_of_them = (
        f"known: {', '.join(known)}, a class of optuna.samplers, or MODULE:CLASS of yours"
    )
    hint = f"nearest: {nearest}\n{all_of_them}" if nearest else all_of_them
    raise UserError(f"strategy: no search strategy is called {quote_value(name)}", hint=hint)
