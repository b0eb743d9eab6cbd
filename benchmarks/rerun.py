"""Do recommendations survive a rerun? Campaigns with several seeds, each checked by hand.

    python benchmarks/rerun.py --seeds 10 --output benchmarks/results/rerun.json

Each seed runs the embedded default campaign, with its default budget, in a database of its own.
Then, in fresh launches, the default and the recommended configuration alternate; the ratio of
paired medians is held against the interval that the campaign stated, within each machine speed
where it told several apart. Nothing is tried first: every winner was found by search.
At the end, the profiles of every two seeds are held against each other: they agree at a size and
speed where their intervals overlap. The spread between sittings is estimated, too (SITTING_SPREAD,
commtune/tuner/statistics/intervals.py): what stated gains and reruns differ by beyond the noise of
their pairs, as a share of the gain's logarithm.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

from quiet import QuietReporter

from commtune import formatting as text
from commtune.app.campaigns import tuning
from commtune.campaign.plan import Plan
from commtune.commands.campaigns.tuning import quick_campaign
from commtune.db.connection.engine import open_database
from commtune.model import (
    DEFAULT,
    FEWEST_PAIRS,
    Configuration,
    Interval,
    Phase,
    PointEvidence,
    Profile,
    RunRequest,
    Verdict,
)
from commtune.tuner.campaign import CampaignResult
from commtune.tuner.statistics.intervals import (
    SITTING_SPREAD,
    estimate_ratio,
    t_quantile,
)
from commtune.tuner.statistics.machine_states import ALL, MIXED, MachineStates
from commtune.wiring import benchmark_setup, space_fitting

_WANTED_GAIN, _WANTED_SIZES = 1.3, (262144, 1048576)


@dataclass(frozen=True)
class Check:
    """A stated point and what a rerun gave.

    Attributes:
        rerun: ratio from the rerun's pairs, by the same estimator; ``None`` where the speed did
            not come up often enough.
        stated_error, rerun_error: standard errors of the logarithms, from the pairs alone.
    """

    seed: int
    profile: str
    bytes: int
    speed: str
    ratio: float
    low: float
    high: float
    rerun: float | None
    pairs: int
    stated_error: float = 0.0
    rerun_error: float = 0.0

    @property
    def holds(self) -> bool | None:
        """Whether the rerun is inside the stated interval."""
        return None if self.rerun is None else self.low <= self.rerun <= self.high


def run_campaign(
    seed: int, folder: Path, budget: tuple[str | None, str | None, str | None]
) -> tuple[Plan, CampaignResult]:
    """Runs a campaign with one seed."""
    mpi = benchmark_setup.find_named_mpi("wheel:mpich")
    space = space_fitting.preset_for(mpi, "allreduce")
    name = f"rerun-{folder.name}-{seed}"
    named = dict(zip(("search", "ablation", "confirmation"), budget, strict=True))
    flags = {
        "name": name,
        "seed": seed,
        "budget": {name: given for name, given in named.items() if given is not None},
    }
    spec = quick_campaign(flags, space, "mpich")
    opened = open_database(f"sqlite:///{folder}/{seed}.db")
    report = tuning.tune_campaign(spec, mpi, opened, QuietReporter(), take_over=False)
    opened.close()
    return spec.plan, report


def rerun(
    plan: Plan, profile: Profile, speeds: MachineStates, pairs: int
) -> dict[tuple[int, str], list[float]]:
    """Log ratios of alternating runs, by size and machine speed."""
    mpi = benchmark_setup.find_named_mpi("wheel:mpich")
    found: defaultdict[tuple[int, str], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        benchmark = benchmark_setup.prepare_benchmark(
            mpi, plan.space.pinned, plan.space.variables, plan.workload, Path(folder)
        )
        for number in range(pairs):
            times = {}
            order = [DEFAULT, profile.configuration]
            for position, configuration in enumerate(order if number % 2 else reversed(order)):
                request = _request(plan, configuration, number, position)
                result = benchmark.measure(request, 60.0)
                times[configuration] = {
                    (m.bytes, speeds.name(m.canary_s, m.canary_after_s)): m.median_s
                    for m in result.measurements
                }
            default, tuned = times[DEFAULT], times[profile.configuration]
            for cell in default.keys() & tuned.keys():
                if cell[1] != MIXED:
                    found[cell].append(math.log(default[cell] / tuned[cell]))
    return found


def _request(plan: Plan, configuration: Configuration, number: int, position: int) -> RunRequest:
    return RunRequest(
        f"rerun{number}-{position}", configuration, plan.workload, plan.timing, Phase.CONFIRM
    )


def check(seed: int, plan: Plan, report: CampaignResult, pairs: int) -> list[Check]:
    """Holds every claimed point of a campaign against a rerun."""
    checks = []
    for profile in report.profiles:
        if profile.verdict is not Verdict.FASTER or profile.name == "all-sizes":
            continue
        ratios = rerun(plan, profile, report.speeds, pairs)
        for point in _claimed(profile):
            logs = [
                value
                for (size, speed), values in ratios.items()
                if size == point.bytes and point.speed in (speed, ALL)
                for value in values
            ]
            found = estimate_ratio(logs)
            enough = found is not None and found.pairs >= FEWEST_PAIRS
            gain = point.gain
            level = plan.level if point.speed != ALL else profile.level
            checks.append(
                Check(seed, profile.name, point.bytes, point.speed, gain.ratio, gain.low,
                      gain.high, math.exp(found.mean) if found and enough else None, len(logs),
                      _error(gain, level), found.error if found else 0.0)
            )  # fmt: skip
    return checks


def _error(gain: Interval, level: float) -> float:
    """The standard error behind a stated interval: without the allowance, by its t quantile."""
    half, mean = math.log(gain.high / gain.ratio), math.log(gain.ratio)
    within = half**2 - (1.96 * SITTING_SPREAD * mean) ** 2
    return math.sqrt(max(0.0, within)) / t_quantile((1 + level) / 2, max(1, 0.6 * gain.pairs))


def sitting_spread(checks: Sequence[Check]) -> float:
    """What gains differ by from sitting to sitting, beyond their noise, as a share of the log.

    By moments; both sittings vary, so half of the squared difference is each one's.
    """
    beyond = [
        ((math.log(c.rerun / c.ratio)) ** 2 - c.stated_error**2 - c.rerun_error**2)
        / (2 * math.log(c.ratio) ** 2)
        for c in checks
        if c.rerun is not None and c.ratio > 1.1
    ]
    return math.sqrt(max(0.0, sum(beyond) / len(beyond))) if beyond else math.nan


def _claimed(profile: Profile) -> list[PointEvidence]:
    """The points that a range claims: by machine speed where these are known, else over all."""
    found = []
    for point in profile.points:
        inside = profile.bytes_low <= point.bytes <= profile.bytes_high
        if inside and point.speed == ALL and point.verdict is Verdict.FASTER:
            here = [p for p in profile.points if p.bytes == point.bytes and p.speed != ALL]
            known = [p for p in here if p.gain.pairs >= FEWEST_PAIRS]
            found += known or [point]
    return found


def agreement(checks: Sequence[Check]) -> tuple[int, int]:
    """How many pairs of seeds agree, of those that claim the same size at the same speed."""
    agree = of = 0
    for one, other in combinations(checks, 2):
        if one.seed != other.seed and (one.bytes, one.speed) == (other.bytes, other.speed):
            of += 1
            agree += one.low <= other.high and other.low <= one.high
    return agree, of


def found_by_search(checks: Sequence[Check]) -> bool:
    """Whether a campaign found what there is to find at 256 KiB or 1 MiB."""
    return any(c.bytes in _WANTED_SIZES and c.ratio >= _WANTED_GAIN for c in checks)


def show(checks: Sequence[Check]) -> str:
    """A table."""
    rows = [_row(c) for c in checks]
    header = ("seed", "size", "speed", "stated", "interval", "rerun", "pairs", "")
    return text.format_table(header, rows, right="seed,size,stated,rerun,pairs")


def _row(c: Check) -> tuple[str, ...]:
    return (
        str(c.seed),
        text.format_size(c.bytes),
        c.speed,
        f"{c.ratio:.2f}",
        f"[{c.low:.2f}, {c.high:.2f}]",
        "-" if c.rerun is None else f"{c.rerun:.2f}",
        str(c.pairs),
        {True: "holds", False: "OUTSIDE", None: "not seen again"}[c.holds],
    )


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--search", help="wall time; the default's where not given")
    parser.add_argument("--ablate")
    parser.add_argument("--confirm")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    everything: list[Check] = []
    successes = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, arguments.seeds + 1):
            budget = (arguments.search, arguments.ablate, arguments.confirm)
            plan, report = run_campaign(seed, Path(folder), budget)
            checks = check(seed, plan, report, arguments.pairs)
            successes += found_by_search(checks)
            everything += checks
            print(show(checks) if checks else f"seed {seed}: nothing claimed")
            for profile in report.profiles:
                print(f"  {profile.name}: {profile.configuration}", flush=True)
    rerun_points = [c for c in everything if c.holds is not None]
    held = sum(bool(c.holds) for c in rerun_points)
    print(f"\n{successes} of {arguments.seeds} found {_WANTED_GAIN}x at 256 KiB or 1 MiB")
    agree, of = agreement(everything)
    print(f"{agree} of {of} pairs of claims by two seeds agree")
    print(f"sittings differ by {sitting_spread(everything):.3f} of a gain's logarithm")
    print(f"{held} of {len(rerun_points)} claimed points: the rerun is inside the interval")
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps([asdict(c) for c in everything], indent=1) + "\n")


if __name__ == "__main__":
    main()
