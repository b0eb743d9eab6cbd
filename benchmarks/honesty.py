"""Are campaigns honest, and do they find what is there? Hundreds of them, with a known truth.

    python benchmarks/honesty.py --campaigns 200 --output benchmarks/results/honesty.json

Whole campaigns (search, ablation, confirmation, profiles; the default budget) run over recorded
noise and over made-up noise, in a space of ten variables of which none, or one, does something.
Printed are, by noise and planted gain:

- claims: the share of campaigns that recommend anything; without a planted gain each is false;
- found: the share that recommends a configuration with the gain, where it is;
- wrong: the share that recommends something at a size where it gains nothing;
- passengers: the share whose recommended configurations hold a variable that does nothing;
- coverage: the share of campaigns in which all intervals that are stated to hold together do, and
  the share of the intervals of single machine speeds, stated at 95 % each, that hold.

Shares of campaigns come with their 95 % interval (Clopper and Pearson). Intervals of one campaign
hang together, so of those of single speeds each campaign's share is taken, and the mean of these
shares with Student's t interval over the campaigns.

Campaigns over recorded noise share one recording of 1,604 runs: they are less independent than
their number says. No made-up or recorded run is disturbed by others, so the rule that makes such
runs again is not put to the test here.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from itertools import product
from pathlib import Path
from statistics import fmean, stdev

sys.path.insert(0, str(Path(__file__).parent))

import simulated
from scipy.stats import beta
from scipy.stats import t as student

from commtune.model import Configuration, Profile, Verdict
from commtune.replay.benchmark import Grid, load_grid
from commtune.tuner.campaign import CampaignResult
from commtune.tuner.statistics.intervals import FEWEST_PAIRS
from commtune.tuner.statistics.machine_states import ALL

GRIDS = Path(__file__).parent / "grids"
RECORDED = {"recorded": "mpich-allreduce-default.jsonl.gz"}
MADE_UP = (
    "normal",
    "bimodal",
    "drifting",
    "heavy-tailed",
    "outliers",
    "first-slower",
    "every-second",
    "two-of-four",
)


@dataclass(frozen=True)
class Case:
    """One simulated campaign."""

    noise: str
    gain: float
    seed: int
    run_s: float


@dataclass(frozen=True)
class Result:
    """What one campaign came to, held against the truth."""

    noise: str
    gain: float
    seed: int
    claims: bool
    found: bool
    wrong: bool
    passengers: bool
    together: bool
    single: int
    single_held: int
    runs: int
    seconds: float


def run(case: Case) -> Result:
    """One campaign, judged."""
    started = time.perf_counter()
    rng = random.Random(f"{case.noise}:{case.gain}:{case.seed}")
    effect = simulated.Planted(case.gain) if case.gain else simulated.null
    _, report = simulated.run_campaign(_noise(case, rng), effect, case.seed)
    return _judged(case, effect, report, time.perf_counter() - started)


def _noise(case: Case, rng: random.Random) -> simulated.Noise:
    if case.noise in RECORDED:
        return simulated.RecordedNoise.of(_grid(RECORDED[case.noise]), rng)
    return simulated.MadeUpNoise(case.noise, rng, case.run_s)


@cache
def _grid(name: str) -> Grid:
    return load_grid(GRIDS / name)


def _judged(
    case: Case, effect: simulated.Effect, report: CampaignResult, seconds: float
) -> Result:
    tuned = [p for p in report.profiles if p.verdict is Verdict.FASTER]
    held, single, single_held = True, 0, 0
    for configuration, points in report.comparison.points.items():
        for point in points:
            if point.gain.pairs < FEWEST_PAIRS:
                continue
            truth = _ratio(effect, configuration, point.bytes)
            holds = point.gain.low <= truth <= point.gain.high
            if point.speed == ALL:
                held = held and holds
            else:
                single, single_held = single + 1, single_held + holds
    return Result(
        case.noise,
        case.gain,
        case.seed,
        claims=bool(tuned),
        found=any(_gains(effect, profile) for profile in tuned),
        wrong=any(_is_wrong(effect, profile) for profile in tuned),
        passengers=any(set(p.configuration) - {"V3"} for p in tuned),
        together=held,
        single=single,
        single_held=single_held,
        runs=report.runs,
        seconds=seconds,
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


@dataclass(frozen=True)
class Share:
    """A share with its 95 % interval."""

    count: int
    of: int

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper and Pearson's."""
        low = beta.ppf(0.025, self.count, self.of - self.count + 1) if self.count else 0.0
        rest = self.of - self.count
        high = beta.ppf(0.975, self.count + 1, rest) if rest else 1.0
        return float(low), float(high)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.count / max(1, self.of):6.1%} [{low:.1%}, {high:.1%}]"


def clustered(results: Sequence[Result]) -> str:
    """The share of single speeds' intervals that hold, in the mean over campaigns.

    With Student's t interval over campaigns: intervals of one campaign are not independent.
    """
    shares = [r.single_held / r.single for r in results if r.single]
    if len(shares) < 2:
        return ""
    mean = fmean(shares)
    half = student.ppf(0.975, len(shares) - 1) * stdev(shares) / math.sqrt(len(shares))
    return f"{mean:6.1%} [{max(0.0, mean - half):.1%}, {min(1.0, mean + half):.1%}]"


def table(results: Sequence[Result]) -> str:
    """The table of the docs, and the totals over all noises."""
    rows = [
        "| noise | planted gain | campaigns | claims | found | wrong | passengers |"
        " all intervals hold | 95 % intervals hold |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    names = list(dict.fromkeys(r.noise for r in results))
    for noise in [*names, "all"] if len(names) > 1 else names:
        for gain in sorted({r.gain for r in results}):
            of = [r for r in results if noise in (r.noise, "all") and r.gain == gain]
            if of:
                rows.append(_row(noise, gain, of))
    return "\n".join(rows)


def _row(noise: str, gain: float, of: Sequence[Result]) -> str:
    def share(name: str, among: Sequence[Result] = of) -> str:
        return str(Share(sum(getattr(r, name) for r in among), len(among)))

    cells = [
        noise,
        f"{gain:.0%}" if gain else "none",
        str(len(of)),
        share("claims"),
        share("found") if gain else "",
        share("wrong"),
        share("passengers", [r for r in of if r.found]) if gain else "",
        share("together"),
        clustered(of),
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=200, help="a noise and gain")
    parser.add_argument("--noise", nargs="+", default=[*RECORDED, *MADE_UP])
    parser.add_argument("--gains", nargs="+", type=float, default=[0.0, 0.05, 0.1, 0.3])
    parser.add_argument("--run-s", type=float, default=0.165, help="of a run, made-up noise only")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.campaigns)
    cases = [
        Case(n, g, s, options.run_s) for s, n, g in product(seeds, options.noise, options.gains)
    ]
    started = time.perf_counter()
    with ProcessPoolExecutor(options.processes) as pool:
        results = list(pool.map(run, cases, chunksize=4))
    print(table(results))
    wall = time.perf_counter() - started
    runs = sum(r.runs for r in results)
    print(
        f"\n{len(results)} campaigns, {runs} runs in {wall:.0f} s: "
        f"{runs / wall:.0f} runs a second, simulated or replayed"
    )
    if options.output:
        rows = [asdict(result) for result in results]
        options.output.write_text(json.dumps(rows, separators=(",", ":")).replace("},", "},\n"))


if __name__ == "__main__":
    main()
