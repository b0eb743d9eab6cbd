"""Peers out of Optuna: its samplers on the mean over sizes, and a study a size."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler, CmaEsSampler, NSGAIISampler, TPESampler
from optuna.trial import Trial, TrialState, create_trial

from commtune.model import Configuration
from commtune.spaces.space import Space

from .halves import Floats
from .player import Player

optuna.logging.set_verbosity(optuna.logging.CRITICAL)
warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)

MakeSampler = Callable[[int], BaseSampler]
#: How often a sampler is asked for what the space allows before one is drawn at random.
_TRIES = 20


def plain_tpe(seed: int) -> BaseSampler:
    """TPE as it comes."""
    return TPESampler(seed=seed)


def multivariate_tpe(seed: int) -> BaseSampler:
    """TPE that draws parameters together."""
    return TPESampler(seed=seed, multivariate=True, group=True)


def cma_es(seed: int) -> BaseSampler:
    """CMA-ES over the places of values in their lists: it knows no categories."""
    return CmaEsSampler(seed=seed, warn_independent_sampling=False)


def nsga2(seed: int) -> BaseSampler:
    """NSGA-II with a population that a small budget can fill twice; its own is of 50."""
    return NSGAIISampler(seed=seed, population_size=20)


def play_sampler(make: MakeSampler, player: Player, *, by_place: bool = False) -> None:
    """One study of the mean logarithm of seconds over sizes.

    Args:
        by_place: parameters are numbers, the place of a value in its list, all of them always.
    """
    study = optuna.create_study(sampler=make(player.rng.randrange(2**31)))
    while True:
        trial, configuration = _ask(study, player, by_place)
        times = player.play_configuration(configuration)
        if trial is not None:
            study.tell(trial, float(np.mean(times)))


def play_sizes(make: MakeSampler, player: Player) -> None:
    """A study a size, asked in turn; each is told of every run."""
    space, sizes = player.halves.space, player.halves.sizes
    studies = [optuna.create_study(sampler=make(player.rng.randrange(2**31))) for _ in sizes]
    while True:
        for turn, study in enumerate(studies):
            trial, configuration = _ask(study, player, False)
            times = player.play_configuration(configuration)
            _tell_all(
                studies, turn if trial else None, trial, _frozen(space, configuration), times
            )


def _tell_all(
    studies: Sequence[optuna.Study],
    asked: int | None,
    trial: Trial | None,
    frozen: Callable[[float], optuna.trial.FrozenTrial],
    times: Floats,
) -> None:
    for place, study in enumerate(studies):
        if place == asked and trial is not None:
            study.tell(trial, float(times[place]))
        else:
            study.add_trial(frozen(float(times[place])))


def _ask(
    study: optuna.Study, player: Player, by_place: bool
) -> tuple[Trial | None, Configuration]:
    """What the study proposes; a random one, and no trial, where it finds nothing allowed."""
    space = player.halves.space
    for _ in range(_TRIES):
        trial = study.ask()
        assignment = _places(space, trial) if by_place else _values(space, trial)
        if space.is_allowed(assignment):
            return trial, space.configuration(assignment)
        study.tell(trial, state=TrialState.FAIL)
    return None, space.sample(player.rng)


def _values(space: Space, trial: Trial) -> dict[str, str | None]:
    assignment: dict[str, str | None] = {}
    for parameter in space.parameters:
        if space.active(parameter, assignment):
            value = trial.suggest_categorical(parameter.name, parameter.values)
            assignment[parameter.name] = None if value is None else str(value)
    return assignment


def _places(space: Space, trial: Trial) -> dict[str, str | None]:
    return space.consistent(
        {
            p.name: p.values[trial.suggest_int(p.name, 0, len(p.values) - 1)]
            for p in space.parameters
        }
    )


def _frozen(
    space: Space, configuration: Configuration
) -> Callable[[float], optuna.trial.FrozenTrial]:
    whole = space.assignment(configuration)
    active = {p.name: whole[p.name] for p in space.parameters if space.active(p, whole)}
    distributions: dict[str, BaseDistribution] = {
        p.name: CategoricalDistribution(p.values) for p in space.parameters if p.name in active
    }
    return lambda value: create_trial(params=active, distributions=distributions, value=value)


OPTUNA = {
    "tpe": partial(play_sampler, plain_tpe),
    "tpe-multivariate": partial(play_sampler, multivariate_tpe),
    "tpe-by-size": partial(play_sizes, multivariate_tpe),
    "cma-es": partial(play_sampler, cma_es, by_place=True),
    "nsga-ii": partial(play_sampler, nsga2),
}
