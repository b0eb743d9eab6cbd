"""Describes our own Slurm allocation: its times, its steps, its nodes' places in the network."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from commtune.cluster.placement import Switches, Topology, expand_hosts, expand_readable_hosts
from commtune.cluster.scheduler import Allocation
from commtune.cluster.slurm.client import ask_slurm, try_ask_slurm
from commtune.cluster.slurm.command_output import read_time
from commtune.errors import EnvironmentFault
from commtune.model import Outcome
from commtune.paths import exists

#: The first line of sdiag's output, with slurmctld's time in seconds since 1970.
_SLURMS_TIME = re.compile(r"^sdiag output at .*\((\d{10,11})\)$", re.ASCII | re.MULTILINE)


def find_allocation(
    environment: Mapping[str, str], clock: Callable[[], float]
) -> Allocation | None:
    """Returns the allocation that we run in, if any; an EnvironmentFault if it lacks variables."""
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
    ahead_s = _clock_ahead_s(clock)
    return Allocation(number, nodes, began or clock() - ahead_s, ends, ahead_s)


def _ask_times(number: str) -> tuple[float | None, float | None]:
    """Returns when a job began and will end, for an older Slurm without variables for these."""
    question = ["squeue", "--noheader", "--format=%S %e", f"--jobs={number}"]
    began, _, ends = try_ask_slurm(question, os.environ).partition(" ")
    return read_time(began), read_time(ends)


def _clock_ahead_s(clock: Callable[[], float]) -> float:
    """Returns the seconds that this node's clock is ahead of slurmctld's; 0 if unknown.

    Only sdiag prints slurmctld's time; squeue's time left is by the clock of its own node.
    """
    said = _SLURMS_TIME.search(try_ask_slurm(["sdiag"], os.environ))
    return clock() - float(said[1]) if said else 0.0


def topology_of(allocation: Allocation, known: Topology) -> Topology:
    """Returns the positions of the allocation's nodes: as ``known``, or else by asking them."""
    pattern = os.environ.get("SLURM_TOPOLOGY_ADDR_PATTERN", "")
    if known or not ("." in pattern or exists(Path(_XNAME_FILE))):
        return known
    srun = Srun()
    said = try_ask_slurm(srun.place_command(len(allocation.nodes)), os.environ)
    return srun.read_places(said)


#: Messages of srun for a step that was not created or launched, whatever its program; and for a
#: node that failed during a step.
_NOT_LAUNCHED = re.compile(
    r"srun: (?:error: )?((?:Unable to (?:confirm allocation|create step)|Task launch for|"
    r"Application launch failed|Slurm job \S+ has expired|"
    r".*step creation (?:temporarily|still) disabled|"
    r".*step creation delayed).*)"
)
_NODE_FAILED = re.compile(r"srun: error: (Node failure on .*)")
#: Its message when it ended a step, and a node doesn't confirm that.
_NO_END = "srun: error: Timed out waiting for job step to complete"
#: Its messages with the names of nodes that it lost, or could not reach.
_LOST_NODES = re.compile(r"(?:Node failure on|failed on node) ([^\s:]+)")


@dataclass(frozen=True)
class Srun:
    """srun in a Slurm job; implements ``cluster.scheduler.StepLauncher``."""

    ends_steps: ClassVar[bool] = True

    #: Environment of Slurm's commands.
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def judge_failure(
        self, output: str, began: bool, timed_out: bool
    ) -> tuple[Outcome, str] | None:
        """Returns what Slurm did to a run, for which no configuration is to blame."""
        del timed_out
        if said := _NODE_FAILED.search(output):
            return Outcome.NODE_FAILURE, said[1]
        if _NO_END in output:
            return Outcome.NODE_FAILURE, "a node does not answer, and its ranks may still run"
        if not began and (said := _NOT_LAUNCHED.search(output)):
            return Outcome.NEVER_STARTED, f"Slurm did not start it: {said[1]}"
        return None

    def lost_nodes(self, output: str) -> frozenset[str]:
        lost = (expand_readable_hosts(listed) for listed in _LOST_NODES.findall(output))
        return frozenset(name for names in lost for name in names)

    def steps(self, job: str) -> list[str]:
        question = ["squeue", "--noheader", "--steps", "--format=%i", f"--jobs={job}"]
        listed = ask_slurm(question, self.environment).split()
        # Leaves out the step of the script itself, 7.batch.
        return [step for step in listed if step.rpartition(".")[2].isdigit()]

    def end_steps(self, job: str) -> None:
        """Cancels all numbered steps, such as those that a killed srun leaves."""
        if steps := self.steps(job):
            ask_slurm(["scancel", *steps], self.environment)

    def place_command(self, nodes: int) -> tuple[str, ...]:
        shape = (f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1")
        return ("srun", *shape, "--mpi=none", "--export=ALL", "sh", "-c", _SAY_PLACE)

    def read_places(self, printed: str) -> Topology:
        """Reads lines of a node's name, topology address, address pattern, and xname.

        A dash stands for an unknown one. Nodes without a usable address or xname are left out,
        and so are all other lines.
        """
        found: dict[str, Switches] = {}
        for line in printed.splitlines():
            words = line.split()
            if len(words) == 4:
                node, address, pattern, xname = words
                if above := _switches_by_address(address, pattern) or _switches_by_xname(xname):
                    found[node] = above
        return found


def _switches_by_address(address: str, pattern: str) -> Switches:
    """Reads SLURM_TOPOLOGY_ADDR and SLURM_TOPOLOGY_ADDR_PATTERN of a node.

    For example ``s0.s[4-5].tux1`` with ``switch.switch.node``. Empty if the two don't match.
    """
    kinds = pattern.split(".")
    parts = address.split(".", len(kinds) - 1)
    if kinds[-1] != "node" or len(parts) != len(kinds) or not parts[-1]:
        return ()
    try:
        levels = [frozenset(expand_hosts(part)) for part in parts[:-1]]
    except EnvironmentFault:
        return ()
    return tuple(level for level in levels if level)


_WORD = re.compile(r"(\w+)=(\S+)")


def read_topology(text: str) -> Topology:
    """Reads topology.conf, or what ``scontrol show topology`` prints: switches or blocks.

    Raises:
        EnvironmentFault: a list of nodes or switches can't be read.
    """
    nodes: dict[str, tuple[str, ...]] = {}
    switches: dict[str, tuple[str, ...]] = {}
    for line in text.replace("\\\n", "").splitlines():
        words = {k.lower(): v for k, v in _WORD.findall(line.split("#")[0])}
        name = words.get("switchname") or words.get("blockname")
        if name and "switches" in words:
            switches[name] = expand_hosts(words["switches"])
        elif name and "nodes" in words:
            nodes[name] = expand_hosts(words["nodes"])
    return _topology(nodes, switches)


def _topology(
    nodes: Mapping[str, tuple[str, ...]], switches: Mapping[str, tuple[str, ...]]
) -> Topology:
    parents: dict[str, set[str]] = {}
    for switch, children in switches.items():
        for child in children:
            parents.setdefault(child, set()).add(switch)
    homes: dict[str, set[str]] = {}
    for switch, names in nodes.items():
        for node in names:
            homes.setdefault(node, set()).add(switch)
    # Computed once for all nodes of a switch, as a large machine has far fewer switches.
    above = {frozenset(home): _levels(frozenset(home), parents) for home in homes.values()}
    return {node: above[frozenset(home)] for node, home in homes.items()}


def _levels(own: frozenset[str], parents: Mapping[str, Iterable[str]]) -> Switches:
    levels: list[frozenset[str]] = []
    seen: frozenset[str] = frozenset()
    level = own
    while level:
        levels.insert(0, level)
        seen |= level
        # Without switches seen before: a wrong file may contain a cycle.
        level = frozenset(p for switch in level for p in parents.get(switch, ())) - seen
    return tuple(levels)


#: Cray EX machines keep a node's xname in a file on it.
_XNAME_FILE = "/etc/cray/xname"
_SAY_PLACE = (
    'printf "%s %s %s %s\\n" "$SLURMD_NODENAME" "${SLURM_TOPOLOGY_ADDR:--}" '
    f'"${{SLURM_TOPOLOGY_ADDR_PATTERN:--}}" "$(cat {_XNAME_FILE} 2>/dev/null || echo -)"'
)


_XNAME = re.compile(r"(x\d{1,6})(c\d{1,2})s\d{1,2}b\d{1,2}n\d{1,2}", re.ASCII)


def _switches_by_xname(xname: str) -> Switches:
    """Reads a node's xname in a Cray EX machine: x1000c3s5b0n1; empty for other names.

    The cabinet (x1000) counts as the group and the chassis (c3) as the switch, an approximation:
    a chassis may have a few switches.
    """
    found = _XNAME.fullmatch(xname)
    return (frozenset({found[1]}), frozenset({found[1] + found[2]})) if found else ()
