"""What each part of the search and of the portfolio brings, in replayed campaigns.

    python -m benchmarks.search.parts --grids nccl-sockets --seeds 30 --jobs 8
    python -m benchmarks.search.parts --parts "halving before a gain is certain" --percent 5

Whole campaigns are played with one part taken away, and with all of them, on the same halves and
with the same seed. The difference is what the part brings: in the mean log speedup over sizes of
what is recommended, by runs that no campaign saw; and in the variables of a campaign's profiles.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import product
from statistics import fmean, stdev
from typing import Any
from unittest import mock

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy is there
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402

from commtune.tuner.ablation.blocks import AblationBlocks  # noqa: E402
from commtune.tuner.confirmation import portfolio  # noqa: E402
from commtune.tuner.search import covariance, model, phase, pooling, shrinking  # noqa: E402
from commtune.tuner.search.strategies import table_gp  # noqa: E402

from .__main__ import ALL, load_recording  # noqa: E402
from .halves import Floats, split_grid  # noqa: E402
from .idle_variables import count_idle  # noqa: E402
from .ours import mean_gain, run_whole_campaign  # noqa: E402


def _do_nothing(*_args: object, **_options: object) -> None:
    pass


def _list_nothing(*_args: object) -> list[Any]:
    return []


def _without_common_noise(table: model.TableModel) -> Floats:
    return np.diag(table.noise**2)


#: What takes a part away: an owner, the name of what it has, and what takes its place.
PARTS: Mapping[str, tuple[tuple[Any, str, Any], ...]] = {
    "idle variables are dropped": ((model.TableModel, "find_idle", _do_nothing),),
    "interacting variables are restored": ((pooling, "find_interacting_values", lambda *_: {}),),
    "halves of the best are tried": tuple(
        (owner, "list_smaller_variants", _list_nothing) for owner in (shrinking, table_gp)
    ),
    "halving before a gain is certain": ((shrinking, "_BEHIND_ERRORS", 1.0),),
    "leaders of a single run are re-run": (
        (model.TableModel, "list_single_run_leaders", _list_nothing),
    ),
    "re-runs beside new configurations": ((phase.SearchPhase, "_rank_reruns", _list_nothing),),
    "the last fifth is for re-runs": ((phase, "_FINALISTS_SHARE", 0.0),),
    "single values first": ((table_gp, "_SINGLE_VALUES", 0),),
    "each value is tried first": ((table_gp.TableImprovement, "_draw_balanced", _list_nothing),),
    "hyperparameters are learned": ((covariance.Covariance, "learn", _do_nothing),),
    "noise is correlated between sizes": (
        (model.TableModel, "_estimate_noise", _without_common_noise),
    ),
    "a configuration's own mean counts": ((model, "_PREDICTION_RUNS", 1e9),),
    "time for ablation": ((portfolio, "_ABLATION_BLOCKS", math.inf),),
    "what ablation measured is confirmed": ((AblationBlocks, "read_standings", lambda *_: {}),),
    "a further candidate adds 3 %": ((portfolio, "_WORTH_A_RUN", 0.0),),
    "ahead by half an error": ((portfolio, "_AHEAD_ERRORS", 0.0),),
    "the smaller of two equal candidates": (
        (portfolio.Prospects, "_smallest_alike", lambda _self, index, _sizes: index),
    ),
}


@contextmanager
def take_away(part: str) -> Iterator[None]:
    """Everything without a part; nothing is taken away where it has no name."""
    with ExitStack() as stack:
        for owner, name, value in PARTS[part] if part else ():
            stack.enter_context(mock.patch.object(owner, name, value))
        yield


def play_without(part: str, grid: str, seed: int, percent: float) -> tuple[float, int]:
    """What a campaign without a part recommends: mean log speedup, and how many variables."""
    halves = split_grid(load_recording(grid), seed)
    with take_away(part):
        result, _ = run_whole_campaign(halves, seed, halves.runs(percent))
    counts = [one.variables for one in count_idle(halves, result.profiles).profiles]
    return mean_gain(halves, result.profiles), sum(counts)


def describe(differences: Sequence[Sequence[float]]) -> list[str]:
    """By recording, and over all alike: the mean and its standard error."""
    means = [fmean(found) for found in differences]
    errors = [stdev(found) / math.sqrt(len(found)) for found in differences]
    means.append(fmean(means))
    errors.append(math.hypot(*errors) / len(errors))
    return [f"{mean:+.2f} ±{error:.2f}" for mean, error in zip(means, errors, strict=True)]


def main() -> None:
    """Plays, and prints a line for each part; of speedups, logarithms in per cent."""
    options = _options()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    parts, grids, numbers = zip(*product(("", *options.parts), options.grids, seeds), strict=True)
    percents = [options.percent] * len(parts)
    with ProcessPoolExecutor(options.jobs) as pool:
        played = list(pool.map(play_without, parts, grids, numbers, percents))
    # By part (none is away at first), recording and seed: speedup and variables.
    found = np.array(played).reshape(1 + len(options.parts), len(options.grids), len(seeds), 2)
    print("| " + " | ".join(["part", *options.grids, "mean", "variables"]) + " |")
    print("|---" * (len(options.grids) + 3) + "|")
    for part, without in zip(options.parts, found[1:], strict=True):
        speedups, variables = np.moveaxis(found[0] - without, -1, 0).tolist()
        cells = describe([[100 * value for value in values] for values in speedups])
        print("| " + " | ".join([part, *cells, describe(variables)[-1]]) + " |")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--grids", nargs="+", choices=ALL, default=ALL)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=[*PARTS])
    parser.add_argument("--percent", type=float, default=20, help="of the recording's runs [20]")
    parser.add_argument("--seeds", type=int, default=30, help="of each recording, two at least")
    parser.add_argument("--first-seed", type=int, default=1, help="[1]")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    return parser.parse_args()


if __name__ == "__main__":
    main()
