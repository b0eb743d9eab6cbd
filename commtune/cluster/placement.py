"""Where the nodes of a run stand in the network; schedulers name nodes as ``n[001-004,007]``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from commtune.errors import EnvironmentFault

#: More names than any machine has: what is longer is no list of nodes. (Slurm's own limit too.)
_MOST_HOSTS = 65_536
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
        names += itertools.islice(_expand(item, text), _MOST_HOSTS + 1 - len(names))
        if len(names) > _MOST_HOSTS:
            raise _wrong(text, f"more than {_MOST_HOSTS:,} names")
    return tuple(names)


def expand_readable_hosts(text: str) -> tuple[str, ...]:
    """As ``expand_hosts``; no names where the list can't be read."""
    try:
        return expand_hosts(text)
    except EnvironmentFault:
        return ()


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
            raise _wrong(text, f"{part!r} is not a range")
        low, high = int(found[1]), int(found[2] or found[1])
        if high < low or high - low >= _MOST_HOSTS or len(numbers) > _MOST_HOSTS:
            raise _wrong(text, f"{part!r} is not a range, or too long")
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
    node: str  # its name
    #: What it hangs under, from the farthest to its own switch. A node may be under several of a
    #: level.
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


@dataclass(frozen=True)
class Topology:
    """A site's description of its network."""

    positions: Mapping[str, Position]  # by node name

    def of(self, nodes: Iterable[str]) -> tuple[Position, ...]:
        """The nodes' positions; of a node that isn't described, its name alone."""
        return tuple(self.positions.get(node, Position(node)) for node in nodes)
