"""Makes search strategies by the names that campaign files use."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from commtune.tuner.search.strategies.exhaustive import Exhaustive
from commtune.tuner.search.strategies.random_sampling import RandomSampling
from commtune.tuner.search.strategies.strategy import DEFAULT_STRATEGY, OWN, Strategy

if TYPE_CHECKING:
    from commtune.tuner.search.encoding import Matrix
    from commtune.tuner.search.model import TableModel


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
        # It needs NumPy, for which those who only check the name need not wait.
        from commtune.tuner.search.strategies.table_gp import TableImprovement

        return TableImprovement(model, weights, rng)
    if name == "exhaustive":
        return Exhaustive(space, rng)
    if name == "random":
        return RandomSampling(space, rng)
    from commtune.tuner.search.strategies.optuna_samplers import OptunaStrategy, sampler_of

    return OptunaStrategy(space, weights, rng, sampler_of(name))


def check_strategy(name: str) -> None:
    """Checks the name of a strategy before a campaign starts.

    Raises:
        UserError: no strategy has this name, it lacks a package, or can't be made.
    """
    if name not in OWN:
        # Optuna takes 0.2 s to import, for which campaigns with one of ours need not wait.
        from commtune.tuner.search.strategies.optuna_samplers import sampler_of

        sampler_of(name)(0)
