"""Chooses the sizes, timing and budget that a user didn't name, from the time that runs take.

Operations of NCCL and RCCL can be timed one by one, in batches and as graphs. Differences between
launches of the default hide speedups, so the campaign uses the mode with the smallest ones.
"""

from __future__ import annotations

import math
import statistics
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace

from commtune.campaign.loading import CampaignSpec
from commtune.campaign.plan import BUDGETS, Budget
from commtune.campaign.timing import DEFAULT_BATCH, MODE_KEYS, TimingChoice, check_timing
from commtune.campaign.workload import default_range
from commtune.db.records import CampaignDescription
from commtune.errors import CommtuneError, InvalidKey
from commtune.formatting import format_percent
from commtune.model import (
    BATCHED,
    DEFAULT,
    Backend,
    MpiInstallation,
    Outcome,
    RunRequest,
    RunResult,
    Timing,
)
from commtune.model.run_costs import RunCost
from commtune.tuner.execution.time_limits import first_limit, time_limit
from commtune.wiring.benchmark_setup import unstored_benchmark
from commtune.wiring.library_versions import begun_campaign

#: The share of a run's wall time that measuring may take.
_SHARE = 0.25
_STEPS = (1, 2, 3)
#: Two, as the first run finds cold caches.
_RUNS = 2
#: Runs in the default budget. Half are for the search: 60 configurations, the default's runs, and
#: re-runs of the best; the rest includes enough for seven pairs of each of three candidates.
_RUNS_OF_A_CAMPAIGN = 172
#: The largest default budget in seconds, and the unit to which it is rounded up.
_MOST_S, _ROUND_S = 1800.0, 10.0


def fit_to_cost(
    spec: CampaignSpec,
    mpi: MpiInstallation,
    url: str,
    say: Callable[[str], None] = lambda _: None,
) -> CampaignSpec:
    """Returns the campaign with sizes, timing and budget where its user named none.

    A continued campaign keeps those that it began with. With a scheduler nothing is measured
    before the first job: GPU backends, whose libraries take seconds to start, get all sizes of the
    default range, others keep the fewest. ``url`` is that of the database.
    """
    workload = spec.plan.workload
    lacks_sizes = not spec.sizes_named and workload.own is None
    if not lacks_sizes and spec.budget_named and not _lacks_timing(spec):
        return spec
    if begun := begun_campaign(url, spec.plan.name):
        return _as_begun(spec, begun, lacks_sizes=lacks_sizes)
    every = default_range(Backend(workload.backend)) if lacks_sizes else workload.sizes
    whole = _with_sizes(spec, every)
    if spec.job_request is not None:
        return whole if Backend(workload.backend).uses_gpu else spec
    try:
        with _runs_of_the_default(whole, mpi) as measure:
            return _fit(spec, whole, measure, say, lacks_sizes=lacks_sizes)
    except CommtuneError:
        return spec  # the campaign's own runs will report the error


_Measure = Callable[[CampaignSpec], RunResult]


def _fit(
    spec: CampaignSpec,
    whole: CampaignSpec,
    measure: _Measure,
    say: Callable[[str], None],
    *,
    lacks_sizes: bool,
) -> CampaignSpec:
    runs = [run for _ in range(_RUNS) if (run := measure(whole)).outcome is Outcome.OK]
    if not runs:
        return spec
    run_s = min(run.wall_s for run in runs)
    costs = [cost for run in runs if (cost := RunCost.of(run)) is not None]
    if lacks_sizes and costs:
        every = whole.plan.workload.sizes
        cost = min(costs, key=lambda cost: cost.wall_s)
        measuring_s = cost.measuring_s + (cost.first_calls_s or 0.0)
        spec = _fit_sizes(spec, every, measuring_s, cost.wall_s)
        run_s -= measuring_s * (1 - len(spec.plan.workload.sizes) / len(every))
    if _lacks_timing(spec):
        sized = spec
        search_s = (spec.plan.budget if spec.budget_named else fit_budget(run_s)).search_s
        # The fastest run, as it would be with the campaign's sizes alone.
        fastest, sizes = min(runs, key=lambda run: run.wall_s), spec.plan.workload.sizes
        kept = tuple(one for one in fastest.measurements if one.bytes in sizes)
        usual = replace(fastest, wall_s=run_s, measurements=kept)
        spec, launches = _choose_timing(
            spec, usual, search_s, lambda timing: measure(sized.with_plan(timing=timing)), say
        )
        run_s = min((run.wall_s for run in launches), default=run_s)
    return _less_choice(spec if spec.budget_named else spec.with_plan(budget=fit_budget(run_s)))


def _fit_sizes(
    spec: CampaignSpec, every: tuple[int, ...], measuring_s: float, wall_s: float
) -> CampaignSpec:
    kept = _thin_sizes(every, measuring_s, wall_s - measuring_s)
    if kept == every:
        return _with_sizes(spec, every)
    # The campaign's own sizes are at least as many, and more of them are large.
    named = spec.plan.workload.sizes
    sizes = kept if len(kept) > len(named) else named
    said = (
        f"note: {len(sizes)} of {len(every)} powers of two are measured, to keep runs short; "
        "'sizes' sets others"
    )
    return _with_sizes(spec, sizes).with_remarks([said])


def fit_budget(run_s: float) -> Budget:
    """Returns the budget of a campaign whose user named none; ``run_s``: wall seconds of a run."""
    whole_s = _ROUND_S * math.ceil(_RUNS_OF_A_CAMPAIGN * run_s / _ROUND_S)
    usual = Budget()
    return usual.scale_to(min(_MOST_S, max(usual.whole_s, whole_s)))


def _thin_sizes(every: tuple[int, ...], measuring_s: float, rest_s: float) -> tuple[int, ...]:
    """Keeps all sizes, every second or every third, so that they take a quarter of a run at most.

    Counts from the largest, where there is most to gain; the smallest is always kept.

    Args:
        every: sizes, ascending.
        measuring_s, rest_s: seconds of a run to measure all of them, and for everything else.
    """
    allowed_s = rest_s * _SHARE / (1 - _SHARE)
    for step in _STEPS:
        kept = tuple(sorted({every[0], *every[::-step]}))
        if measuring_s * len(kept) / len(every) <= allowed_s:
            break
    return kept


def _with_sizes(spec: CampaignSpec, sizes: Sequence[int]) -> CampaignSpec:
    return spec.with_plan(workload=replace(spec.plan.workload, sizes=tuple(sizes)))


def _less_choice(spec: CampaignSpec) -> CampaignSpec:
    """Subtracts the time that choosing the timing took from the budget of the search."""
    if spec.timing_choice is None:
        return spec
    budget = spec.plan.budget
    left_s = max(0.0, budget.search_s - spec.timing_choice.spent_s)
    return spec.with_plan(budget=replace(budget, search_s=left_s))


def _as_begun(
    spec: CampaignSpec, begun: CampaignDescription, *, lacks_sizes: bool
) -> CampaignSpec:
    sizes = begun.what.get("workload", {}).get("sizes")
    if lacks_sizes and sizes:
        spec = _with_sizes(spec, sizes)
    if _lacks_timing(spec):
        named = begun.what.get("timing", {}).items()
        mode = {key: word for key, word in named if key in MODE_KEYS}
        spec = spec.with_plan(timing=Timing(**{**asdict(spec.plan.timing), **mode}))
        # There is none if the timing was not chosen, or was named meanwhile.
        if chosen := begun.settings.get("timing_choice"):
            spec = _with_choice(spec, spec.plan.timing, TimingChoice(**chosen))
    budget = begun.settings.get("budget", {})
    if spec.budget_named or not budget.keys() >= set(BUDGETS.values()):
        return _less_choice(spec)
    return spec.with_plan(budget=Budget(**budget))


@contextmanager
def _runs_of_the_default(spec: CampaignSpec, mpi: MpiInstallation) -> Iterator[_Measure]:
    """Yields a function that runs the default with a campaign's sizes and timing."""
    plan = spec.plan
    limit_s, walls_s = first_limit(plan.workload, plan.timing), list[float]()
    pinned, guards = plan.space.pinned, spec.protected_variables
    with unstored_benchmark(mpi, pinned, plan.workload, guards) as benchmark:

        def measure(given: CampaignSpec) -> RunResult:
            name = uuid.uuid4().hex
            request = RunRequest(name, DEFAULT, given.plan.workload, given.plan.timing)
            run = benchmark.measure(request, time_limit(walls_s, limit_s))
            walls_s.extend([run.wall_s] if run.outcome is Outcome.OK else [])
            return run

        yield measure


#: Launches of the default in each mode.
_LAUNCHES = 4
#: Two standard deviations of so many launches have a smaller ratio by chance in 5 % (F test).
_CLEARLY = 1 / 3.05
#: Operations of a batch: the largest of these with which a run takes at most twice as long.
_BATCHES = (100, 50, DEFAULT_BATCH)
#: The share of the search's time that the choice may take.
_MOST_OF_SEARCH = 0.25


def _lacks_timing(spec: CampaignSpec) -> bool:
    """Whether a campaign on this machine names no timing mode, and has a choice."""
    if spec.timing_named or spec.job_request is not None or spec.plan.workload.own is not None:
        return False
    try:
        check_timing(_list_modes(spec.plan.timing, 1)[-1], spec.plan.workload, is_counted=True)
    except InvalidKey:
        return False
    return True


def _choose_timing(
    spec: CampaignSpec,
    usual: RunResult,
    search_s: float,
    measure: Callable[[Timing], RunResult],
    say: Callable[[str], None] = lambda _: None,
) -> tuple[CampaignSpec, list[RunResult]]:
    """Returns the campaign with the timing mode in which launches of the default differ least.

    If that is unclear, the timing stays as it is. Also returns the launches in that mode.

    Args:
        usual: a good run of the default, with the plan's timing.
        search_s: wall seconds of the search.
        measure: runs the default with a timing.
        say: tells a person how long that takes.
    """
    one_by_one = spec.plan.timing
    samples = one_by_one.warmup + one_by_one.min_samples
    once_s = math.fsum(measured.median_s for measured in usual.measurements)
    # With so many operations in a batch, measuring takes as long as a whole run without.
    most = usual.wall_s / (samples * once_s)
    batch = next((count for count in _BATCHES if count <= most), 0)
    if not batch:
        return _keep_timing(spec, f"batches of {DEFAULT_BATCH} would take longer than a run"), []
    modes = _list_modes(one_by_one, batch)
    launches_s = _LAUNCHES * usual.wall_s * (len(modes) + (len(modes) - 1) * batch / most)
    if launches_s > _MOST_OF_SEARCH * search_s:
        why = f"{search_s:g} s of search are too few to try other modes"
        return _keep_timing(spec, f"{why} with {_LAUNCHES} launches each"), []
    say(
        f"{_LAUNCHES * len(modes)} launches of the default choose how operations are timed: about "
        f"{launches_s:.0f} s"
    )
    made: dict[Timing, list[RunResult]] = {mode: [] for mode in modes}
    for _ in range(_LAUNCHES):
        for mode, runs in made.items():
            if _are_good(runs):
                runs.append(measure(mode))
    spent_s = math.ceil(math.fsum(run.wall_s for runs in made.values() for run in runs))
    spreads = {mode: _find_spread(runs) for mode, runs in made.items() if _are_good(runs)}
    failed = {mode: runs[-1].outcome for mode, runs in made.items() if not _are_good(runs)}
    if one_by_one in failed:
        why = f"a run of the default ended as {failed[one_by_one]}"
        return _keep_timing(spec, why, spent_s), []
    best = min(spreads, key=spreads.__getitem__)
    if spreads[best] > _CLEARLY * spreads[one_by_one]:
        best = one_by_one
    choice = TimingChoice(_explain_choice(best, one_by_one, spreads, failed), spent_s)
    return _with_choice(spec, best, choice), made[best]


def _with_choice(spec: CampaignSpec, timing: Timing, choice: TimingChoice) -> CampaignSpec:
    """Returns the campaign with the chosen timing, and a remark that explains it."""
    spec = replace(spec.with_plan(timing=timing), timing_choice=choice)
    return spec.with_remarks([f"note: {choice.said}"])


def _find_spread(runs: Sequence[RunResult]) -> float:
    """Returns the standard deviation of the logarithms of runs' times, as a median over sizes."""
    by_size: dict[int, list[float]] = {}
    for run in runs:
        for measured in run.measurements:
            by_size.setdefault(measured.bytes, []).append(math.log(measured.median_s))
    return statistics.median(statistics.stdev(logs) for logs in by_size.values())


def _list_modes(one_by_one: Timing, batch: int) -> tuple[Timing, ...]:
    batched = replace(one_by_one, mode=BATCHED, operations=batch)
    return one_by_one, batched, replace(batched, graph=True)


def _are_good(runs: Sequence[RunResult]) -> bool:
    return all(run.outcome is Outcome.OK for run in runs)


def _keep_timing(spec: CampaignSpec, why: str, spent_s: float = 0.0) -> CampaignSpec:
    said = f"operations are timed one by one: {why}"
    return _with_choice(spec, spec.plan.timing, TimingChoice(said, spent_s))


def _explain_choice(
    best: Timing,
    one_by_one: Timing,
    spreads: Mapping[Timing, float],
    failed: Mapping[Timing, Outcome],
) -> str:
    differ = {mode: f"by {format_percent(spread)}" for mode, spread in spreads.items()}
    others = [f"{_describe_timing(mode)} {differ[mode]}" for mode in spreads if mode != best]
    others += [
        f"{_describe_timing(mode)}, runs end as {outcome}" for mode, outcome in failed.items()
    ]
    said = (
        f"operations are timed {_describe_timing(best)}: so, {_LAUNCHES} launches of the default "
        f"differ {differ[best]}; {'; '.join(others)}"
    )
    if best == one_by_one and len(spreads) > 1:
        said += "; another mode is taken where they differ by a third as much or less"
    return said


def _describe_timing(timing: Timing) -> str:
    return timing.said or "one by one"
