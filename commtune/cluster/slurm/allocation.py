"""The allocation that the controller itself runs in, as Slurm's variables describe it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from commtune.cluster.placement import Topology, expand_hosts
from commtune.cluster.scheduler import Allocation
from commtune.cluster.slurm.answers import read_time
from commtune.cluster.slurm.client import ask_slurm
from commtune.cluster.slurm.errors import SlurmFault
from commtune.cluster.slurm.topology import XNAME_FILE, place_command, read_places
from commtune.errors import EnvironmentFault


def find_allocation(
    environment: Mapping[str, str], clock: Callable[[], float]
) -> Allocation | None:
    """The allocation that we run in; ``None`` where we run in none.

    Raises:
        EnvironmentFault: Slurm's own variables can't be understood.
    """
    number = environment.get("SLURM_JOB_ID", "")
    if not number:
        return None
    nodes = expand_hosts(environment.get("SLURM_JOB_NODELIST", ""))
    if not nodes:
        raise EnvironmentFault(
            "SLURM_JOB_ID is set and SLURM_JOB_NODELIST is not",
            hint="start from a login shell, or in an allocation as Slurm made it",
        )
    began = read_time(environment.get("SLURM_JOB_START_TIME", ""))
    ends = read_time(environment.get("SLURM_JOB_END_TIME", ""))
    if began is None or ends is None:
        asked = _ask_times(number)
        began, ends = began or asked[0], ends or asked[1]
    return Allocation(number, nodes, began or clock(), ends)


def _ask_times(number: str) -> tuple[float | None, float | None]:
    """When a job began and will be over, for an older Slurm, which doesn't tell the job itself."""
    question = ["squeue", "--noheader", "--format=%S %e", f"--jobs={number}"]
    try:
        began, _, ends = ask_slurm(question, dict(os.environ), 60.0).partition(" ")
    except SlurmFault:
        return None, None
    return read_time(began), read_time(ends)


def topology_of(allocation: Allocation, known: Topology) -> Topology:
    """Where the allocation's nodes stand: as the site says, or else as they know themselves.

    Args:
        known: what Slurm's own description of the network says.
    """
    pattern = os.environ.get("SLURM_TOPOLOGY_ADDR_PATTERN", "")
    if known.positions or not ("." in pattern or Path(XNAME_FILE).exists()):
        return known
    try:
        question = place_command(len(allocation.nodes))
        return read_places(ask_slurm(question, dict(os.environ), 60.0))
    except SlurmFault:
        return known
