"""Describes the allocation in which a campaign runs: its length, command and variables."""

from __future__ import annotations

import sys
from pathlib import Path

from commtune.campaign.loading import CampaignSpec
from commtune.cluster.jobs.aggressor import request_with_aggressor
from commtune.cluster.jobs.scripts import AllocationScript
from commtune.errors import UserError
from commtune.wiring.job_handover import COPIES, guards_here, hand_over

#: The default length of an allocation: the campaign's time, times the first, plus the second (s).
_ROOM, _ROOM_S = 1.2, 300.0
#: The most by default, seconds.
_LONGEST_S = 12 * 3600.0


def allocation_script(
    spec: CampaignSpec, folder: Path, database: str, file: Path | None = None
) -> AllocationScript:
    """Returns the script of a campaign's allocation; builds nothing and asks no scheduler.

    Args:
        file: where the campaign's file will be, if it was not read from one.

    Raises:
        UserError: there is no file, or it has no section for Slurm or PBS.
    """
    file = file or spec.file
    if file is None or spec.job_request is None:
        raise UserError("an allocation needs a campaign file", hint="see 'commtune init'")
    whole_s = spec.plan.budget.whole_s
    return AllocationScript(
        campaign=spec.plan.name,
        system=spec.system,
        job_request=request_with_aggressor(spec.job_request, spec.plan.aggressor),
        command=(sys.executable, "-m", "commtune.cli", "tune", str(file.resolve())),
        folder=folder / "jobs",
        time_s=spec.job_request.time_s or min(_LONGEST_S, _ROOM * whole_s + _ROOM_S),
        database=database,
        environment=hand_over(
            guards_here(spec.protected_variables), spec.versions, folder / COPIES
        ),
    )
