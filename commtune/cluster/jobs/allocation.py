"""The allocation that the controller itself runs in: its nodes, and how long it lasts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from commtune.cluster.slurm.placement import (
    XNAME_FILE,
    Topology,
    ask_places,
    expand_hosts,
    find_distance,
    read_places,
)
from commtune.cluster.slurm.queries import SlurmFault, ask_slurm, read_time
from commtune.errors import AllocationOver, EnvironmentFault

#: Seconds before the end that are for storing and for ending cleanly.
MARGIN_S = 40.0


@dataclass(frozen=True)
class Allocation:
    """A job in which the controller runs.

    Attributes:
        number: Slurm's, of the job.
        nodes: their names.
        began_at, ends_at: seconds since 1970; ``ends_at`` is ``None`` where there is no limit.
    """

    number: str
    nodes: tuple[str, ...]
    began_at: float
    ends_at: float | None

    def check_time(self, wanted_s: float, now: float) -> None:
        """Ends the campaign's sitting if so many seconds don't fit any more.

        Raises:
            AllocationOver: they don't.
        """
        if self.ends_at is not None and now + wanted_s + MARGIN_S > self.ends_at:
            raise AllocationOver(f"the time of job {self.number} is nearly over")

    def trouble(self, environment: Mapping[str, str]) -> SlurmFault | None:
        """Why Slurm gives no answer now; ``None`` if it does."""
        try:
            ask_slurm(["squeue", "--noheader", f"--jobs={self.number}"], environment, 60.0)
        except SlurmFault as fault:
            return fault
        return None

    def hours(self, now: float) -> float:
        """Node-hours so far."""
        return len(self.nodes) * max(0.0, now - self.began_at) / 3600

    def distance(self, topology: Topology, *, switch_is_group: bool = False) -> str:
        """How far apart its nodes stand, in the words of ``placement.Distance``."""
        return str(find_distance(topology.of(self.nodes), switch_is_group=switch_is_group))


def this_allocation(
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
        asked = _times_by_queue(number)
        began, ends = began or asked[0], ends or asked[1]
    return Allocation(number, nodes, began or clock(), ends)


def _times_by_queue(number: str) -> tuple[float | None, float | None]:
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
        return read_places(ask_slurm(ask_places(len(allocation.nodes)), dict(os.environ), 60.0))
    except SlurmFault:
        return known


def end_steps(allocation: Allocation, environment: Mapping[str, str]) -> None:
    """Ends all steps of the allocation but the batch script: an srun that was killed leaves them.

    Raises:
        SlurmFault: Slurm gives no answer.
    """
    question = ["squeue", "--noheader", "--steps", "--format=%i", f"--jobs={allocation.number}"]
    steps = _numbered(ask_slurm(question, environment, 60.0).split())
    if steps:
        ask_slurm(["scancel", *steps], environment, 60.0)


def _numbered(steps: Sequence[str]) -> list[str]:
    return [step for step in steps if step.rpartition(".")[2].isdigit()]
