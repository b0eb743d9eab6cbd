"""The allocation that the controller itself runs in, as Slurm's variables describe it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from commtune.cluster.placement import Topology, expand_hosts
from commtune.cluster.scheduler import Allocation
from commtune.cluster.slurm import topology
from commtune.cluster.slurm.answers import read_time
from commtune.cluster.slurm.client import ask_slurm
from commtune.cluster.slurm.errors import SlurmFault
from commtune.cluster.slurm.topology import XNAME_FILE, place_command, read_places
from commtune.errors import EnvironmentFault
from commtune.model import Outcome


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


_TIMEOUT_S = 60.0
#: Its words for a step that never came about, or not before its time was over, whatever was to
#: run in it; and for one whose node was lost under it.
_NOT_LAUNCHED = re.compile(
    r"srun: (?:error: )?((?:Unable to (?:confirm allocation|create step)|Task launch for|"
    r"Application launch failed|Slurm job \S+ has expired|"
    r".*step creation (?:temporarily|still) disabled|"
    r".*step creation delayed).*)"
)
_NODE_FAILED = re.compile(r"srun: error: (Node failure on .*)")
#: It ended a step, and a node did not say that it is gone there.
_NO_END = "srun: error: Timed out waiting for job step to complete"
#: Its words for nodes that it lost, or could not reach.
_LOST_NODES = re.compile(r"(?:Node failure on|failed on node) ([^\s:]+)")


@dataclass(frozen=True)
class Srun:
    """Implements ``cluster.scheduler.StepLauncher``."""

    #: What Slurm's programs are called in.
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def judge_failure(
        self, output: str, began: bool, timed_out: bool
    ) -> tuple[Outcome, str] | None:
        """What Slurm did to a run: no configuration can be blamed for that."""
        if said := _NODE_FAILED.search(output):
            return Outcome.NODE_FAILURE, said[1]
        if timed_out and _NO_END in output:
            return Outcome.NODE_FAILURE, "over its time, and a node does not answer"
        if not began and (said := _NOT_LAUNCHED.search(output)):
            return Outcome.NEVER_STARTED, f"Slurm did not start it: {said[1]}"
        return None

    def lost_nodes(self, output: str) -> frozenset[str]:
        """Names of the nodes that srun lost, or could not reach, by its own words."""
        found: set[str] = set()
        for listed in _LOST_NODES.findall(output):
            try:
                found.update(expand_hosts(listed))
            except EnvironmentFault:
                continue
        return frozenset(found)

    def end_steps(self, job: str) -> None:
        """An srun that was killed leaves its steps."""
        question = ["squeue", "--noheader", "--steps", "--format=%i", f"--jobs={job}"]
        listed = ask_slurm(question, self.environment, _TIMEOUT_S).split()
        # The script's own step is called 7.batch.
        steps = [step for step in listed if step.rpartition(".")[2].isdigit()]
        if steps:
            ask_slurm(["scancel", *steps], self.environment, _TIMEOUT_S)

    def place_command(self, nodes: int) -> tuple[str, ...]:
        """The words of a step that says, on each node of a job, where it stands."""
        return topology.place_command(nodes)

    def read_places(self, printed: str) -> Topology:
        """Reads what such a step printed."""
        return topology.read_places(printed)
