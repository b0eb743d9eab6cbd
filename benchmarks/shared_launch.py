"""Do runs that share a launch measure what launches of their own do, and what do they save?

    python benchmarks/shared_launch.py campaign.yaml --blocks 12 --configurations 2 --json FILE
    python benchmarks/shared_launch.py --from FILE

Takes workload, space and timing from a campaign file. In each block, in random order, the default
and some random configurations run in launches of their own ("own"), and again in one launch that
all blocks share ("shared"). Per size: the geometric mean over blocks of shared / own, with its
95 % confidence interval; beside it own / own of blocks one after the other (A/A). Then the median
wall time of a run, from its start to its result.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from commtune import formatting as text
from commtune.app.campaigns.preparing import prepare_campaign
from commtune.campaign.loading import load_campaign
from commtune.campaign.plan import Plan
from commtune.cluster.local.benchmark import LocalBenchmark
from commtune.cluster.local.shared_launch import SharedLaunch, can_share_launches
from commtune.model import DEFAULT, Configuration, Outcome, Phase, RunRequest
from commtune.tuner.statistics.intervals import t_quantile
from commtune.wiring.benchmark_setup import prepare_benchmark

_LEVEL, _LIMIT_S = 0.95, 60.0
_SIDES = ("own", "shared")


@dataclass(frozen=True)
class _Series:
    """Times of one configuration: seconds by side, block and size (bytes)."""

    times: Mapping[str, Sequence[Mapping[int, float]]]

    def compare(self, size: int) -> tuple[float, float, float]:
        """Shared over own, with its interval."""
        own, shared = ([block[size] for block in self.times[side]] for side in _SIDES)
        return compare_times(shared, own)

    def compare_own(self, size: int) -> tuple[float, float, float]:
        """Own launches of even blocks over those of odd ones."""
        own = [block[size] for block in self.times["own"]]
        pairs = len(own) // 2
        return compare_times(own[: 2 * pairs : 2], own[1 : 2 * pairs : 2])


def compare_times(one: Sequence[float], other: Sequence[float]) -> tuple[float, float, float]:
    """Returns the geometric mean of one / other, pair by pair, and its 95 % interval."""
    logs = [math.log(a / b) for a, b in zip(one, other, strict=True)]
    mean = statistics.fmean(logs)
    half = (
        t_quantile((1 + _LEVEL) / 2, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    )
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """One entry a run: configuration, side, block, outcome, wall and times (seconds)."""
    spec, mpi = prepare_campaign(
        load_campaign(options.campaign), f"sqlite:///{options.folder}/none.db"
    )
    plan, rng = spec.plan, random.Random(options.seed)
    if not can_share_launches(plan):
        raise SystemExit("runs of this campaign have launches of their own")
    own = prepare_benchmark(
        mpi, plan.space.pinned, plan.space.variables, plan.workload, options.folder
    )
    shared = SharedLaunch(print)
    sides = {"own": own, "shared": replace(own, shared=shared)}
    chosen = [DEFAULT, *(plan.space.sample(rng) for _ in range(options.configurations))]
    found: list[dict[str, Any]] = []
    try:
        _warm_up(sides["shared"], plan)
        for block in range(options.blocks):
            order = [(c, side) for c in chosen for side in _SIDES]
            for configuration, side in rng.sample(order, len(order)):
                found.append(measure_run(sides[side], plan, configuration, f"{len(found)}"))
                found[-1] |= {"side": side, "block": block}
                if options.json:
                    options.json.write_text(json.dumps(found))
    finally:
        shared.close()
    return found


def _warm_up(benchmark: LocalBenchmark, plan: Plan) -> None:
    """Past the runs of a session that are launches of their own in any case."""
    for number in range(10):
        run = benchmark.measure(_request(plan, DEFAULT, f"warm-up-{number}"), _LIMIT_S)
        if (run.header or {}).get("in_shared_launch"):
            return
    raise SystemExit(f"no launch is shared: {run.outcome} {run.detail}\n{run.output_tail}")


def measure_run(
    benchmark: LocalBenchmark, plan: Plan, configuration: Configuration, name: str
) -> dict[str, Any]:
    """Makes one run, and returns its outcome, wall time and times by size (seconds)."""
    run = benchmark.measure(_request(plan, configuration, name), _LIMIT_S)
    return {
        "configuration": dict(configuration),
        "outcome": str(run.outcome),
        "in_shared_launch": bool((run.header or {}).get("in_shared_launch")),
        "wall_s": run.wall_s,
        "elapsed_s": (run.footer or {}).get("elapsed_s"),
        "median_s": {str(m.bytes): m.median_s for m in run.measurements},
    }


def _request(plan: Plan, configuration: Configuration, name: str) -> RunRequest:
    return RunRequest(name, configuration, plan.workload, plan.timing, Phase.SEARCH)


def show(found: Sequence[Mapping[str, Any]]) -> None:
    """Prints tables of what ``measure`` returned."""
    good = [run for run in found if run["outcome"] == Outcome.OK]
    for settings in _distinct(found):
        blocks: dict[str, dict[int, Mapping[int, float]]] = {side: {} for side in _SIDES}
        for run in good:
            if run["configuration"] == settings:
                times = {int(size): value for size, value in run["median_s"].items()}
                blocks[run["side"]][run["block"]] = times
        both = sorted(blocks["own"].keys() & blocks["shared"].keys())
        series = _Series({side: [blocks[side][block] for block in both] for side in _SIDES})
        print(" ".join(f"{n}={v}" for n, v in settings.items()) or "the default", f"({len(both)})")
        for size in sorted(series.times["own"][0]) if len(both) > 3 else ():
            shown = [
                f"{value:.3f} [{low:.3f}, {high:.3f}]"
                for value, low, high in (series.compare(size), series.compare_own(size))
            ]
            print(f"{text.format_size(size):>8}  shared/own {shown[0]}  own/own {shown[1]}")
    for side in _SIDES:
        walls = [run["wall_s"] for run in good if run["side"] == side]
        print(f"a run, {side}: {statistics.median(walls):.2f} s in the median of {len(walls)}")
    print(f"failed: {len(found) - len(good)} of {len(found)}")


def _distinct(found: Sequence[Mapping[str, Any]]) -> list[Mapping[str, str]]:
    kept: list[Mapping[str, str]] = []
    for run in found:
        if run["configuration"] not in kept:
            kept.append(run["configuration"])
    return sorted(kept, key=len)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("campaign", type=Path, nargs="?")
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--configurations", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("build/shared-launch"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--from", type=Path, dest="earlier")
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    show(json.loads(options.earlier.read_text()) if options.earlier else measure(options))


if __name__ == "__main__":
    main()
