"""Node lists such as ``n[001-004,007]``, and the distances of nodes in the network."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from commtune.errors import EnvironmentFault

#: The most names in a node list, more than any machine has; also Slurm's own limit.
_MOST_HOSTS = 65_536
_MOST_BRACKETS = 8

_NO_HOSTS = ("", "(null)", "None assigned", "None", "N/A")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)


def expand_hosts(text: str) -> tuple[str, ...]:
    """Expands a node list in Slurm's short form, in its order.

    ``n[01-02,7],gpu-a[1-2]b3`` gives n01, n02, n7, gpu-a1b3, gpu-a2b3. Of several brackets in a
    name, the last one changes fastest. What Slurm prints for no nodes gives none.

    Raises:
        EnvironmentFault: the list can't be read, or has more than 65,536 names.
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
    """As ``expand_hosts``, but returns no names if the list can't be read."""
    try:
        return expand_hosts(text)
    except EnvironmentFault:
        return ()


def _items(text: str) -> list[str]:
    """Splits a list at the commas outside of brackets."""
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
    """Expands ``08-10,12`` to 08, 09, 10, 12, with as many digits as a range's first number."""
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
    """The distance of two nodes in the network; UNKNOWN if the site didn't describe it."""

    SAME_NODE = "same-node"
    SAME_SWITCH = "same-switch"
    SAME_GROUP = "same-group"
    DIFFERENT_GROUPS = "different-groups"
    UNKNOWN = "unknown"


#: The switches above a node by level, from the top to its own. There may be several of a level.
Switches = tuple[frozenset[str], ...]
#: A site's description of its network: the switches above each node, by the node's name.
Topology = Mapping[str, Switches]


def find_distance(
    topology: Topology, nodes: Iterable[str], *, switch_is_group: bool = False
) -> Distance:
    """Returns the largest distance of two nodes; UNKNOWN if that of any two is unknown.

    Args:
        switch_is_group: whether a switch in the site's topology stands for a whole group, as on
            some dragonfly networks.
    """
    above = [topology.get(node, ()) for node in dict.fromkeys(nodes)]
    distances = {
        _distance(one, other, switch_is_group) for one, other in itertools.combinations(above, 2)
    }
    order = list(Distance)
    nearest = Distance.SAME_NODE if above else Distance.UNKNOWN
    return max(distances, key=order.index, default=nearest)


def _distance(one: Switches, other: Switches, switch_is_group: bool) -> Distance:
    """Returns the distance of two different nodes."""
    if not one or not other:
        return Distance.UNKNOWN
    if one[-1] & other[-1]:
        return Distance.SAME_GROUP if switch_is_group else Distance.SAME_SWITCH
    has_groups = len(one) > 1 and len(other) > 1 and not switch_is_group
    return Distance.SAME_GROUP if has_groups and one[-2] & other[-2] else Distance.DIFFERENT_GROUPS
