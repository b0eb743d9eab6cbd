"""Chooses how a campaign times operations, if its user named no way.

Operations of NCCL and RCCL can be timed one by one, in batches and as graphs. Differences between
launches of the default hide speedups, so the campaign uses the way with the smallest ones.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from commtune.campaign.loading import CampaignSpec
from commtune.campaign.timing import DEFAULT_BATCH, TimingChoice, check_timing
from commtune.errors import InvalidKey
from commtune.formatting import format_percent
from commtune.model import BATCHED, Outcome, RunResult, Timing

#: Launches of the default in each way.
_LAUNCHES = 4
#: Two standard deviations of so many launches have a smaller ratio by chance in 5 % (F test).
_CLEARLY = 1 / 3.05
#: Operations of a batch: the largest of these with which a run takes at most twice as long.
_BATCHES = (100, 50, DEFAULT_BATCH)
#: The share of the search's time that the choice may take.
_MOST_OF_SEARCH = 0.25


def lacks_timing(spec: CampaignSpec) -> bool:
    """Whether a campaign on this machine names no way of timing, and has a choice."""
    if spec.timing_named or spec.job_request is not None or spec.plan.workload.own is not None:
        return False
    try:
        check_timing(_list_ways(spec.plan.timing, 1)[-1], spec.plan.workload, is_counted=True)
    except InvalidKey:
        return False
    return True


def choose_timing(
    spec: CampaignSpec,
    usual: RunResult,
    search_s: float,
    measure: Callable[[Timing], RunResult],
    say: Callable[[str], None] = lambda _: None,
) -> tuple[CampaignSpec, list[RunResult]]:
    """Returns the campaign with the way of timing in which launches of the default differ least.

    If that is unclear, the timing stays as it is. Also returns the launches in that way.

    Args:
        usual: a good run of the default, with the plan's timing.
        search_s: wall seconds of the search.
        measure: runs the default with a timing.
        say: tells a person how long that takes.
    """
    one_by_one = spec.plan.timing
    most = _most_operations(one_by_one, usual)
    batch = next((count for count in _BATCHES if count <= most), 0)
    if not batch:
        return _keep_timing(spec, f"batches of {DEFAULT_BATCH} would take longer than a run"), []
    ways = _list_ways(one_by_one, batch)
    launches_s = _LAUNCHES * usual.wall_s * (len(ways) + (len(ways) - 1) * batch / most)
    if launches_s > _MOST_OF_SEARCH * search_s:
        why = f"{search_s:g} s of search are too few to try other ways"
        return _keep_timing(spec, f"{why} with {_LAUNCHES} launches each"), []
    say(
        f"{_LAUNCHES * len(ways)} launches of the default choose how operations are timed: about "
        f"{launches_s:.0f} s"
    )
    made: dict[Timing, list[RunResult]] = {way: [] for way in ways}
    for _ in range(_LAUNCHES):
        for way, runs in made.items():
            if _are_good(runs):
                runs.append(measure(way))
    spent_s = math.ceil(math.fsum(run.wall_s for runs in made.values() for run in runs))
    spreads = {way: find_spread(runs) for way, runs in made.items() if _are_good(runs)}
    failed = {way: runs[-1].outcome for way, runs in made.items() if not _are_good(runs)}
    if one_by_one in failed:
        why = f"a run of the default ended as {failed[one_by_one]}"
        return _keep_timing(spec, why, spent_s), []
    best = min(spreads, key=spreads.__getitem__)
    if spreads[best] > _CLEARLY * spreads[one_by_one]:
        best = one_by_one
    choice = TimingChoice(_explain_choice(best, one_by_one, spreads, failed), spent_s)
    return with_choice(spec, best, choice), made[best]


def with_choice(spec: CampaignSpec, timing: Timing, choice: TimingChoice) -> CampaignSpec:
    """Returns the campaign with the chosen timing, and a remark that explains it."""
    spec = replace(spec.with_plan(timing=timing), timing_choice=choice)
    return spec.with_remarks([f"note: {choice.said}"])


def find_spread(runs: Sequence[RunResult]) -> float:
    """Returns the standard deviation of the logarithms of runs' times, as a median over sizes."""
    by_size: dict[int, list[float]] = {}
    for run in runs:
        for measured in run.measurements:
            by_size.setdefault(measured.bytes, []).append(math.log(measured.median_s))
    return statistics.median(statistics.stdev(logs) for logs in by_size.values())


def _list_ways(one_by_one: Timing, batch: int) -> tuple[Timing, ...]:
    batched = replace(one_by_one, mode=BATCHED, operations=batch)
    return one_by_one, batched, replace(batched, graph=True)


def _most_operations(timing: Timing, usual: RunResult) -> float:
    """Returns the operations of a batch with which measuring takes as long as a run without."""
    samples = timing.warmup + timing.min_samples
    once_s = math.fsum(measured.median_s for measured in usual.measurements)
    return usual.wall_s / (samples * once_s)


def _are_good(runs: Sequence[RunResult]) -> bool:
    return all(run.outcome is Outcome.OK for run in runs)


def _keep_timing(spec: CampaignSpec, why: str, spent_s: float = 0.0) -> CampaignSpec:
    said = f"operations are timed one by one: {why}"
    return with_choice(spec, spec.plan.timing, TimingChoice(said, spent_s))


def _explain_choice(
    best: Timing,
    one_by_one: Timing,
    spreads: Mapping[Timing, float],
    failed: Mapping[Timing, Outcome],
) -> str:
    differ = {way: f"by {format_percent(spread)}" for way, spread in spreads.items()}
    others = [f"{_describe_timing(way)} {differ[way]}" for way in spreads if way != best]
    others += [
        f"{_describe_timing(way)}, runs end as {outcome}" for way, outcome in failed.items()
    ]
    said = (
        f"operations are timed {_describe_timing(best)}: so, {_LAUNCHES} launches of the default "
        f"differ {differ[best]}; {'; '.join(others)}"
    )
    if best == one_by_one and len(spreads) > 1:
        said += "; another way is taken where they differ by a third as much or less"
    return said


def _describe_timing(timing: Timing) -> str:
    return timing.said or "one by one"
