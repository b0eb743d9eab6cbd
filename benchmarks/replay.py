"""How fast recordings play back, and whether neighbours share the machine's speed as recorded.

    python benchmarks/replay.py

Plays the default in one of every eight runs, random configurations in the others. For
comparison, runs are also drawn by nearness in recorded time alone.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from commtune.model import DEFAULT, Configuration, RunRequest
from commtune.replay.benchmark import ReplayBenchmark
from commtune.replay.recording import Grid, load_grid
from commtune.tuner.statistics.machine_states import MIXED

GRIDS = Path(__file__).parent / "grids"
RUNS, SEEDS = 4000, (1, 2)


class Size(Protocol):
    """The part of a measurement that tells the machine's speed."""

    @property
    def canary_s(self) -> float | None: ...
    @property
    def canary_after_s(self) -> float | None: ...


def sharing(grid: Grid, runs: Sequence[Sequence[Size]]) -> float:
    """Share of sizes at which a run and the next one met the same machine speed."""
    same = both = 0
    for one, other in pairwise(runs):
        for a, b in zip(one, other, strict=False):
            names = [grid.speeds.name(size.canary_s, size.canary_after_s) for size in (a, b)]
            if MIXED not in names:
                both += 1
                same += names[0] == names[1]
    return same / both


def asked(grid: Grid, seed: int) -> list[Configuration]:
    """What a campaign may ask for."""
    rng, known = random.Random(seed), list(grid.index)
    return [rng.choice(known) if number % 8 else DEFAULT for number in range(RUNS)]


def played(grid: Grid, seed: int) -> Iterator[Sequence[Size]]:
    """Runs as the replay draws them."""
    benchmark, header = ReplayBenchmark(grid, seed), grid.header
    for number, configuration in enumerate(asked(grid, seed)):
        request = RunRequest(
            "", configuration, header.workload, header.timing, block=number // 8,
            position=number % 8,
        )  # fmt: skip
        yield benchmark.measure(request, 60.0).measurements


def nearest(grid: Grid, seed: int) -> Iterator[Sequence[Size]]:
    """Runs nearest in recorded time, the last one of each configuration excepted."""
    now, last = random.Random(seed).random() * grid.span_s, dict.fromkeys(grid.index, -1.0)
    known = {configuration: grid.runs_of(configuration) for configuration in grid.index}
    for configuration in asked(grid, seed):
        at = now % grid.span_s
        away = [
            (min(abs(run.started_s - at), grid.span_s - abs(run.started_s - at)), place)
            for place, run in enumerate(known[configuration])
            if run.started_s != last[configuration]
        ]
        run = known[configuration][min(away)[1]]
        last[configuration] = run.started_s
        now += run.wall_s
        yield run.sizes


def main() -> None:
    """Prints one paragraph a recording."""
    for path in sorted(GRIDS.glob("*.gz")):
        began = time.process_time()
        grid = load_grid(path)
        loaded = time.process_time() - began
        print(f"{grid.header.name}: {len(grid.runs)} runs, read in {loaded:.3f} s of CPU time")
        print(f"  same speed as the run before, recorded: {sharing(grid, _sizes(grid)):.1%}")
        for seed in SEEDS:
            began = time.process_time()
            runs = list(played(grid, seed))
            rate = RUNS / (time.process_time() - began)
            by_time = sharing(grid, list(nearest(grid, seed)))
            print(
                f"  seed {seed}: replayed {sharing(grid, runs):.1%}, by time alone {by_time:.1%}; "
                f"{rate:,.0f} runs a second of CPU time"
            )


def _sizes(grid: Grid) -> list[Sequence[Size]]:
    return [run.sizes for run in grid.runs]


if __name__ == "__main__":
    main()
