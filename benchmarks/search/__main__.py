"""Plays recorded grids by every method, with the same number of runs.

    python -m benchmarks.search --grids mpich-allreduce nccl-sockets --methods random,tpe,search \\
        --budgets 5,10,20 --seeds 30
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy is there
    os.environ.setdefault(_name, "1")

from commtune.replay.recording import load_grid  # noqa: E402

from .halves import Recording, split_grid  # noqa: E402
from .methods import KNOWN, play_method  # noqa: E402
from .scoring import Score, score_course, summarize  # noqa: E402

GRIDS = Path(__file__).parent.parent / "grids"
RESULTS = Path(__file__).parent.parent / "results" / "search"
ALL = ("mpich-allreduce", "openmpi-broadcast", "nccl-sockets", "nccl-sockets-dense")


def play_grid(
    grid: str, methods: Sequence[str], percents: Sequence[float], seeds: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """The rows of the table of one grid; of each method as soon as it is through."""
    recording = Recording(load_grid(GRIDS / f"{grid}.jsonl.gz"))
    halves = {seed: split_grid(recording, seed) for seed in seeds}
    for method in methods:
        found: dict[tuple[float, str], list[Score]] = {}
        for seed in seeds:
            for course in play_method(method, halves[seed], seed, percents):
                for score in score_course(method, halves[seed], course):
                    found.setdefault((score.percent, score.rule), []).append(score)
        yield from (summarize(scores) for scores in found.values())


def show(row: dict[str, Any]) -> str:
    """A row for people."""
    error = "" if row["near_error"] is None else f" ±{row['near_error']:.2f}"
    false = "" if row["false_claims"] is None else f"  false {row['false_claims']}"
    return (
        f"{row['method']:18}{row['percent']:5g} %{row['runs']:7g} runs  {row['pick']:5}"
        f" within 2 % {row['near']:.2f}{error}  regret {row['median_regret']:6.1%}"
        f" (90 %: {row['ninth_regret']:6.1%})  slower than default"
        f" {row['slower_than_default']:.2f}{false}  {row['seconds']:.1f} s"
    )


def store(grid: str, rows: Sequence[dict[str, Any]]) -> None:
    """Puts rows in the place of those of the same method, budget and rule."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{grid}.json"
    known = json.loads(path.read_text("utf-8")) if path.exists() else []
    merged = {(r["method"], r["percent"], r["pick"]): r for r in [*known, *rows]}
    lines = ",\n".join(json.dumps(row) for row in merged.values())
    path.write_text(f"[\n{lines}\n]\n", "utf-8")


def main() -> None:
    """Plays, prints, and stores if asked to."""
    options = _options()
    percents = sorted(float(part) for part in options.budgets.split(","))
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    for grid in options.grids:
        print(f"{grid}: {options.seeds} seeds", flush=True)
        for method in options.methods.split(","):
            rows = list(play_grid(grid, [method], percents, seeds))
            print("\n".join(map(show, rows)), flush=True)
            if options.store:
                store(grid, rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--grids", nargs="+", default=ALL, choices=ALL)
    parser.add_argument(
        "--methods", default=",".join(KNOWN), help="with commas; " + ", ".join(KNOWN)
    )
    parser.add_argument("--budgets", default="2,5,10,20,50", help="per cent of the grid's runs")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--store", action="store_true", help="keep the rows in benchmarks/results")
    return parser.parse_args()


if __name__ == "__main__":
    main()
