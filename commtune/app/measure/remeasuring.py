"""Rebuilds stored campaigns of a scheduler, to measure their profiles again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from commtune.campaign.loading import CampaignSpec, load_campaign
from commtune.campaign.protected_spaces import apply_protected
from commtune.db.records import LIBRARIES, CampaignDescription
from commtune.errors import UserError
from commtune.model import JobScheduler, MpiInstallation
from commtune.paths import is_file
from commtune.wiring import benchmark_setup, job_submission, space_fitting
from commtune.wiring.job_handover import CUT_TO
from commtune.wiring.scheduler_campaign import SchedulerCampaign


def rebuild_scheduler_campaign(
    stored: CampaignDescription, mpi: str | None, say: Callable[[str], None]
) -> SchedulerCampaign | None:
    """Rebuilds a stored campaign on a scheduler from its current file; ``None`` for others.

    It has no limit on node-hours, because further measurements have a time limit of their own.

    Args:
        mpi: the MPI; that of the file by default.

    Raises:
        UserError: the file is missing, or is of another campaign now.
        EnvironmentFault: there is no scheduler here, or it doesn't answer.
    """
    kind = JobScheduler.find_in(stored.what)
    if kind is None:
        return None
    file = Path(stored.settings.get(kind, {}).get("file") or "")
    if not is_file(file):
        raise UserError(
            f"{stored.name} was measured on {kind.label}, and its campaign file, which says how "
            f"jobs are started, is not here: {file}",
            hint="put it back there",
        )
    spec = load_campaign(file)
    if spec.job_request is None or spec.plan.name != stored.name:
        raise UserError(
            f"{file} is no longer the file of campaign {stored.name} on {kind.label}",
            hint=f"give it back 'name: {stored.name}', and what it asked of {kind.label}",
        )
    found = benchmark_setup.find_named_mpi(mpi or spec.mpi, spec.plan.workload)
    spec = _cut_again(spec, found, stored)
    spec = spec.with_plan(budget=replace(spec.plan.budget, node_hours=None))
    return job_submission.prepare_scheduler_campaign(spec, found, say, again=True)


def _cut_again(
    spec: CampaignSpec, mpi: MpiInstallation, stored: CampaignDescription
) -> CampaignSpec:
    """Returns a campaign with its space cut like that of the stored campaign, if it was cut."""
    known = stored.what.get("guards", {}).items()
    spec = apply_protected(spec, {name: value for name, value in known if value is not None})
    is_whole = spec.plan.space.key == stored.what["space"]["content"]
    if is_whole and LIBRARIES not in stored.stack.description:
        return spec
    if str(mpi.flavour) != stored.what["mpi"]["flavour"]:
        return spec  # callers that need the same library check it themselves
    return space_fitting.fit_campaign(spec, mpi, lambda: stored.space.get(CUT_TO), protected={})
