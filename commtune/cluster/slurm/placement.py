"""Where the nodes of a run stand in the network: same node, switch or group, or different groups.

Slurm names nodes in a short form (``n[001-004,007]``), and knows the network where the site
described it: in each task's SLURM_TOPOLOGY_ADDR, in topology.conf (also ``scontrol show
topology``) or topology.yaml. Cray machines say it in their nodes' xnames. Nothing here does I/O.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import yaml

from commtune.errors import EnvironmentFault

#: More names than any machine has: what is longer is no list of nodes. (Slurm's own limit too.)
MOST_HOSTS = 65_536
_MOST_BRACKETS = 8

_NO_HOSTS = ("", "(null)", "None assigned", "None", "N/A")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)


def expand_hosts(text: str) -> tuple[str, ...]:
    """The names in a list in Slurm's short form, in its order.

    ``n[01-02,7],gpu-a[1-2]b3`` gives n01, n02, n7, gpu-a1b3, gpu-a2b3; several brackets in a name
    are combined, the last one changing fastest. What Slurm prints for no nodes gives none.

    Raises:
        EnvironmentFault: this is no such list, or one of more than 65,536 names.
    """
    if text.strip() in _NO_HOSTS:
        return ()
    names: list[str] = []
    for item in _items(text.strip()):
        names += itertools.islice(_expand(item, text), MOST_HOSTS + 1 - len(names))
        if len(names) > MOST_HOSTS:
            raise _wrong(text, f"more than {MOST_HOSTS:,} names")
    return tuple(names)


def _items(text: str) -> list[str]:
    """The parts between commas that are outside of brackets."""
    parts = re.findall(r"(?:[^,\[\]]|\[[^\[\]]*\])+", text)
    if ",".join(parts) != text:
        raise _wrong(text, "empty names or brackets that don't match")
    return parts


def _expand(item: str, text: str) -> Iterator[str]:
    if re.search(r"\s", item):
        raise _wrong(text, "a blank inside")
    fixed, ranges = re.split(r"\[[^\]]*\]", item), re.findall(r"\[([^\]]*)\]", item)
    if len(ranges) > _MOST_BRACKETS:
        raise _wrong(text, "too many brackets in a name")
    choices = [[fixed[0]]]
    for numbers, behind in zip(ranges, fixed[1:], strict=True):
        choices.append([number + behind for number in _numbers(numbers, text)])
    return map("".join, itertools.product(*choices))


def _numbers(ranges: str, text: str) -> list[str]:
    """``08-10,12`` gives 08, 09, 10, 12: as many digits as the range's first number has."""
    numbers: list[str] = []
    for part in ranges.split(","):
        found = _RANGE.fullmatch(part.strip())
        if not found:
            raise _wrong(text, f"{part!r} is no range")
        low, high = int(found[1]), int(found[2] or found[1])
        if high < low or high - low >= MOST_HOSTS or len(numbers) > MOST_HOSTS:
            raise _wrong(text, f"{part!r} is no range, or too long a one")
        numbers += [str(number).zfill(len(found[1])) for number in range(low, high + 1)]
    return numbers


def _wrong(text: str, why: str) -> EnvironmentFault:
    return EnvironmentFault(
        f"can't read the node list {text[:80]!r}: {why}",
        hint="lists look like n[001-004,007],login1; see 'scontrol show hostnames'",
    )


class Distance(StrEnum):
    """How far apart nodes are, as the network counts; UNKNOWN where nobody said."""

    SAME_NODE = "same-node"
    SAME_SWITCH = "same-switch"
    SAME_GROUP = "same-group"
    DIFFERENT_GROUPS = "different-groups"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Position:
    """Where a node stands.

    Attributes:
        node: its name.
        switches: what it hangs under, from the farthest to its own switch. A node may be under
            several of a level.
    """

    node: str
    switches: tuple[frozenset[str], ...] = ()

    def distance(self, other: Position, *, switch_is_group: bool = False) -> Distance:
        """How far another node is.

        Args:
            switch_is_group: the site calls a whole group of its network a switch, as some with
                dragonfly networks do.
        """
        if self.node == other.node:
            return Distance.SAME_NODE
        if not self.switches or not other.switches:
            return Distance.UNKNOWN
        if self.switches[-1] & other.switches[-1]:
            return Distance.SAME_GROUP if switch_is_group else Distance.SAME_SWITCH
        if switch_is_group or not self._above & other._above:
            return Distance.DIFFERENT_GROUPS
        return Distance.SAME_GROUP

    @property
    def _above(self) -> frozenset[str]:
        return self.switches[-2] if len(self.switches) > 1 else frozenset()


def find_distance(positions: Iterable[Position], *, switch_is_group: bool = False) -> Distance:
    """The distance of the two nodes of a run that are farthest apart; UNKNOWN beats all."""
    distinct = list({position.node: position for position in positions}.values())
    distances = {
        one.distance(other, switch_is_group=switch_is_group)
        for one, other in itertools.combinations(distinct, 2)
    }
    order = list(Distance)
    nearest = Distance.SAME_NODE if distinct else Distance.UNKNOWN
    return max(distances, key=order.index, default=nearest)


def position_from_address(address: str, pattern: str) -> Position | None:
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


@dataclass(frozen=True)
class Topology:
    """A site's description of its network.

    Attributes:
        positions: by node name.
    """

    positions: Mapping[str, Position]

    def of(self, nodes: Iterable[str]) -> tuple[Position, ...]:
        """The nodes' positions; of a node that isn't described, its name alone."""
        return tuple(self.positions.get(node, Position(node)) for node in nodes)


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


def read_topology_yaml(text: str, name: str = "") -> Topology:
    """Reads topology.yaml (Slurm 25.05 and later).

    Args:
        name: of the topology in it; without one, the cluster's default, or else the first.

    Raises:
        EnvironmentFault: it isn't such a file.
    """
    try:
        found = _choose(yaml.safe_load(text), name)
        tree, block = found.get("tree") or {}, found.get("block") or {}
        rows = [(s["switch"], s) for s in tree.get("switches", ())]
        rows += [(b["block"], b) for b in block.get("blocks", ())]
        nodes = {str(k): expand_hosts(str(row["nodes"])) for k, row in rows if row.get("nodes")}
        switches = {
            str(k): expand_hosts(str(row["children"])) for k, row in rows if row.get("children")
        }
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError, RecursionError) as e:
        raise EnvironmentFault(
            "can't read this topology.yaml", hint="see topology.yaml(5) of this Slurm"
        ) from e
    return _topology(nodes, switches)


def _choose(document: Any, name: str) -> Mapping[str, Any]:
    found: list[Mapping[str, Any]] = [
        entry for entry in document if not name or entry["topology"] == name
    ]
    default = (entry for entry in found if entry.get("cluster_default"))
    return next(default, found[0] if found else {})


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


def ask_places(nodes: int) -> tuple[str, ...]:
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
        by_address = position_from_address(address, pattern)
        if by_address is not None and by_address.switches:
            positions[node] = Position(node, by_address.switches)
        elif by_xname := position_from_xname(node, xname):
            positions[node] = by_xname
    return Topology(positions)


_XNAME = re.compile(r"(x\d{1,6})(c\d{1,2})s\d{1,2}b\d{1,2}n\d{1,2}", re.ASCII)


def position_from_xname(node: str, xname: str) -> Position | None:
    """A node's position from its place in a Cray EX machine: x1000c3s5b0n1.

    The cabinet (x1000) is taken for the group and the chassis (c3) for the switch, which is as
    near as the name tells: a chassis may hold a few switches. ``None`` for other names.
    """
    found = _XNAME.fullmatch(xname.strip())
    if not found:
        return None
    cabinet, chassis = found[1], found[1] + found[2]
    return Position(node, (frozenset({cabinet}), frozenset({chassis})))


def read_xnames(text: str) -> Topology:
    """Reads lines that hold a node's name and its xname, in any order; others are passed over."""
    positions = {}
    for line in text.splitlines():
        words = re.split(r"[\s,:=]+", line.split("#")[0].strip())
        xname = next((word for word in words if _XNAME.fullmatch(word)), "")
        node = next((word for word in words if word and word != xname), xname)
        if xname and (position := position_from_xname(node, xname)):
            positions[node] = position
    return Topology(positions)
