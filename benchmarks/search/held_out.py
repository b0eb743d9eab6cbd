"""How well the search's model predicts configurations that it has not seen, in a wide space.

    python -m benchmarks.search.held_out --runs 40 80 150

990 random configurations of NCCL over sockets between two H200, one run each, from five
experiments (results/gpu-h200/random-beside-campaign*.jsonl.gz). The model is fitted to some of
them, drawn at random, and predicts the others. Printed are means over draws, for sizes below
64 KiB, below 8 MiB and from there on: the share of variance explained, the rank correlation, and
the mean log speedup of the five that are predicted to be the best at each size, with its standard
error. Draws overlap.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy is there
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402

from commtune.model import Configuration  # noqa: E402
from commtune.spaces.loading import load_space  # noqa: E402
from commtune.tuner.search.model import _CLIPPED_AT, TableModel  # noqa: E402

from .halves import Floats  # noqa: E402

_RESULTS = Path(__file__).parent.parent / "results/gpu-h200"
_RANDOM = [f"random-beside-campaign{number}.jsonl.gz" for number in ("", "-2", "-3", "-4", "-5")]
_CAMPAIGNS = [f"random-beside-campaign-{number}-search.jsonl.gz" for number in (3, 4, 5)]
SPACE = "nccl-sockets-quick"
#: Where groups of sizes begin (bytes).
BORDERS = (64 << 10, 8 << 20)
_TOP = 5

#: A configuration, and the log speedups of one of its runs by size (bytes).
LoggedRun = tuple[Configuration, dict[int, float]]


def load_runs() -> list[LoggedRun]:
    """Runs of random configurations, with log speedups by size (bytes).

    Speedups are over the median of the default's runs of the same experiment.
    """
    return [run for run in _load_all(_RANDOM) if not run[0].is_default]


def load_campaign_runs() -> list[LoggedRun]:
    """The same of what three campaigns ran beside the random configurations."""
    return [run for run in _load_all(_CAMPAIGNS) if not run[0].is_default]


def load_defaults() -> list[dict[int, float]]:
    """Log speedups by size (bytes) of the default's runs beside the random configurations."""
    return [speedups for configuration, speedups in _load_all(_RANDOM) if configuration.is_default]


def _load_all(names: Sequence[str]) -> list[LoggedRun]:
    found = []
    for name in names:
        lines = map(json.loads, gzip.decompress((_RESULTS / name).read_bytes()).splitlines())
        runs = [
            (Configuration(line["env"]), _times(line))
            for line in lines
            if line.get("kind", "random") == "random" and line.get("who") != "warm-up"
        ]
        defaults = [times for configuration, times in runs if configuration.is_default and times]
        default = {size: median(times[size] for times in defaults) for size in defaults[0]}
        found += [
            (configuration, {size: math.log(default[size] / time) for size, time in times.items()})
            for configuration, times in runs
            if len(times) == len(default)
        ]
    return found


def _times(line: dict[str, Any]) -> dict[int, float]:
    """Times by size, all in the same unit within a sitting; nothing of a run that failed."""
    if line.get("outcome", "ok") != "ok":
        return {}
    if "us" in line:
        return {int(size): float(time) for size, time in line["us"].items()}
    return {int(size): float(times[0]) for size, times in line.get("ns", {}).items()}


def predict_held_out(runs: list[LoggedRun], count: int, seed: int) -> Floats:
    """Of one draw: a row for each group of sizes (share of variance, ranks, the best five)."""
    order = np.random.default_rng(seed).permutation(len(runs)).tolist()
    sizes = tuple(runs[0][1])
    model = TableModel(load_space(SPACE), sizes)
    model.add(
        [(one, np.array(list(of.values()))) for one, of in map(runs.__getitem__, order[:count])]
    )
    model.fit()
    others = [runs[place] for place in order[count:]]
    found, _ = model.predict(model.encoding.rows(one for one, _ in others))
    seen = np.array([[speedups[size] for size in sizes] for _, speedups in others])
    group = np.searchsorted(BORDERS, sizes, side="right")
    return np.array([_score(found[:, group == n], seen[:, group == n]) for n in range(3)])


def _score(found: Floats, seen: Floats) -> tuple[float, float, float]:
    from scipy.stats import rankdata  # takes half a second to import

    cut = np.maximum(seen, _CLIPPED_AT)
    left = ((cut - found) ** 2).sum() / ((cut - cut.mean(axis=0)) ** 2).sum()
    ranks = [
        np.corrcoef(rankdata(one), rankdata(other))[0, 1]
        for one, other in zip(found.T, seen.T, strict=True)
    ]
    best = np.argsort(-found, axis=0)[:_TOP]
    return 1 - left, float(np.mean(ranks)), float(np.take_along_axis(seen, best, axis=0).mean())


def main() -> None:
    """Prints a line for each number of runs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, nargs="+", default=[40, 80, 150], help="[40 80 150]")
    parser.add_argument("--draws", type=int, default=20, help="of each, two at least [20]")
    options = parser.parse_args()
    runs = load_runs()
    for count in options.runs:
        scores = np.array([predict_held_out(runs, count, seed) for seed in range(options.draws)])
        error = scores[:, :, 2].std(axis=0, ddof=1) / math.sqrt(options.draws)
        cells = [
            f"{share:.2f} {ranks:.2f} {best:+.2f} ±{off:.2f}"
            for (share, ranks, best), off in zip(scores.mean(axis=0), error, strict=True)
        ]
        print(f"{count:4} runs of {len(runs)}: " + " | ".join(cells), flush=True)


if __name__ == "__main__":
    main()
