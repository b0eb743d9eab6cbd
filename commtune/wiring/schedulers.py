"""Chooses the adapters for Slurm or PBS."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from commtune.cluster.pbs.client import MpiLauncher, PbsScheduler
from commtune.cluster.placement import Topology
from commtune.cluster.scheduler import (
    KEY_VARIABLE,
    Allocation,
    Scheduler,
    SchedulerFault,
    Site,
    StepLauncher,
)
from commtune.cluster.slurm.allocation import Srun, find_allocation, topology_of
from commtune.cluster.slurm.client import SlurmScheduler, clean_environment
from commtune.cluster.slurm.shared_answer import SharedAnswer
from commtune.cluster.slurm.site import describe_site as describe_slurm
from commtune.errors import MissingComponent
from commtune.model import JobScheduler

#: Hints for a campaign in which no run works.
LOOK_AT = {
    JobScheduler.SLURM: "look at 'slurm:' in the campaign file: 'mpi' (pmi2 for MPICH, pmix for "
    "Open MPI; 'srun --mpi=list'), 'modules', 'before'\n"
    "'commtune submit --dry-run --block FILE' shows the script of a job",
    JobScheduler.PBS: "look at 'pbs:' in the campaign file: 'launcher_options' (how the MPI "
    "starts processes on other nodes), 'modules', 'before'\n"
    "'commtune submit --dry-run --block FILE' shows the script of a job",
}


def scheduler_of(
    kind: JobScheduler, *, keeps_accounts: bool = True, timeout_s: float = 60.0
) -> Scheduler:
    """Returns the scheduler, for commands from here that may take ``timeout_s`` seconds."""
    if kind is JobScheduler.PBS:
        return PbsScheduler(timeout_s=timeout_s)
    return SlurmScheduler(
        clean_environment(os.environ), keeps_accounts=keeps_accounts, timeout_s=timeout_s
    )


def with_shared_answers(
    scheduler: Scheduler, folder: Path, cluster: str, period_s: float
) -> Scheduler:
    """Returns the scheduler; with Slurm, all controllers of a user share its answers.

    Args:
        folder: where campaigns share Slurm's answers.
        period_s: seconds for which an answer is valid.
    """
    if isinstance(scheduler, SlurmScheduler):
        queue, accounts = (
            SharedAnswer.of(program, folder, cluster, period_s) for program in ("squeue", "sacct")
        )
        return replace(scheduler, shared_queue=queue, shared_accounts=accounts)
    return scheduler


def failed_nodes_of(scheduler: Scheduler) -> Callable[[Sequence[str]], Collection[str]]:
    """Returns a function that asks PBS for failed nodes; none with Slurm, which ends such jobs."""

    def ask(nodes: Sequence[str]) -> Collection[str]:
        try:
            return scheduler.failed_nodes(nodes)
        except SchedulerFault:
            return ()

    return ask if isinstance(scheduler, PbsScheduler) else lambda _: ()


def launcher_of(kind: JobScheduler) -> StepLauncher:
    return MpiLauncher() if kind is JobScheduler.PBS else Srun(clean_environment(os.environ))


def allocation_here(kind: JobScheduler) -> Allocation | None:
    """Returns the job that we run in, if any; with PBS, only a job of ``commtune submit``."""
    if kind is JobScheduler.SLURM:
        return find_allocation(os.environ, time.time)
    if KEY_VARIABLE not in os.environ:
        return None
    return PbsScheduler().find_allocation(os.environ.get("PBS_JOBID", ""))


def topology_here(kind: JobScheduler, allocation: Allocation, known: Topology) -> Topology:
    """Returns the positions of our job's nodes, as far as they are known."""
    return topology_of(allocation, known) if kind is JobScheduler.SLURM else known


def describe_site(kind: JobScheduler, folder: Path) -> Site:
    """Describes the site by its scheduler.

    Args:
        folder: where campaigns share Slurm's answers.

    Raises:
        MissingComponent: the scheduler is not here.
        SchedulerFault: it gives no answer.
    """
    is_slurm = kind is JobScheduler.SLURM
    try:
        if is_slurm:
            return describe_slurm(clean_environment(os.environ), folder)
        return PbsScheduler().describe_site()
    except MissingComponent as error:
        raise MissingComponent(
            f"the campaign file asks for {kind.label}, and there is no {kind.label} here "
            f"(no {'scontrol' if is_slurm else 'qstat'})",
            hint=f"start it on a login node; or remove '{kind}:' to measure on this machine",
        ) from error
