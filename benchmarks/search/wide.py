"""Whole campaigns in a wide space, and random search: what they try, and what they recommend.

    python -m pip install -r requirements/peers.txt
    python -m benchmarks.search.wide --first-seed 21 --seeds 20 --jobs 2
    python -m benchmarks.search.wide --check

No grid of twelve variables can be recorded. So the truth is a surface, fitted to runs of NCCL over
sockets between two H200 (held_out.py): 990 random configurations, which set 8.5 variables on
average, and what three campaigns ran, which set fewer. It is the mean of a Gaussian process and a
forest of extremely randomized trees, which predicts unseen runs better than either (``--check``:
the share of variance explained, by five-fold cross-validation). A simulated run is the surface and
the deviation of a recorded run of the default from their median. Campaigns take 7 minutes, of runs
of 1.9 s; random search runs 200 configurations once each, and recommends the best at each size.

Printed are true log speedups, means over sizes and seeds, for sizes below 64 KiB, below 8 MiB and
from there on, with standard errors over seeds. With ``--idle 5`` five variables have no effect,
others for each seed; those in profiles are counted, without those that others need.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import random
import sys
import warnings
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy is there
    os.environ.setdefault(_name, "1")
sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np  # noqa: E402
from simulated import Draw, SimulatedBenchmark  # noqa: E402

from commtune.campaign.plan import Budget, Plan  # noqa: E402
from commtune.model import Configuration, Operation, RunRequest, Verdict, Workload  # noqa: E402
from commtune.spaces.loading import load_space  # noqa: E402
from commtune.spaces.space import Space  # noqa: E402
from commtune.tuner.campaign import Campaign  # noqa: E402
from commtune.tuner.execution.in_memory_store import InMemoryStore  # noqa: E402
from commtune.tuner.execution.runner import Runner  # noqa: E402

from .halves import Floats  # noqa: E402
from .held_out import (  # noqa: E402
    BORDERS,
    SPACE,
    LoggedRun,
    load_campaign_runs,
    load_defaults,
    load_runs,
)
from .ours import Silent, profile_at  # noqa: E402
from .parts import PARTS, take_away  # noqa: E402

#: Seconds of a run and of a campaign, and how it is shared where nobody says otherwise.
_RUN_S, _CAMPAIGN_S, _SHARES = 1.9, 420.0, (0.5, 0.2, 0.3)
_RANDOM = 200
#: So often the default is among what the surface is fitted to; how slow something is beyond this
#: (logarithm) is not.
_DEFAULT_ROWS, _SLOWEST = 60, -1.0
_FOLDS = 5

#: True log speedups of a configuration, one for each size.
Surface = Callable[[Configuration], Floats]


@dataclass
class _Noise:
    """What a run of the default was off, either way, over plausible times."""

    off: Floats
    sizes: Sequence[int]
    rng: np.random.Generator

    def draw(self) -> Floats:
        found: Floats = self.off[self.rng.integers(len(self.off))] * self.rng.choice((-1.0, 1.0))
        return found

    def __call__(self, request: RunRequest) -> Draw:
        del request
        times = np.array(self.sizes) / 1e9 * np.exp(-self.draw())
        return Draw(dict(zip(self.sizes, times.tolist(), strict=True)), {}, _RUN_S)


class _Fitted:
    """Both models, fitted to runs."""

    def __init__(self, runs: Sequence[LoggedRun]) -> None:
        self._encode = _encoder([configuration for configuration, _ in runs])
        rows = [self._encode(configuration) for configuration, _ in runs]
        self._spread = np.std(rows, axis=0) + 1e-9
        rows += [self._encode(Configuration())] * _DEFAULT_ROWS
        values = [[max(_SLOWEST, one) for one in speedups.values()] for _, speedups in runs]
        values += [[0.0] * len(values[0])] * _DEFAULT_ROWS
        ensemble = importlib.import_module("sklearn.ensemble")
        process = importlib.import_module("sklearn.gaussian_process")
        kernel = 1.0 * process.kernels.Matern(nu=1.5, length_scale=5.0)
        kernel += process.kernels.WhiteKernel(0.1)
        self._models = (
            process.GaussianProcessRegressor(kernel, normalize_y=True),
            ensemble.ExtraTreesRegressor(200, min_samples_leaf=2, random_state=0, n_jobs=1),
        )
        for model in self._models:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a length at its bound
                model.fit(np.array(rows) / self._spread, np.array(values))

    def predict(self, configurations: Sequence[Configuration]) -> list[Floats]:
        """Log speedups of configurations at each size, by each of the models."""
        rows = np.array([self._encode(one) for one in configurations]) / self._spread
        return [model.predict(rows) for model in self._models]


def fit_surface() -> Surface:
    """The mean of both models, less what they say of the default."""
    fitted = _Fitted(load_runs() + load_campaign_runs())

    @cache
    def predict(configuration: Configuration) -> Floats:
        found: Floats = np.mean(fitted.predict([configuration]), axis=0)[0]
        return found

    return lambda configuration: predict(configuration) - predict(Configuration())


def check_models() -> dict[str, Floats]:
    """Shares of the variance of unseen random configurations that each model explains, and both.

    One for each group of sizes.
    """
    runs, sizes = load_runs(), tuple(load_defaults()[0])
    order = np.random.default_rng(0).permutation(len(runs))
    seen = np.maximum(_SLOWEST, [list(speedups.values()) for _, speedups in runs])
    found = np.zeros((2, *seen.shape))
    for fold in np.array_split(order, _FOLDS):
        others = [runs[n] for n in np.setdiff1d(order, fold)]
        found[:, fold] = _Fitted(others).predict([runs[n][0] for n in fold])
    left = {
        "Gaussian process": found[0] - seen,
        "forest": found[1] - seen,
        "mean of both": found.mean(axis=0) - seen,
    }
    group = np.searchsorted(BORDERS, sizes, side="right")
    spread = seen - seen.mean(axis=0)
    parts = [group == n for n in range(len(BORDERS) + 1)]
    return {
        name: np.array([1 - (off[:, at] ** 2).sum() / (spread[:, at] ** 2).sum() for at in parts])
        for name, off in left.items()
    }


def _encoder(known: Sequence[Configuration]) -> Callable[[Configuration], Floats]:
    """Variables as numbers: the place of a number in its order, a column for each word."""
    values = {name: {c[name] for c in known if name in c} for name in sorted(set().union(*known))}

    def encode(configuration: Configuration) -> Floats:
        row: list[float] = []
        for name, found in values.items():
            value = configuration.get(name)
            if all(one.isdigit() for one in found):
                order = sorted(found, key=int)
                row.append(1.0 + order.index(value) if value in order else 0.0)
            else:
                row += [float(value == one) for one in sorted(found)]
            row.append(float(value is not None))
        return np.array(row)

    return encode


def leave_out(surface: Surface, names: Collection[str]) -> Surface:
    """A surface on which some variables do nothing."""
    return lambda one: surface(Configuration({n: v for n, v in one.items() if n not in names}))


@dataclass(frozen=True)
class Played:
    """True log speedups at each size, the variables of each profile, and how many are idle."""

    tried: Floats
    takes: Floats
    profiles: Sequence[frozenset[str]] = ()
    idle: Sequence[int] = ()


def play_campaign(surface: Surface, seed: int, idle: Collection[str] = ()) -> Played:
    """The best that was tried, and what is recommended.

    Args:
        idle: variables without effect.
    """
    noise = _made_noise(seed)
    benchmark = SimulatedBenchmark(
        noise, lambda configuration, size: -surface(configuration)[noise.sizes.index(size)]
    )
    workload = Workload(Operation.ALLREDUCE, tuple(noise.sizes))
    search_s, ablation_s, confirmation_s = (share * _CAMPAIGN_S for share in _SHARES)
    budget = Budget(search_s, ablation_s, confirmation_s)
    plan = Plan("wide", load_space(SPACE), workload, seed=seed, budget=budget)
    runner = Runner(plan, 1, benchmark, InMemoryStore(str(seed)), clock=benchmark.clock)
    profiles = Campaign(plan, runner, Silent()).run().profiles
    tried = np.max([surface(run.configuration) for run in runner.evidence.runs], axis=0)
    chosen = [profile_at(profiles, size) for size in noise.sizes]
    found = [surface(one.configuration)[n] if one else 0.0 for n, one in enumerate(chosen)]
    tuned = [p.configuration for p in profiles if p.verdict is Verdict.FASTER]
    counts = [_count_idle(plan.space, configuration, idle) for configuration in tuned]
    return Played(tried, np.array(found), [frozenset(one) for one in tuned], counts)


def _count_idle(space: Space, whole: Configuration, idle: Collection[str]) -> int:
    """How many parameters can be left out, and only idle variables with them."""
    left = space.parameter_units(whole).values()
    return sum(whole.keys() - rest.keys() <= set(idle) for rest in left)


def play_random(surface: Surface, seed: int) -> Played:
    """The same of the default and random configurations: those are taken that looked best."""
    noise, space, rng = _made_noise(seed), load_space(SPACE), random.Random(seed)
    drawn = [Configuration(), *(space.sample(rng) for _ in range(_RANDOM))]
    true = np.array([surface(configuration) for configuration in drawn])
    seen = true + [noise.draw() for _ in drawn]
    taken = np.take_along_axis(true, seen.argmax(axis=0)[None], axis=0)[0]
    return Played(true.max(axis=0), taken)


def _made_noise(seed: int) -> _Noise:
    defaults = load_defaults()
    off = np.array([list(speedups.values()) for speedups in defaults])
    return _Noise(off, tuple(defaults[0]), np.random.default_rng(seed))


def _groups(sizes: Sequence[int], found: Sequence[Floats]) -> str:
    group = np.searchsorted(BORDERS, sizes, side="right")
    means = np.array([[one[group == n].mean() for n in range(3)] for one in found])
    errors = means.std(axis=0, ddof=1) / math.sqrt(len(means))
    cells = zip(means.mean(axis=0), errors, strict=True)
    return " | ".join(f"{mean:+.3f} ±{error:.3f}" for mean, error in cells)


def _play(task: tuple[str, int, Sequence[str], str]) -> Played:
    method, seed, idle, without = task
    surface = leave_out(_fit_once(), idle)
    if method == "random":
        return play_random(surface, seed)
    with take_away(without):
        return play_campaign(surface, seed, idle)


_fit_once = cache(fit_surface)


def main() -> None:
    """Prints two lines for random search, and two for campaigns."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=12, help="two at least [12]")
    parser.add_argument("--idle", type=int, default=0, help="variables without effect [0]")
    parser.add_argument("--without", choices=PARTS, default="", help="a part of campaigns")
    parser.add_argument("--jobs", type=int, default=1, help="processes [1]")
    parser.add_argument("--check", action="store_true", help="how well the surface predicts")
    options = parser.parse_args()
    if options.check:
        for name, shares in check_models().items():
            print(f"{name:16} " + " | ".join(f"{share:.2f}" for share in shares))
        return
    sizes = tuple(load_defaults()[0])
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    variables = sorted(load_space(SPACE).variables)
    idle = [random.Random(seed).sample(variables, options.idle) for seed in seeds]
    with ProcessPoolExecutor(options.jobs) as pool:
        for name in ("random", "campaign"):
            tasks = [
                (name, seed, no, options.without) for seed, no in zip(seeds, idle, strict=True)
            ]
            played = list(pool.map(_play, tasks))
            print(f"{name:8} tried: {_groups(sizes, [one.tried for one in played])}")
            print(f"{name:8} takes: {_groups(sizes, [one.takes for one in played])}", flush=True)
    if options.idle:
        counts = [count for one in played for count in one.idle]
        total = sum(len(names) for one in played for names in one.profiles)
        bad = sum(count > 0 for count in counts)
        print(f"{len(counts)} profiles set {total} variables; {sum(counts)}, in {bad}, do nothing")


if __name__ == "__main__":
    main()
