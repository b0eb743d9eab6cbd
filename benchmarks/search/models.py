"""Peers with a model of their own, which the project doesn't depend on: a Gaussian process and a
forest (scikit-learn), SMAC3. ``pip install -r requirements/peers.txt`` brings them.
"""

from __future__ import annotations

import importlib
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from commtune.spaces.space import Space

from .halves import Floats, Halves
from .player import Picks, Player

#: Runs at random before there is a model, and by what share of new runs it is fitted again.
_FIRST, _AGAIN = 10, 1.1
_TREES = 50


def play_gaussian_process(player: Player) -> None:
    """Expected improvement of the mean over sizes, by a Gaussian process (Matérn 5/2).

    Optuna's own needs PyTorch; this is the same idea over one-hot values.
    """
    process = importlib.import_module("sklearn.gaussian_process")
    kernels = process.kernels
    kernel = 1.0 * kernels.Matern(nu=2.5, length_scale_bounds=(0.3, 30)) + kernels.WhiteKernel(
        0.01
    )
    model = process.GaussianProcessRegressor(kernel, normalize_y=True, random_state=1)
    table, rows = one_hot(player.halves), np.array(player.others)
    _play_first(player)
    fitted = 0
    while True:
        of, values = np.array(player.played.configurations), _mean_times(player)
        is_due = len(of) >= fitted * _AGAIN
        fitted = len(of) if is_due else fitted
        kept = model if is_due else process.GaussianProcessRegressor(
            model.kernel_, normalize_y=True, optimizer=None
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a length at its bound
            kept.fit(table[of], values)
            smooth = kept.predict(table[np.unique(of)]).min()
            mean, spread = kept.predict(table[rows], return_std=True)
        player.play(int(rows[_improvement(smooth - mean, spread).argmax()]))


def _improvement(ahead: Floats, spread: Floats) -> Floats:
    """Expected improvement of normal values."""
    norm = importlib.import_module("scipy.stats").norm
    z = ahead / np.maximum(spread, 1e-9)
    found: Floats = ahead * norm.cdf(z) + spread * norm.pdf(z)
    return found


def play_active_forest(player: Player) -> None:
    """Active learning as in ACCLAiM: a forest over values and size, runs where it is least sure.

    The next configuration has the largest jackknife variance over sizes. It recommends what the
    forest predicts to be fastest at each size, run or not.
    """
    ensemble = importlib.import_module("sklearn.ensemble")
    table, every = places(player.halves), sorted(player.halves.grid.index.values())
    sizes = np.log2(np.array(player.halves.sizes))
    asked = np.column_stack([np.repeat(table[every], len(sizes), 0), np.tile(sizes, len(every))])
    forest: Any = None

    def fit() -> None:
        nonlocal forest
        of = np.array(player.played.configurations)
        inputs = np.column_stack([np.repeat(table[of], len(sizes), 0), np.tile(sizes, len(of))])
        forest = ensemble.RandomForestRegressor(_TREES, random_state=1, n_jobs=1)
        forest.fit(inputs, np.array(player.played.log_times).ravel())

    def own() -> Picks:
        fit()
        predicted = forest.predict(asked).reshape(len(every), len(sizes))
        chosen: Picks = np.array(every)[predicted.argmin(axis=0)]
        return chosen

    player.own = own
    _play_first(player)
    fitted = 0
    while True:
        if player.made >= max(fitted * _AGAIN, fitted + 1):
            fit()
            fitted = player.made
            trees = np.array([tree.predict(asked) for tree in forest.estimators_])
            doubt = _jackknife(trees).reshape(len(every), len(sizes)).sum(axis=1)
            order = [every[place] for place in np.argsort(-doubt)]
        known = set(player.played.configurations)
        player.play(next((row for row in order if row not in known), player.rng.choice(every)))


def _jackknife(trees: Floats) -> Floats:
    """Variance of the forest's mean when each tree in turn is left out."""
    n = len(trees)
    left_out = (trees.sum(axis=0) - trees) / (n - 1)
    found: Floats = (n - 1) / n * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0)
    return found


def play_smac(player: Player) -> None:
    """SMAC3 (hyperparameter facade) on the mean over sizes, through ask and tell."""
    smac, spaces = importlib.import_module("smac"), importlib.import_module("ConfigSpace")
    runhistory = importlib.import_module("smac.runhistory.dataclasses")
    space = player.halves.space
    described = spaces.ConfigurationSpace(seed=player.rng.randrange(2**31))
    for parameter in space.parameters:
        described.add(spaces.Categorical(parameter.name, [str(v) for v in parameter.values]))
    seed = player.rng.randrange(2**31)
    scenario = smac.Scenario(
        described,
        deterministic=True,
        n_trials=10**6,
        seed=seed,
        output_directory=Path(tempfile.gettempdir()) / "commtune-search-smac",
    )
    facade = smac.HyperparameterOptimizationFacade
    asked = facade(
        scenario, _never_called, overwrite=True, logging_level=40,
        initial_design=facade.get_initial_design(scenario, n_configs=_FIRST),
    )  # fmt: skip
    while True:
        info = asked.ask()
        times = _play_described(player, space, info.config)
        asked.tell(info, runhistory.TrialValue(cost=float(np.mean(times)), time=0.1))


def _play_described(player: Player, space: Space, config: Any) -> Floats:
    """What SMAC asked for, made legal: it isn't told of conditions and constraints."""
    named = {p.name: {str(v): v for v in p.values} for p in space.parameters}
    assignment = space.consistent({name: named[name][str(config[name])] for name in named})
    if space.is_allowed(assignment):
        return player.play_configuration(space.configuration(assignment))
    return player.play(player.rng.choice(player.others))


def _never_called(config: Any, seed: int = 0) -> float:
    """SMAC wants a function to optimise, also where it is only asked and told."""
    raise NotImplementedError(config, seed)


def _play_first(player: Player) -> None:
    for row in player.rng.sample(player.others, _FIRST):
        player.play(row)


def _mean_times(player: Player) -> Floats:
    found: Floats = np.array(player.played.log_times).mean(axis=1)
    return found


def places(halves: Halves) -> Floats:
    """A row a configuration: the place of each parameter's value in its list."""
    space = halves.space
    rows = [space.assignment(c) for c in halves.grid.configurations]
    return np.array(
        [[p.values.index(row[p.name]) if row[p.name] in p.values else -1 for p in space.parameters]
         for row in rows], dtype=float,
    )  # fmt: skip


def one_hot(halves: Halves) -> Floats:
    """A row a configuration: a column each value of each parameter, 1 where it has it."""
    columns = [column == value for column in places(halves).T for value in np.unique(column)]
    return np.array(columns, dtype=float).T


MODELS = {
    "gp": (play_gaussian_process, "sklearn"),
    "acclaim": (play_active_forest, "sklearn"),
    "smac3": (play_smac, "smac"),
}
