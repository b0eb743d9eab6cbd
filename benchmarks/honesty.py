"""Are campaigns honest, and do they find what is there? Hundreds of them, with a known truth.

    python benchmarks/honesty.py --output benchmarks/results/honesty.jsonl
    python benchmarks/honesty.py --campaigns 0 --output benchmarks/results/honesty.jsonl.gz

The second only prints the tables of what is there. Whole campaigns (search, ablation,
confirmation, profiles) run over recorded noise and over made-up noise, in a
space of ten variables of which none, or one, does something. honesty_table.py says what is
printed, and which goals there are; if one is missed with the default budget and runs of 1.5 s, or
recorded ones, the exit code is 1. Without ``--runs``, campaigns have the budget of a campaign that
names none.

Campaigns over recorded noise share one recording of 1,604 runs: they are less independent than
their number says. No run is made again because others used the cores: that rule is not put to
the test here.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import multiprocessing
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import product
from multiprocessing.pool import IMapIterator
from pathlib import Path
from statistics import fmean, median

# One process a core: more threads would only wait for one another.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import simulated
from further_noise import NodeAllocation, PeriodicMonitoring
from honesty_table import Result, notes, table
from simulated import SimulatedBenchmark
from unseen_noise import (
    Congestion,
    HashCollisions,
    Interruptions,
    LossTimeouts,
    MemoryNeighbours,
    PhysicalPages,
    ThermalCap,
    UnpinnedRanks,
)

from commtune.campaign.plan import Budget
from commtune.model import (
    DEFAULT,
    FEWEST_PAIRS,
    Configuration,
    Operation,
    Phase,
    Profile,
    Run,
    RunRequest,
    Timing,
    Verdict,
    Workload,
)
from commtune.model.conclusion import Decision, error_share
from commtune.replay.recording import Grid, load_grid
from commtune.tuner.campaign import CampaignResult
from commtune.tuner.confirmation.comparison import Rules, compare_candidate
from commtune.tuner.statistics.blocks import balanced_order
from commtune.tuner.statistics.machine_states import ALL, fit_states
from commtune.wiring.cost_fitting import fit_budget

GRIDS = Path(__file__).parent / "grids"
RECORDED = {"recorded": "mpich-allreduce-default.jsonl.gz"}
#: What its runs take, and others of the campaigns that have to meet the goals, seconds.
RECORDED_RUN_S, RUN_S = 0.165, 1.5
MADE_UP = (
    "normal",
    "bimodal",
    "drifting",
    "heavy-tailed",
    "outliers",
    "first-slower",
    "every-second",
    "two-of-four",
    "sticky",
    "autocorrelated",
    "rounded",
    "shared",
    "independent",
    "slow-launches",
    "slow-with-gain",
    "spread-by-configuration",
    "environment-size",
)
UNSEEN = {
    "interruptions": Interruptions,
    "congestion": Congestion,
    "physical-pages": PhysicalPages,
    "thermal-cap": ThermalCap,
    "hash-collisions": HashCollisions,
    "loss-timeouts": LossTimeouts,
    "unpinned-ranks": UnpinnedRanks,
    "memory-neighbours": MemoryNeighbours,
    "node-allocation": NodeAllocation,
    "periodic-monitoring": PeriodicMonitoring,
}
#: What has the planted gain.
WITH_GAIN = Configuration({"V3": "2"})
#: Fresh confirmations of a campaign that has found nothing.
_CONFIRMATIONS = 5
#: An oracle looks once, at the end, and states each size once.
_ORACLE = Rules(0.95, 0.02, 0.05, len(simulated.SIZES), error_share(0))


@dataclass(frozen=True)
class Case:
    """One simulated campaign."""

    noise: str
    gain: float
    seed: int
    run_s: float
    runs: int

    @property
    def budget(self) -> Budget:
        """Time for so many runs; for none, what a campaign gets that names no budget."""
        runs = self.runs
        return Budget().scale_to(runs * self.run_s) if runs else fit_budget(self.run_s)


def run(case: Case) -> Result:
    """One campaign, judged."""
    started = time.process_time()
    effect = simulated.Planted(case.gain) if case.gain else simulated.null
    benchmark = _benchmark(case, effect, "campaign")
    campaign = simulated.make_campaign(benchmark, case.seed, case.budget)
    report = campaign.run()
    oracle = bool(
        case.gain
        and _found(
            _benchmark(case, effect, "oracle"),
            report.runs // 2,
            _ORACLE.interval_level,
            f"oracle:{case.seed}",
        )
    )
    result = _judged(case, effect, report)
    stated = {} if case.gain else report.conclusion.detectable
    decision = campaign.runner.store.decision(campaign.runner.campaign_id)
    if decision is not None and stated:
        most = max(stated, key=lambda size: stated[size])
        again = replace(benchmark, effect=_Gains(stated))
        seeds = [f"power:{case.seed}:{number}" for number in range(_CONFIRMATIONS)]
        shown = [_shown(again, stated, decision, seed) for seed in seeds]
        result = replace(
            result,
            stated=round(stated[most], 4),
            shown=fmean(most in sizes for sizes in shown),
            powered=len(stated) * _CONFIRMATIONS,
            powered_found=sum(map(len, shown)),
        )
    seconds = round(time.process_time() - started, 2)
    return replace(result, oracle=oracle, seconds=seconds, commit=_read_commit())


@cache
def _read_commit() -> str:
    """The commit of the code that runs; empty outside of a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return found.stdout.strip()


def _shown(
    benchmark: SimulatedBenchmark, stated: Mapping[int, float], decision: Decision, seed: str
) -> set[int]:
    """Of the sizes with a minimum detectable effect, those where fresh blocks find one as large.

    As many blocks as were planned, held against the level of the last look. They follow the
    campaign, on the machine as it is then.
    """
    statements = sum(map(len, decision.sizes)) or len(stated)
    level = replace(_ORACLE, comparisons=statements, share=decision.shares[-1]).interval_level
    planned = decision.looks[-1].planned if decision.looks else decision.blocks
    return _found(benchmark, planned, level, seed) & stated.keys()


@dataclass(frozen=True)
class _Gains:
    """A gain of its own at each size."""

    gains: Mapping[int, float]

    def __call__(self, configuration: Configuration, size: int) -> float:
        return 0.0 if configuration.is_default else -math.log1p(self.gains.get(size, 0.0))


def _benchmark(case: Case, effect: simulated.Effect, purpose: str) -> SimulatedBenchmark:
    """The case's noise; another draw of it for each purpose."""
    step_s = 1e-8 if case.noise == "rounded" else 0.0
    name = f"{case.noise}:{case.gain}:{case.seed}" + f":{purpose}" * (purpose != "campaign")
    return SimulatedBenchmark(_noise(case, name), effect, step_s=step_s)


def _noise(case: Case, name: str) -> simulated.Noise:
    rng = random.Random(name)
    if case.noise in RECORDED:
        return simulated.RecordedNoise.of(_grid(RECORDED[case.noise]), rng)
    if case.noise in UNSEEN:
        model = UNSEEN[case.noise](np.random.default_rng(rng.randrange(2**32)))
        return simulated.ContinuousNoise(model, case.run_s)
    return simulated.MadeUpNoise(case.noise, rng, case.run_s)


def _found(benchmark: SimulatedBenchmark, blocks: int, level: float, seed: str) -> set[int]:
    """Sizes at which so many blocks of the default and what has the gain show that it is faster.

    Args:
        level: of each interval.
        seed: of the order in blocks.
    """
    workload, made = Workload(Operation.ALLREDUCE, simulated.SIZES), []
    for block in range(blocks):
        order = balanced_order([DEFAULT, WITH_GAIN], seed, block)
        requests = [
            RunRequest("", one, workload, Timing(), Phase.CONFIRM, 0, block, place)
            for place, one in enumerate(order)
        ]
        runs = [Run.from_result(asked, benchmark.measure(asked, 0.0), "") for asked in requests]
        made.append({run.configuration: run for run in runs})
    canaries = [m.canary_s for b in made for r in b.values() for m in r.measurements if m.canary_s]
    rules = Rules(level, _ORACLE.minimum_gain, _ORACLE.tolerance, 1)
    compared = compare_candidate(made, WITH_GAIN, "allreduce", fit_states(canaries), rules)
    return {p.bytes for p in compared.points if p.verdict is Verdict.FASTER and p.speed == ALL}


@cache
def _grid(name: str) -> Grid:
    return load_grid(GRIDS / name)


def _judged(case: Case, effect: simulated.Effect, report: CampaignResult) -> Result:
    tuned = [p for p in report.profiles if p.verdict is Verdict.FASTER]
    held, single, single_held, pairs = True, 0, 0, []
    for configuration, compared in report.comparison.items():
        for point in compared.points:
            if point.gain.pairs < FEWEST_PAIRS:
                continue
            truth = _ratio(effect, configuration, point.bytes)
            holds = point.gain.low <= truth <= point.gain.high
            if point.speed == ALL:
                held = held and holds
                pairs.append(point.gain.pairs)
            else:
                single, single_held = single + 1, single_held + holds
    return Result(
        case.noise,
        case.gain,
        case.seed,
        case.run_s,
        case.runs,
        claims=bool(tuned),
        found=any(_gains(effect, profile) for profile in tuned),
        wrong=any(_is_wrong(effect, profile) for profile in tuned),
        idle=any(set(p.configuration) - {"V3"} for p in tuned),
        named=any(p.unproven_variables for p in tuned),
        together=held,
        single=single,
        single_held=single_held,
        made=report.runs,
        seconds=0.0,
        pairs=round(median(pairs)) if pairs else 0,
        silent=any("slow runs" not in p.note for p in tuned),
    )


def _ratio(effect: simulated.Effect, configuration: Configuration, size: int) -> float:
    return math.exp(-effect(configuration, size))


def _inside(profile: Profile) -> list[int]:
    return [s for s in simulated.SIZES if profile.bytes_low <= s <= profile.bytes_high]


def _gains(effect: simulated.Effect, profile: Profile) -> bool:
    return any(_ratio(effect, profile.configuration, size) > 1 for size in _inside(profile))


def _is_wrong(effect: simulated.Effect, profile: Profile) -> bool:
    """One environment for all sizes promises a gain somewhere only; a range does everywhere."""
    gains = [_ratio(effect, profile.configuration, size) > 1 for size in _inside(profile)]
    return not any(gains) if profile.name == "all-sizes" else not all(gains)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=400, help="a noise and gain")
    parser.add_argument("--noise", nargs="+", default=[*RECORDED, *MADE_UP, *UNSEEN])
    parser.add_argument("--gains", nargs="+", type=float, default=[0.0, 0.1])
    parser.add_argument(
        "--run-s", nargs="+", type=float, default=[RUN_S], help="of a run, not of a recording"
    )
    parser.add_argument("--runs", nargs="+", type=int, default=[0], help="that a budget holds")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so many")
    parser.add_argument(
        "--output", type=Path, help="JSON Lines; what is there isn't run again; .gz: only to read"
    )
    options = parser.parse_args()
    known = _read(options.output)
    done = {Case(r.noise, r.gain, r.seed, r.run_s, r.runs) for r in known}
    cases = [
        Case(noise, gain, seed, RECORDED_RUN_S if noise in RECORDED else run_s, runs)
        for run_s, runs, seed, gain, noise in product(
            options.run_s, options.runs, range(options.campaigns), options.gains, options.noise
        )
        if gain or noise != "slow-with-gain"
    ]
    cases = [case for case in dict.fromkeys(cases) if case not in done]
    if cases and options.output and options.output.suffix == ".gz":
        parser.error(f"{options.output} is compressed: nothing can be added to it")
    end = time.monotonic() + options.seconds
    with (
        (options.output or Path(os.devnull)).open("a") as file,
        multiprocessing.Pool(options.processes) as pool,
    ):
        for result in _until(end, pool.imap_unordered(run, cases)):
            known.append(result)
            print(json.dumps(asdict(result), separators=(",", ":")), file=file, flush=True)
    is_missed = False
    for (run_s, runs), gain in product(
        dict.fromkeys((r.run_s, r.runs) for r in known),
        sorted({r.gain for r in known if r.gain}) or [0.0],
    ):
        of = [r for r in known if (r.run_s, r.runs) == (run_s, runs) and r.gain in (0.0, gain)]
        title = f"{runs or 'As many as by default,'} runs of {run_s:g} s, planted: {gain:.0%}"
        printed = table(of)
        has_goals = not runs and run_s in (RECORDED_RUN_S, RUN_S) and gain in options.gains
        is_missed = is_missed or (has_goals and "**" in printed)
        print(f"\n{title}\n\n{printed}\n\n{notes(of)}")
    sys.exit(is_missed)


def _until(end: float, results: IMapIterator[Result]) -> Iterator[Result]:
    """Results as they come, up to an end (of the monotonic clock)."""
    while (left := end - time.monotonic()) > 0:
        try:
            yield results.next(None if math.isinf(left) else left)
        except (StopIteration, multiprocessing.TimeoutError):
            return


def _read(path: Path | None) -> list[Result]:
    if path is None or not path.exists():
        return []
    content = path.read_bytes()
    text = gzip.decompress(content) if path.suffix == ".gz" else content
    return [Result(**json.loads(line)) for line in text.splitlines()]


if __name__ == "__main__":
    main()
