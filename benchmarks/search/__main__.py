"""Plays recorded grids by every method, with the same number of runs.

    python -m benchmarks.search --grids mpich-allreduce nccl-sockets --methods random,tpe,search \\
        --budgets 5,10,20 --seeds 30 --jobs 8

All methods play a seed before the next seed begins. With --store, what a seed gave is kept in
benchmarks/results/search, and what is there is not played again.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy is there
    os.environ.setdefault(_name, "1")

from commtune.replay.recording import load_grid  # noqa: E402

from .halves import Recording, split_grid  # noqa: E402
from .methods import EXHAUSTIVE, KNOWN, play_method  # noqa: E402
from .results import group_rows, load_scores, store_scores  # noqa: E402
from .scoring import Score, score_course  # noqa: E402

GRIDS = Path(__file__).parent.parent / "grids"
ALL = (
    "mpich-allreduce",
    "openmpi-broadcast",
    "nccl-sockets",
    "nccl-sockets-dense",
    "mpich-allreduce-dense",
    "mpich-alltoall-dense",
    "openmpi-broadcast-dense",
    "intel-allgather-dense",
)


@cache
def load_recording(grid: str) -> Recording:
    """A recording by its name, once for each process."""
    return Recording(load_grid(GRIDS / f"{grid}.jsonl.gz"))


def play_seed(
    grid: str, seed: int, methods: Sequence[str], percents: Sequence[float]
) -> list[Score]:
    """The scores of all methods on one pair of halves."""
    halves = split_grid(load_recording(grid), seed)
    return [
        score
        for method in methods
        for course in play_method(method, halves, seed, percents)
        for score in score_course(halves, seed, course)
    ]


def show(row: dict[str, Any]) -> str:
    """A row for people."""
    false = "" if row["false_claims"] is None else f"  false {row['false_claims']}"
    return (
        f"{row['method']:18}{row['percent']:5g} %{row['runs']:7g} runs  {row['pick']:5}"
        f"{row['seeds']:3} seeds  gain {row['gain']:6.1%} ±{row['gain_error']:.1%}"
        f"  within 2 % {row['near']:.2f} ±{row['near_error']:.2f}"
        f"  regret {row['median_regret']:6.1%} (90 %: {row['ninth_regret']:6.1%})"
        f"  slower than default {row['slower']:.2f}{false}  {row['seconds']:.1f} s"
    )


def main() -> None:
    """Plays, prints, and stores if asked to."""
    options = _options()
    made: dict[str, list[Score]] = {grid: [] for grid in options.grids}
    for grid, new in _play_missing(options):
        made[grid] += new
        if options.store:
            store_scores(grid, new)
            print(f"{grid}: seed {new[0].seed}", flush=True)
    for grid, scores in made.items():
        known = load_scores(grid) if options.store else scores
        print(f"{grid}:", *map(show, group_rows(known)), sep="\n", flush=True)


def _play_missing(options: argparse.Namespace) -> Iterator[tuple[str, list[Score]]]:
    """The scores of each recording and seed, as they come; without those that are stored."""
    percents = sorted(float(part) for part in options.budgets.split(","))
    known = {
        grid: load_scores(grid) if options.store and not options.again else []
        for grid in options.grids
    }
    with ProcessPoolExecutor(options.jobs) as pool:
        begun = {}
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            for grid in options.grids:
                methods = _missing(options.methods.split(","), percents, seed, known[grid])
                if methods:
                    begun[pool.submit(play_seed, grid, seed, methods, percents)] = grid
        for done in as_completed(begun):
            yield begun[done], done.result()


def _missing(
    methods: Sequence[str], percents: Sequence[float], seed: int, known: Sequence[Score]
) -> list[str]:
    """The methods that were not played with this seed at all of the budgets."""
    there = {(score.method, score.percent) for score in known if score.seed == seed}
    return [
        method
        for method in methods
        if not {(method, p) for p in ([0] if method in EXHAUSTIVE else percents)} <= there
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--grids", nargs="+", default=ALL, choices=ALL)
    parser.add_argument(
        "--methods", default=",".join(KNOWN), help="with commas; " + ", ".join(KNOWN)
    )
    parser.add_argument("--budgets", default="2,5,10,20,50", help="per cent of the grid's runs")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--store", action="store_true", help="keep scores in benchmarks/results")
    parser.add_argument("--again", action="store_true", help="also what was stored before")
    return parser.parse_args()


if __name__ == "__main__":
    main()
