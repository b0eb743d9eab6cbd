"""Ways through the links of a node: shortest paths and their load, cuts, rings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, permutations

from commtune.systems.nominal.fabric import Edge, Fabric

#: Vertices of a node; how much goes from one GPU to another.
_Path = tuple[int, ...]
Demand = tuple[int, int, float]

#: Nodes with more vertices are cut around single vertices only: the others are too many.
_CUT_ALL = 12
#: Nodes with more GPUs are not searched for rings, and no search takes more steps.
_RING_GPUS = 8
_RING_STEPS = 50_000


@lru_cache(maxsize=4096)
def _shortest_paths(fabric: Fabric, start: int, end: int) -> tuple[_Path, ...]:
    """All paths with the fewest hops; none where there is no way."""
    paths: list[_Path] = [(start,)]
    seen = {start}
    while paths and end not in seen:
        paths = [(*path, to) for path in paths for to in _next(fabric, path[-1]) if to not in seen]
        seen.update(path[-1] for path in paths)
    return tuple(path for path in paths if path[-1] == end)


def _next(fabric: Fabric, vertex: int) -> Iterator[int]:
    return (to for start, to in fabric.capacity if start == vertex)


def widest_path(fabric: Fabric, start: int, end: int) -> _Path | None:
    """The widest of the shortest paths; the first of those that are as wide."""
    paths = _shortest_paths(fabric, start, end)
    return max(paths, key=fabric.path_width, default=None)


def edge_loads(fabric: Fabric, demands: Iterable[Demand]) -> Mapping[Edge, float]:
    """What crosses each directed edge if all shortest paths share alike; no way, no load."""
    found: defaultdict[Edge, float] = defaultdict(float)
    for start, end, amount in demands:
        paths = _shortest_paths(fabric, start, end)
        for path in paths:
            for hop in pairwise(path):
                found[hop] += amount / len(paths)
    return found


def node_cuts(fabric: Fabric) -> Iterator[tuple[frozenset[int], float]]:
    """Parts of a node, and what leads out of each in one direction: no routing moves more."""
    vertices = range(fabric.vertices)
    edges = fabric.capacity.items()
    for part in _parts(vertices):
        yield part, sum(width for (a, b), width in edges if a in part and b not in part)


def _parts(vertices: Sequence[int]) -> Iterator[frozenset[int]]:
    if len(vertices) > _CUT_ALL:  # fewer bounds, each as true
        for vertex in vertices:
            yield frozenset({vertex})
            yield frozenset(vertices) - {vertex}
        return
    for bits in range(1, 2 ** len(vertices) - 1):
        yield frozenset(v for v in vertices if bits >> v & 1)


@lru_cache(maxsize=256)
def disjoint_rings(fabric: Fabric, gpus: tuple[int, ...]) -> tuple[int, float]:
    """Rings through GPUs that share no link, each used both ways: how many, how wide.

    None for fewer than 3 GPUs, and for so many that searching takes too long.
    """
    inside = {e: c for e, c in fabric.capacity.items() if e[0] in gpus and e[1] in gpus}
    if not 3 <= len(gpus) <= _RING_GPUS or not inside:
        return 0, 0.0
    # A ring is one link wide, the narrowest there is.
    unit = min(link.bandwidth for link in fabric.links if (link.a, link.b) in inside)
    free = {edge: int(capacity // unit) for edge, capacity in inside.items()}
    most = min(sum(n for (a, _), n in free.items() if a == gpu) for gpu in gpus) // 2
    return _most_fitting(_cycles(free, gpus), free, most), unit


def _cycles(free: Mapping[Edge, int], gpus: tuple[int, ...]) -> list[tuple[Edge, ...]]:
    """Every way around all GPUs, each in one of its two directions."""
    first, *others = gpus
    found = []
    for order in permutations(others):
        if order[0] < order[-1]:
            hops = tuple(pairwise((first, *order, first)))
            if all(hop in free for hop in hops):
                found.append(hops)
    return found


def _most_fitting(cycles: list[tuple[Edge, ...]], free: dict[Edge, int], most: int) -> int:
    """How many rings fit into the links together, as far as the search goes."""
    best = steps = 0

    def add(begin: int, made: int) -> None:
        nonlocal best, steps
        best = max(best, made)
        for index in range(begin, len(cycles)):
            steps += 1
            if best == most or steps > _RING_STEPS:
                return
            if all(free[hop] for hop in cycles[index]):
                _take(free, cycles[index], 1)
                add(index, made + 1)
                _take(free, cycles[index], -1)

    add(0, 0)
    return best


def _take(free: dict[Edge, int], hops: tuple[Edge, ...], links: int) -> None:
    for a, b in hops:
        free[a, b] -= links
        free[b, a] -= links
