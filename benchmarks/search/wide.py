"""Whole campaigns in a wide space, and random search: what they try, and what they recommend.

    python -m pip install -r requirements/peers.txt
    python -m benchmarks.search.wide --surface smooth --first-seed 21 --seeds 14

No grid of twelve variables can be recorded. So the truth is made up: a surface fitted to 590
random configurations of NCCL over sockets between two H200, one run each (held_out.py). It is
smooth (a Gaussian process), or a forest of extremely randomized trees. A run is the surface and
what a recorded run of the default was off its median. Campaigns take 7 minutes, of runs of 1.9 s;
random search runs 200 configurations once each, and takes the best at each size.

Printed are true log speedups, means over sizes and seeds, for sizes below 64 KiB, below 8 MiB and
from there on, with standard errors over seeds. With ``--idle 5`` five variables do nothing, others
for each seed, and it is counted how many of those are in profiles.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import random
import sys
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
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
from commtune.tuner.campaign import Campaign  # noqa: E402
from commtune.tuner.execution.in_memory_store import InMemoryStore  # noqa: E402
from commtune.tuner.execution.runner import Runner  # noqa: E402

from .halves import Floats  # noqa: E402
from .held_out import BORDERS, SPACE, load_defaults, load_runs  # noqa: E402
from .ours import Silent, profile_at  # noqa: E402

#: Seconds of a run and of a campaign, and how it is shared where nobody says otherwise.
_RUN_S, _CAMPAIGN_S, _SHARES = 1.9, 420.0, (0.5, 0.2, 0.3)
_RANDOM = 200
#: So often the default is among what a surface is fitted to.
_DEFAULT_ROWS = 60

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


def fit_surface(kind: str) -> Surface:
    """``smooth`` or ``forest``, by scikit-learn."""
    runs = load_runs()
    sizes = tuple(runs[0][1])
    encode = _encoder([configuration for configuration, _ in runs])
    rows = [encode(c) for c, _ in runs] + [encode(Configuration())] * _DEFAULT_ROWS
    values = [[speedups[size] for size in sizes] for _, speedups in runs]
    values += [[0.0] * len(sizes)] * _DEFAULT_ROWS
    if kind == "forest":
        ensemble = importlib.import_module("sklearn.ensemble")
        model = ensemble.ExtraTreesRegressor(200, min_samples_leaf=2, random_state=0, n_jobs=1)
    else:
        process = importlib.import_module("sklearn.gaussian_process")
        kernel = 1.0 * process.kernels.Matern(nu=1.5, length_scale=5.0)
        kernel += process.kernels.WhiteKernel(0.1)
        model = process.GaussianProcessRegressor(kernel, normalize_y=True)
    spread = np.std(rows, axis=0) + 1e-9
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a length at its bound
        model.fit(np.array(rows) / spread, np.array(values))

    @cache
    def predict(configuration: Configuration) -> Floats:
        found: Floats = model.predict([encode(configuration) / spread])[0]
        return found

    return lambda configuration: predict(configuration) - predict(Configuration())


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
    """True log speedups at each size, and the variables that each profile sets."""

    tried: Floats
    takes: Floats
    profiles: Sequence[frozenset[str]] = ()


def play_campaign(surface: Surface, seed: int) -> Played:
    """The best that was tried, and what is recommended."""
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
    tuned = [frozenset(p.configuration) for p in profiles if p.verdict is Verdict.FASTER]
    return Played(tried, np.array(found), tuned)


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


def main() -> None:
    """Prints two lines for random search, and two for campaigns."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--surface", choices=["smooth", "forest"], default="smooth")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=12, help="two at least [12]")
    parser.add_argument("--idle", type=int, default=0, help="variables that do nothing [0]")
    options = parser.parse_args()
    surface, sizes = fit_surface(options.surface), tuple(load_defaults()[0])
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    variables = sorted(load_space(SPACE).variables)
    idle = [random.Random(seed).sample(variables, options.idle) for seed in seeds]
    methods: Mapping[str, Callable[[Surface, int], Played]] = {
        f"{_RANDOM} random": play_random, "campaign": play_campaign,
    }  # fmt: skip
    for name, play in methods.items():
        made = zip(seeds, idle, strict=True)
        played = [play(leave_out(surface, names), seed) for seed, names in made]
        print(f"{name:10} tried: {_groups(sizes, [one.tried for one in played])}")
        print(f"{name:10} takes: {_groups(sizes, [one.takes for one in played])}", flush=True)
    if options.idle:
        pairs = zip(played, idle, strict=True)
        found = [(names, names.intersection(no)) for one, no in pairs for names in one.profiles]
        total, useless = (sum(map(len, names)) for names in zip(*found, strict=True))
        bad = sum(bool(useless) for _, useless in found)
        print(f"{len(found)} profiles set {total} variables; {useless}, in {bad}, do nothing")


if __name__ == "__main__":
    main()
