"""Campaign files as commands take them."""

from __future__ import annotations

import sys
from pathlib import Path

from commtune import wiring
from commtune.campaign.file import CampaignSpec, load_campaign
from commtune.db.connection.location import database_url
from commtune.errors import CampaignError, UserError
from commtune.model import MpiInstallation
from commtune.wiring.on_slurm import OnSlurm


def load_with_mpi(file: Path, db: str | None) -> tuple[CampaignSpec, MpiInstallation]:
    """A campaign file, its space cut to what this machine has, and the MPI that it means.

    Args:
        db: the database that the campaign may be in already.

    Raises:
        CampaignError: with the line of what is wrong.
    """
    spec = load_campaign(file)
    try:
        mpi = wiring.find_named_mpi(spec.mpi, spec.plan.workload)
    except UserError as error:
        raise CampaignError(
            f"mpi: {error.message}", file=file, line=spec.mpi_line, hint=error.hint
        ) from error
    return fit_to_stored(spec, mpi, db), mpi


def fit_to_stored(spec: CampaignSpec, mpi: MpiInstallation, db: str | None) -> CampaignSpec:
    """As ``wiring.fitted``, for a campaign that a database may have already."""
    return wiring.fit_campaign(
        spec, mpi, lambda: wiring.begun_with(database_url(db), spec.plan.name)
    )


def on_slurm(file: Path, db: str | None) -> OnSlurm:
    """A campaign file's campaign on Slurm; its benchmark is built if it wasn't.

    Raises:
        CampaignError: the file is wrong, or says nothing of Slurm.
    """
    spec, mpi = load_with_mpi(file, db)
    for remark in spec.remarks:
        print(remark)
    on = wiring.slurm_campaign(spec, mpi, print)
    if hint := wiring.system_hint(on):
        print(hint, file=sys.stderr)
    return on
