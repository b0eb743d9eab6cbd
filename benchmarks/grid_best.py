"""Is what ``make tune`` recommends as fast as the best of a recorded grid?

    python benchmarks/grid_best.py --seeds 10 --output benchmarks/results/grid-best.json

Each seed runs the embedded default campaign, with its default budget, in a database of its own.
Then the default, what the campaign recommends, and the best configurations of the recording
`mpich-allreduce` from 64 KiB on are launched in turn, in random order. These are the best by its
shrunk medians; they have to be launched again, since the recording is of another machine of this
kind. Printed for each size are ratios of times, with intervals of 95 %.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from quiet import QuietReporter
from search.halves import Recording
from search.ours import profile_at
from search.truth import shrink_medians

from commtune.app.campaigns import tuning
from commtune.campaign.plan import Plan
from commtune.commands.campaigns.tuning import quick_campaign
from commtune.db.connection.engine import open_database
from commtune.formatting import format_size, format_table
from commtune.model import DEFAULT, Configuration, Phase, RunRequest
from commtune.replay.recording import load_grid
from commtune.tuner.campaign import CampaignResult
from commtune.tuner.statistics.intervals import estimate_ratio, t_quantile
from commtune.wiring import benchmark_setup, space_fitting

_GRID = Path(__file__).parent / "grids/mpich-allreduce.jsonl.gz"
#: The smallest size, in bytes, at which the grid's best configurations are compared.
_SMALLEST = 65536
_TIME_LIMIT_S = 60.0

#: Median seconds by configuration and size, of one round.
Times = Mapping[Configuration, Mapping[int, float]]


@dataclass(frozen=True)
class Row:
    """Ratios of the time of what a campaign recommends at a size, with their intervals.

    Attributes:
        settings: what is recommended; empty for the default.
        of_default, of_best: time over that of the default and of the grid's best configuration:
            ratio, low and high end. The second is ``None`` below 64 KiB.
    """

    seed: int
    bytes: int
    settings: dict[str, str]
    of_default: tuple[float, float, float]
    of_best: tuple[float, float, float] | None


def run_campaign(seed: int, folder: Path) -> tuple[Plan, CampaignResult]:
    """Runs the embedded default campaign with a seed, in a database of its own."""
    mpi = benchmark_setup.find_named_mpi("wheel:mpich")
    space = space_fitting.preset_for(mpi, "allreduce")
    spec = quick_campaign({"name": f"{folder.name}-{seed}", "seed": seed}, space, "mpich")
    opened = open_database(f"sqlite:///{folder}/{seed}.db")
    result = tuning.tune_campaign(spec, mpi, opened, QuietReporter(), take_over=False)
    opened.close()
    return spec.plan, result


def find_best() -> dict[int, Configuration]:
    """Finds the grid's best configuration at each size from 64 KiB on."""
    recording = Recording(load_grid(_GRID))
    truth = shrink_medians(recording.log_times, recording.of, recording.prior)
    sizes, configurations = recording.grid.header.workload.sizes, recording.grid.configurations
    places = zip(sizes, truth.argmin(axis=0), strict=True)
    return {size: configurations[place] for size, place in places if size >= _SMALLEST}


def launch_in_turn(
    plan: Plan, configurations: Sequence[Configuration], rounds: int
) -> list[Times]:
    """Launches each configuration once a round, in random order."""
    mpi = benchmark_setup.find_named_mpi("wheel:mpich")
    rng = random.Random(plan.seed)
    found: list[Times] = []
    with tempfile.TemporaryDirectory() as folder:
        benchmark = benchmark_setup.prepare_benchmark(
            mpi, plan.space.pinned, plan.space.variables, plan.workload, Path(folder)
        )
        for number in range(rounds):
            times: dict[Configuration, dict[int, float]] = {}
            for place in rng.sample(range(len(configurations)), len(configurations)):
                request = RunRequest(
                    f"{number}-{place}",
                    configurations[place],
                    plan.workload,
                    plan.timing,
                    Phase.CONFIRM,
                )
                measured = benchmark.measure(request, _TIME_LIMIT_S).measurements
                times[configurations[place]] = {m.bytes: m.median_s for m in measured}
            found.append(times)
    return found


def estimate(
    rounds: Sequence[Times], one: Configuration, other: Configuration, size: int
) -> tuple[float, float, float]:
    """Estimates how many times as long one configuration takes as another, with its interval."""
    if one == other:
        return 1.0, 1.0, 1.0
    found = estimate_ratio([math.log(times[one][size] / times[other][size]) for times in rounds])
    assert found is not None
    half = t_quantile(0.975, found.pairs - 1) * found.error
    low, middle, high = np.exp([found.mean - half, found.mean, found.mean + half]).tolist()
    return middle, low, high


def compare(
    seed: int, plan: Plan, result: CampaignResult, best: Mapping[int, Configuration], rounds: int
) -> list[Row]:
    """Compares what a campaign recommends with the default and with the grid's best."""
    profiles = {size: profile_at(result.profiles, size) for size in plan.workload.sizes}
    chosen = {size: found.configuration if found else DEFAULT for size, found in profiles.items()}
    every = dict.fromkeys([DEFAULT, *chosen.values(), *best.values()])
    times = launch_in_turn(plan, list(every), rounds)
    return [
        Row(
            seed,
            size,
            dict(mine),
            estimate(times, mine, DEFAULT, size),
            estimate(times, mine, best[size], size) if size in best else None,
        )
        for size, mine in chosen.items()
    ]


def show(rows: Sequence[Row]) -> str:
    """Makes a table of ratios."""
    named = [
        (
            str(row.seed),
            format_size(row.bytes),
            _show_ratio(row.of_default),
            _show_ratio(row.of_best),
        )
        for row in rows
    ]
    return format_table(("seed", "size", "of default", "of grid's best"), named, right="seed,size")


def _show_ratio(ratio: tuple[float, float, float] | None) -> str:
    return "{:.3f} [{:.3f}, {:.3f}]".format(*ratio) if ratio else ""


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    best, rows = find_best(), list[Row]()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, asked.seeds + 1):
            plan, result = run_campaign(seed, Path(folder))
            found = compare(seed, plan, result, best, asked.rounds)
            print(show(found), flush=True)
            rows += found
            if asked.output:
                text = [asdict(row) for row in rows]
                asked.output.write_text(json.dumps(text, indent=1) + "\n")
    large = [row.of_best for row in rows if row.of_best]
    print(
        f"within 5 % of the grid's best: {sum(ratio <= 1.05 for ratio, _, _ in large)} of "
        f"{len(large)}; beyond it with certainty: {sum(low > 1.05 for _, low, _ in large)}"
    )
    slower = sum(low > 1.0 for _, low, _ in (row.of_default for row in rows))
    print(f"slower than the default with certainty: {slower} of {len(rows)}")


if __name__ == "__main__":
    main()
