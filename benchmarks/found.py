"""How much of what a recording has to give do campaigns find, and do they claim what isn't there?

    python benchmarks/found.py benchmarks/grids/nccl-sockets.jsonl.gz --campaigns 20 \\
        --search 100 --ablation 30 --confirmation 70

Whole campaigns are replayed, each with a seed and a place in the recording of its own. The truth
is the recording's: medians over all runs of a configuration. Printed are for each size:

- most: the largest true gain (default / configuration) of all configurations;
- found: the true gain of what a campaign recommends, or 1 for the default: quartiles;
- share: the median of log(found) / log(most), where most is 1.05 or more;
- worse: campaigns whose recommendation is truly slower than the default by 2 % or more.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from quiet import QuietReporter

from commtune.campaign.loading import parse_campaign
from commtune.campaign.plan import Budget
from commtune.model import DEFAULT, Configuration, Profile
from commtune.replay.benchmark import ReplayBenchmark
from commtune.replay.recording import Grid, load_grid
from commtune.tuner.campaign import Campaign
from commtune.tuner.execution.in_memory_store import InMemoryStore
from commtune.tuner.execution.runner import Runner

#: True gains below this are no loss if they are not found.
_WORTH = 1.05
#: True gains below this are a loss of the user's.
_WORSE = 0.98


def campaign(path: Path, budget: Budget, seed: int) -> Mapping[int, float]:
    """The true gain of what one campaign recommends, by size."""
    grid = load_grid(path)
    plan = parse_campaign(grid.header.campaign, Path.cwd()).plan
    plan = replace(plan, seed=seed, budget=budget)
    benchmark = ReplayBenchmark(grid, seed)
    runner = Runner(plan, 1, benchmark, InMemoryStore(str(plan.seed)), clock=benchmark.clock)
    report = Campaign(plan, runner, QuietReporter()).run()
    return {size: _gain(grid, report.profiles, size) for size in plan.workload.sizes}


def _gain(grid: Grid, profiles: Sequence[Profile], size: int) -> float:
    for profile in profiles:
        if (
            profile.bytes_low <= size <= profile.bytes_high
            and not profile.configuration.is_default
        ):
            return true_gain(grid, profile.configuration, size)
    return 1.0


def true_gain(grid: Grid, configuration: Configuration, size: int) -> float:
    """Default over configuration, of the medians over all recorded runs."""
    return grid.truth(DEFAULT)[size] / grid.truth(configuration)[size]


def show(grid: Grid, found: Sequence[Mapping[int, float]]) -> None:
    """Prints the table."""
    print("| size | most | found | share | worse |\n|---|---|---|---|---|")
    for size in found[0]:
        most = max(true_gain(grid, one, size) for one in grid.configurations)
        gains = sorted(one[size] for one in found)
        low, middle, high = statistics.quantiles(gains, n=4, method="inclusive")
        share = f"{math.log(middle) / math.log(most):.0%}" if most >= _WORTH else "-"
        worse = sum(gain < _WORSE for gain in gains)
        cells = f"{most:.2f} | {middle:.2f} ({low:.2f}, {high:.2f}) | {share} | {worse}"
        print(f"| {size} | {cells} |")


def main() -> None:
    """Replays the campaigns and prints what they found."""
    options = _options()
    budget = Budget(options.search, options.ablation, options.confirmation)
    one = partial(campaign, options.recording, budget)
    seeds = range(options.first_seed, options.first_seed + options.campaigns)
    with ProcessPoolExecutor(options.processes) as pool:
        found = list(pool.map(one, seeds))
    print(f"{options.recording.name}: {len(found)} replayed campaigns, seeds from {seeds[0]}")
    show(load_grid(options.recording), found)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("recording", type=Path)
    parser.add_argument("--campaigns", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--search", type=float, default=50.0, help="recorded seconds")
    parser.add_argument("--ablation", type=float, default=20.0, help="likewise")
    parser.add_argument("--confirmation", type=float, default=30.0, help="likewise")
    parser.add_argument("--processes", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
