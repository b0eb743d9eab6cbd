"""Where nodes stand, as Slurm and the nodes themselves say it.

In SLURM_TOPOLOGY_ADDR of each task, in topology.conf, and in the xnames of Cray machines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from commtune.cluster.placement import Position, Topology, expand_hosts
from commtune.errors import EnvironmentFault


def _position_from_address(address: str, pattern: str) -> Position | None:
    """A node's position from SLURM_TOPOLOGY_ADDR and SLURM_TOPOLOGY_ADDR_PATTERN of a task on it.

    ``s0.s[4-5].tux1`` with ``switch.switch.node``. ``None`` where the two don't fit.
    """
    kinds = pattern.split(".")
    parts = address.split(".", len(kinds) - 1)
    if kinds[-1] != "node" or len(parts) != len(kinds) or not parts[-1]:
        return None
    try:
        levels = [frozenset(expand_hosts(part)) for part in parts[:-1]]
    except EnvironmentFault:
        return None
    return Position(parts[-1], tuple(level for level in levels if level))


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
    # Nodes of one switch share what is above it: a large machine has few such sets.
    above = {frozenset(home): _levels(frozenset(home), parents) for home in homes.values()}
    return Topology({node: Position(node, above[frozenset(home)]) for node, home in homes.items()})


def _levels(
    own: frozenset[str], parents: Mapping[str, Iterable[str]]
) -> tuple[frozenset[str], ...]:
    levels: list[frozenset[str]] = []
    seen: frozenset[str] = frozenset()
    level = own
    while level:
        levels.insert(0, level)
        seen |= level
        # Without what was seen, so that a file that goes round in circles comes to an end.
        level = frozenset(p for switch in level for p in parents.get(switch, ())) - seen
    return tuple(levels)


#: Cray EX machines keep a node's xname in a file on it.
XNAME_FILE = "/etc/cray/xname"
_SAY_PLACE = (
    'printf "%s %s %s %s\\n" "$SLURMD_NODENAME" "${SLURM_TOPOLOGY_ADDR:--}" '
    f'"${{SLURM_TOPOLOGY_ADDR_PATTERN:--}}" "$(cat {XNAME_FILE} 2>/dev/null || echo -)"'
)


def place_command(nodes: int) -> tuple[str, ...]:
    """The words of a step that says, on each node of a job, where it stands: ``read_places``."""
    shape = (f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1")
    return ("srun", *shape, "--mpi=none", "--export=ALL", "sh", "-c", _SAY_PLACE)


def read_places(text: str) -> Topology:
    """Reads lines of node, its topology address, the address's pattern, and its xname.

    What isn't known is a dash; nodes of which neither tells anything are left out, and so are
    lines of anything else.
    """
    positions: dict[str, Position] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) != 4:
            continue
        node, address, pattern, xname = words
        by_address = _position_from_address(address, pattern)
        if by_address is not None and by_address.switches:
            positions[node] = Position(node, by_address.switches)
        elif by_xname := _position_from_xname(node, xname):
            positions[node] = by_xname
    return Topology(positions)


_XNAME = re.compile(r"(x\d{1,6})(c\d{1,2})s\d{1,2}b\d{1,2}n\d{1,2}", re.ASCII)


def _position_from_xname(node: str, xname: str) -> Position | None:
    """A node's position from its place in a Cray EX machine: x1000c3s5b0n1.

    The cabinet (x1000) is taken for the group and the chassis (c3) for the switch, which is as
    near as the name tells: a chassis may hold a few switches. ``None`` for other names.
    """
    found = _XNAME.fullmatch(xname.strip())
    if not found:
        return None
    cabinet, chassis = found[1], found[1] + found[2]
    return Position(node, (frozenset({cabinet}), frozenset({chassis})))
