"""What an earlier campaign's profiles save, and what wrong ones cost, in replayed campaigns.

    python -m benchmarks.search.earlier --seeds 20 --jobs 2

Whole campaigns are played with and without configurations that are tried first, on the same
halves and with the same seed. Right ones are the profiles of a campaign of another seed with half
of the recording's runs; wrong ones are drawn among those that are slower than the default. A
campaign with a tenth of the runs less says what these runs are worth. No campaign sees the runs
that speedups are worked out of, the earlier one neither.
"""

from __future__ import annotations

import argparse
import os
import random
from concurrent.futures import ProcessPoolExecutor
from itertools import product

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy is there
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402

from commtune.model import Configuration, Verdict  # noqa: E402

from .__main__ import ALL, load_recording  # noqa: E402
from .halves import Halves, split_grid  # noqa: E402
from .ours import mean_gain, run_whole_campaign  # noqa: E402
from .parts import describe  # noqa: E402

_GRIDS = ("mpich-allreduce-dense", "openmpi-broadcast", "nccl-sockets")
#: As campaigns have it (``commtune.app.campaigns.first_proposals``): so many, and no more than
#: this share of the search's runs, which are half of all.
_MOST, _SHARE = 3, 0.1
_EARLIER_PERCENT, _EARLIER_SEED = 50, 1000


def list_right(halves: Halves, seed: int) -> list[Configuration]:
    """Proven configurations of another campaign on the same half, those that gain most first."""
    runs = halves.runs(_EARLIER_PERCENT)
    result, _ = run_whole_campaign(halves, seed + _EARLIER_SEED, runs)
    proven = [p for p in result.profiles if p.verdict is Verdict.FASTER]
    proven.sort(key=lambda p: -max(point.gain.low for point in p.points))
    return list(dict.fromkeys(p.configuration for p in proven))


def list_wrong(halves: Halves, seed: int) -> list[Configuration]:
    """Some that are slower than the default in the mean over sizes, at random."""
    means = halves.expected.mean(axis=1)
    slower = [c for c, row in halves.grid.index.items() if means[row] > means[halves.default]]
    return random.Random(f"wrong/{seed}").sample(slower, _MOST)


def play_seed(grid: str, seed: int, percents: list[float]) -> list[list[float]]:
    """By budget: what right ones, wrong ones and a tenth of the runs less change.

    Of each the difference of the mean log speedup to the campaign without; then how many right
    ones were tried.
    """
    halves = split_grid(load_recording(grid), seed)
    right, wrong = list_right(halves, seed), list_wrong(halves, seed)

    def play(runs: int, first: list[Configuration]) -> float:
        result, _ = run_whole_campaign(halves, seed, runs, first=tuple(first))
        return mean_gain(halves, result.profiles)

    found = []
    for percent in percents:
        runs = halves.runs(percent)
        most = min(_MOST, int(runs / 2 * _SHARE))
        without = play(runs, [])
        others = play(runs, right[:most]), play(runs, wrong[:most]), play(round(0.9 * runs), [])
        found.append([*(one - without for one in others), len(right[:most])])
    return found


def main() -> None:
    """Plays, and prints a row for each recording and budget; logarithms in per cent."""
    options = _options()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    grids, numbers = zip(*product(options.grids, seeds), strict=True)
    with ProcessPoolExecutor(options.jobs) as pool:
        played = list(pool.map(play_seed, grids, numbers, [options.percent] * len(grids)))
    shape = (len(options.grids), len(seeds), len(options.percent), -1)
    found = np.array(played).reshape(shape).transpose(0, 2, 3, 1)
    titles = ["recording", "runs", "right", "wrong", "10 % fewer runs"]
    titles += ["wrong, minus 10 % fewer runs", "right ones tried"]
    print("| " + " | ".join(titles) + " |")
    print("|---" * 7 + "|")
    for grid, budgets in zip(options.grids, found, strict=True):
        for percent, (right, wrong, fewer, tried) in zip(options.percent, budgets, strict=True):
            values = [100 * part for part in (right, wrong, fewer, wrong - fewer)]
            cells = [describe([one.tolist()])[0] for one in values]
            row = [grid, f"{percent:g} %", *cells, f"{tried.mean():.1f}"]
            print("| " + " | ".join(row) + " |")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--grids", nargs="+", choices=ALL, default=_GRIDS)
    parser.add_argument("--percent", nargs="+", type=float, default=[5.0, 10.0, 20.0])
    parser.add_argument("--seeds", type=int, default=20, help="of each recording, two at least")
    parser.add_argument("--first-seed", type=int, default=1, help="[1]")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    return parser.parse_args()


if __name__ == "__main__":
    main()
