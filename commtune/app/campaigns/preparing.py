"""Prepares campaigns from their file: fits them to this machine, and to what is known."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from commtune.app.campaigns.first_proposals import find_proposals
from commtune.campaign.loading import CampaignSpec
from commtune.errors import UserError
from commtune.model import MpiInstallation
from commtune.tuner.search.strategies import check_strategy
from commtune.wiring.benchmark_setup import find_named_mpi
from commtune.wiring.cost_fitting import fit_to_cost
from commtune.wiring.library_versions import begun_with
from commtune.wiring.space_fitting import fit_campaign


def prepare_campaign(
    spec: CampaignSpec, url: str, say: Callable[[str], None] = lambda _: None
) -> tuple[CampaignSpec, MpiInstallation]:
    """Returns a campaign with its space and sizes fitted to this machine, and its MPI.

    Args:
        url: the database, which may have the campaign, and the space that it began with.
        say: called with messages about slow steps.

    Raises:
        CampaignError: the campaign is invalid; with the line.
    """
    # Checked first, before anything is built or measured.
    check_strategy_of(spec)
    try_earlier_best = find_proposals(spec, url)
    try:
        mpi = find_named_mpi(spec.mpi, spec.plan.workload)
    except UserError as error:
        if spec.file is None:
            raise
        raise spec.error_at("mpi", f"mpi: {error.message}", error.hint) from error
    spec = fit_campaign(spec, mpi, partial(begun_with, url, spec.plan.name))
    spec = fit_to_cost(spec, mpi, url, say)
    spec = try_earlier_best(spec)
    return spec.with_plan(looks_between=spec.plan.workload.takes_any_size), mpi


def check_strategy_of(spec: CampaignSpec) -> None:
    """Raises a CampaignError if the search strategy that a campaign names doesn't exist."""
    try:
        check_strategy(spec.plan.strategy)
    except UserError as error:
        raise spec.error_at("strategy", error.message, error.hint) from error
