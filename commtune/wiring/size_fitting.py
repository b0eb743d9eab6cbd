"""Which sizes a campaign measures whose user named none: as many as the cost of a run allows."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from commtune.campaign.loading import CampaignSpec
from commtune.campaign.workload import default_range
from commtune.db.queries.description import describe_campaign
from commtune.errors import CommtuneError
from commtune.model import DEFAULT, Backend, MpiInstallation, Outcome, RunRequest
from commtune.model.run_costs import RunCost
from commtune.tuner.execution.runner import first_limit
from commtune.wiring.benchmark_setup import prepare_benchmark

#: What measuring may take of a run's wall time.
_SHARE = 0.25
_STEPS = (1, 2, 3)
#: The first run finds cold caches.
_RUNS = 2


def fit_sizes(spec: CampaignSpec, mpi: MpiInstallation, url: str) -> CampaignSpec:
    """The campaign with the sizes to measure, and what is to say of that.

    A campaign that goes on has the sizes that it was begun with. On Slurm nothing is asked before
    the first job: all of the range where a GPU's library takes seconds to start, else the fewest.

    Args:
        url: the database, which may know the campaign.
    """
    workload = spec.plan.workload
    if spec.sizes_named or workload.own is not None:
        return spec
    if begun := _begun_with(url, spec.plan.name):
        return _with_sizes(spec, begun)
    every = default_range(Backend(workload.backend))
    if spec.slurm is not None:
        return _with_sizes(spec, every) if Backend(workload.backend).uses_gpu else spec
    whole = _with_sizes(spec, every)
    try:
        cost = _cost_of_a_run(whole, mpi)
    except CommtuneError:
        return spec  # whoever makes the campaign's runs says why
    if cost is None:
        return spec
    measuring_s = cost.measuring_s + (cost.first_calls_s or 0.0)
    kept = thin_sizes(every, measuring_s, cost.wall_s - measuring_s)
    if kept == every:
        return whole
    # As few there are in the campaign already, and more of them are large.
    sizes = kept if len(kept) > len(workload.sizes) else workload.sizes
    said = (
        f"note: {len(sizes)} sizes are measured: all {len(every)} powers of two would take "
        f"{measuring_s / cost.wall_s:.0%} of a run; the campaign's 'sizes' names others"
    )
    return _with_sizes(spec, sizes).with_remarks([said])


def thin_sizes(every: tuple[int, ...], measuring_s: float, rest_s: float) -> tuple[int, ...]:
    """All of some sizes, every second or every third: as many as take a quarter of a run.

    From the largest down, where most is to gain; the smallest stays in any case.

    Args:
        measuring_s, rest_s: seconds of a run that measures all of them, and those beside it.
    """
    allowed_s = rest_s * _SHARE / (1 - _SHARE)
    for step in _STEPS:
        kept = tuple(sorted({every[0], *every[::-step]}))
        if measuring_s * len(kept) / len(every) <= allowed_s:
            break
    return kept


def _with_sizes(spec: CampaignSpec, sizes: Sequence[int]) -> CampaignSpec:
    workload = replace(spec.plan.workload, sizes=tuple(sizes))
    return replace(spec, plan=replace(spec.plan, workload=workload))


def _begun_with(url: str, name: str) -> Sequence[int]:
    """The sizes of the stored campaign of this name; none where there is no such campaign."""
    try:
        stored = describe_campaign(url, name)
    except CommtuneError:
        return ()  # whoever opens the database next is told
    return () if stored.simulated else stored.what.get("workload", {}).get("sizes", ())


def _cost_of_a_run(spec: CampaignSpec, mpi: MpiInstallation) -> RunCost | None:
    """What a run of the default costs; ``None`` where it fails."""
    plan, found = spec.plan, []
    limit_s = first_limit(plan.workload, plan.timing)
    with tempfile.TemporaryDirectory(prefix="commtune-") as folder:
        benchmark = prepare_benchmark(
            mpi, plan.space.pinned, (), plan.workload, Path(folder), spec.protected_variables
        )
        for _ in range(_RUNS):
            request = RunRequest(uuid.uuid4().hex, DEFAULT, plan.workload, plan.timing)
            result = benchmark.measure(request, limit_s)
            if result.outcome is Outcome.OK and (cost := RunCost.of(result)) is not None:
                found.append(cost)
    return min(found, key=lambda cost: cost.wall_s, default=None)
