"""Nominal bandwidths between the GPUs of a node, from its direct links. Bytes per second."""

from __future__ import annotations

from itertools import combinations

from commtune.systems.schema import System


def direct_bandwidth(system: System, a: int, b: int) -> int:
    """What the direct links from one GPU to another carry in one direction; 0 without a link."""
    return _matrix(system).get((a, b), 0)


def injection_bandwidth(system: System, gpu: int) -> int:
    """What all links of a GPU to other GPUs carry together in one direction."""
    return sum(width for (a, _), width in _matrix(system).items() if a == gpu)


def path_bandwidth(system: System, a: int, b: int) -> int:
    """The widest of the shortest paths from one GPU to another; 0 where there is no path.

    A path is as wide as its narrowest hop. Several paths at once would carry more.
    """
    matrix = _matrix(system)
    reached, seen = {a: 0}, {a}
    while reached and b not in reached:
        further: dict[int, int] = {}
        for gpu, width in reached.items():
            for (start, end), hop in matrix.items():
                if start == gpu and end not in seen:
                    narrowest = min(width, hop) if width else hop
                    further[end] = max(further.get(end, 0), narrowest)
        seen |= set(further)
        reached = further
    return reached.get(b, 0)


def node_bandwidth(system: System) -> int:
    """What all network ports of a node carry together in one direction."""
    return system.nics.count * system.nics.bandwidth


def _matrix(system: System) -> dict[tuple[int, int], int]:
    matrix: dict[tuple[int, int], int] = {}
    count = system.gpus.count if system.gpus else 0
    for link in system.links:
        pairs = combinations(range(count), 2) if link.pairs == "all" else link.pairs
        for a, b in pairs:
            for pair in ((a, b), (b, a)):
                matrix[pair] = matrix.get(pair, 0) + link.links * link.bandwidth
    return matrix
