"""The adapters of each scheduler that jobs may go to."""

from __future__ import annotations

import os
from collections.abc import Mapping

from commtune.cluster.pbs.client import PbsScheduler
from commtune.cluster.pbs.launching import MpiLauncher
from commtune.cluster.scheduler import Scheduler, Site, StepLauncher
from commtune.cluster.slurm.allocation import Srun
from commtune.cluster.slurm.client import SlurmScheduler, clean_environment
from commtune.cluster.slurm.site import describe_site as describe_slurm
from commtune.errors import MissingComponent
from commtune.model import JobScheduler


def scheduler_of(
    kind: JobScheduler, *, keeps_accounts: bool = True, timeout_s: float = 60.0
) -> Scheduler:
    """The scheduler, asked from where we are.

    Args:
        keeps_accounts: whether Slurm has accounts to ask.
        timeout_s: seconds that a call may take.
    """
    if kind is JobScheduler.PBS:
        return PbsScheduler(clean_environment(os.environ), timeout_s=timeout_s)
    return SlurmScheduler(
        clean_environment(os.environ), keeps_accounts=keeps_accounts, timeout_s=timeout_s
    )


def launcher_of(kind: JobScheduler) -> StepLauncher:
    return MpiLauncher() if kind is JobScheduler.PBS else Srun(clean_environment(os.environ))


def describe_site(kind: JobScheduler, environment: Mapping[str, str]) -> Site:
    """What the scheduler says of where we are.

    Raises:
        MissingComponent: it is not here.
        SchedulerFault: it gives no answer.
    """
    if kind is JobScheduler.SLURM:
        return describe_slurm(environment)
    try:
        return PbsScheduler(environment).describe_site()
    except MissingComponent as error:
        raise MissingComponent(
            "the campaign file asks for PBS, and there is no PBS here (no qstat)",
            hint="start it on a login node; or remove 'pbs:' to measure on this machine",
        ) from error
