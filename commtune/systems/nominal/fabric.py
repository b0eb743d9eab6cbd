"""The links inside a node and its network ports, as a graph for models of bandwidth.

Bandwidths are in bytes per second, in one direction. Links are full duplex.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, pairwise, permutations
from typing import TYPE_CHECKING, Any

from commtune.documents.quantities import format_bandwidth, short_bandwidth
from commtune.formatting import format_count
from commtune.model import Flow

if TYPE_CHECKING:
    from commtune.systems.schema import GpuLink, System

#: A directed edge between two vertices of a node.
Edge = tuple[int, int]
#: The vertices of a path.
_Path = tuple[int, ...]

#: In nodes with more vertices, only single vertices are cut off: there are too many other cuts.
_CUT_ALL = 12
#: The most GPUs of a search for rings, and its most steps.
_RING_GPUS = 8
_RING_STEPS = 50_000


@dataclass(frozen=True)
class Link:
    """Parallel links between two vertices: GPUs, numbered from 0, then switches."""

    a: int
    b: int
    count: int
    bandwidth: float

    def __str__(self) -> str:
        return f"{format_count(self.count, 'link')} x {short_bandwidth(self.bandwidth)}"


@dataclass(frozen=True)
class Ports:
    """Network ports of a node."""

    count: int
    bandwidth: float  # of one port
    of_gpu: tuple[int, ...] = ()  # the port that each GPU uses; empty without GPUs
    #: Whether `of_gpu` is assumed (neighbouring GPUs share a port), not documented.
    assumed: bool = False

    @property
    def together(self) -> float:
        """The bandwidth of all ports together."""
        return self.count * self.bandwidth


@dataclass(frozen=True)
class Fabric:
    """A node's links and ports; all nodes are alike, and the network between them is ideal."""

    origin: str  # the source of these facts, in words
    gpus: int = 0
    links: tuple[Link, ...] = ()
    ports: Ports | None = None  # ``None`` if unknown
    memory: float | None = None  # bandwidth of one GPU's memory, reads and writes together
    host_link: float | None = None  # bandwidth between one GPU and its processor
    sources: tuple[str, ...] = ()  # names of sources in the system description

    @cached_property
    def capacity(self) -> Mapping[Edge, float]:
        """The bandwidth of each directed edge."""
        found: dict[Edge, float] = {}
        for link in self.links:
            for edge in ((link.a, link.b), (link.b, link.a)):
                found[edge] = found.get(edge, 0.0) + link.count * link.bandwidth
        return found

    @cached_property
    def vertices(self) -> int:
        """The number of GPUs and switches."""
        return max([self.gpus, *(max(link.a, link.b) + 1 for link in self.links)])

    def injection(self, gpu: int) -> float:
        """Returns the bandwidth of all links of a GPU together."""
        return sum(width for (start, _), width in self.capacity.items() if start == gpu)

    def leading_out(self, part: Iterable[int], capacity: float) -> str:
        """Describes the capacity of the cut around a part of the node."""
        numbers = ", ".join(str(vertex) for vertex in sorted(part) if vertex < self.gpus)
        place = f"GPU {numbers}" if numbers else "the switch"
        return f"{format_bandwidth(capacity)} lead out of {place}"

    def path_width(self, path: Sequence[int]) -> float:
        """Returns the bandwidth of a path, which is that of its slowest edge."""
        return min(self.capacity[hop] for hop in pairwise(path))

    def widest_path(self, start: int, end: int) -> _Path | None:
        """Returns the shortest path with the most bandwidth; ``None`` if there is no path."""
        paths = _shortest_paths(self, start, end)
        return max(paths, key=self.path_width, default=None)

    def edge_loads(self, demands: Iterable[Flow]) -> Mapping[Edge, float]:
        """Returns the amount on each directed edge if all shortest paths share it equally.

        Pairs without a path add nothing.
        """
        found: defaultdict[Edge, float] = defaultdict(float)
        for start, end, amount in demands:
            paths = _shortest_paths(self, start, end)
            for path in paths:
                for hop in pairwise(path):
                    found[hop] += amount / len(paths)
        return found

    @cached_property
    def node_cuts(self) -> tuple[tuple[frozenset[int], float], ...]:
        """Parts of a node with the bandwidth out of each, which no routing exceeds."""
        edges = self.capacity.items()
        return tuple(
            (part, sum(width for (a, b), width in edges if a in part and b not in part))
            for part in _parts(range(self.vertices))
        )

    def pair_bandwidths(self) -> Mapping[Edge, float]:
        """Returns the bandwidth of the widest shortest path of each ordered pair of GPUs."""
        gpus = range(self.gpus)
        pairs = {(a, b): self.widest_path(a, b) for a in gpus for b in gpus if a != b}
        return {pair: self.path_width(path) for pair, path in pairs.items() if path}

    def group_bandwidth(self, active: int) -> float | None:
        """Returns the bandwidth of the first `active` GPUs out of the node; ``None`` if unknown.

        All send equal amounts, so the port that most of them share decides.
        """
        if self.ports is None or active > len(self.ports.of_gpu) or active < 1:
            return None
        sharing = Counter(self.ports.of_gpu[:active])
        return active * self.ports.bandwidth / max(sharing.values())

    @classmethod
    def of_plain(cls, data: Mapping[str, Any]) -> Fabric:
        """Returns the fabric from the plain data that ``asdict`` makes of it."""
        ports = data.get("ports")
        return cls(
            origin=str(data["origin"]),
            gpus=int(data["gpus"]),
            links=tuple(Link(**link) for link in data["links"]),
            ports=Ports(**{**ports, "of_gpu": tuple(ports["of_gpu"])}) if ports else None,
            memory=data.get("memory"),
            host_link=data.get("host_link"),
            sources=tuple(data.get("sources", ())),
        )


def fabric_of(system: System) -> Fabric:
    """Returns the fabric of a system description."""
    gpus = system.gpus
    count = gpus.count if gpus else 0
    links = [
        Link(a, b, link.links, link.bandwidth)
        for link in system.links
        for a, b in _edges(link, count)
    ]
    told = [*system.links, *([gpus] if gpus else []), system.nics]
    return Fabric(
        origin=f"description {system.name} {system.version}",
        gpus=count,
        links=tuple(links),
        ports=_ports(system),
        memory=gpus.memory_bandwidth if gpus else None,
        host_link=gpus.host_link if gpus else None,
        sources=tuple(dict.fromkeys(name for fact in told for name in fact.source)),
    )


def _edges(link: GpuLink, gpus: int) -> list[Edge]:
    """Returns the edges of links; the switch is the first vertex after the GPUs."""
    if link.pairs == "switch":
        return [(gpu, gpus) for gpu in range(gpus)]
    return list(combinations(range(gpus), 2)) if link.pairs == "all" else link.pairs


def _ports(system: System) -> Ports:
    nics, gpus = system.nics, system.gpus.count if system.gpus else 0
    if isinstance(nics.sharing, list):
        of_gpu = tuple(nics.sharing)
    elif nics.sharing == "round-robin":
        of_gpu = tuple(gpu % nics.count for gpu in range(gpus))
    else:
        of_gpu = packed_ports(gpus, nics.count)
    return Ports(nics.count, nics.bandwidth, of_gpu, assumed=nics.sharing is None and gpus > 0)


def packed_ports(gpus: int, ports: int) -> tuple[int, ...]:
    """Returns the port of each GPU if neighbours share one: 0 0 1 1 for 4 GPUs and 2 ports."""
    return tuple(gpu * ports // gpus for gpu in range(gpus))


#: The other end of links to switches. All switches count as one that is non-blocking, and an end
#: that the driver can't name is assumed to be a switch.
_SWITCH = "switch"
_PCI = re.compile(r"([0-9a-f]+):([0-9a-f]{2}):([0-9a-f]{2})\.[0-9a-f]\Z", re.IGNORECASE)
#: Nominal bytes per second of one NVLink in one direction, by version: NVIDIA's figures for P100
#: (4 links, 160 GB/s both ways), V100 (6, 300), A100 (12, 600), H100 (18, 900), B200 (18, 1800).
#: Drivers report the raw signalling rate (26.6 GB/s for 4.0), which is more.
NVLINKS = {"1": 20e9, "2": 25e9, "3": 25e9, "4": 25e9, "5": 50e9}


def fabric_of_ranks(rank_info: Sequence[Mapping[str, Any]]) -> Fabric | None:
    """Returns the links between the GPUs of rank 0's node, without ports.

    ``None`` if a rank of the node has no GPU, ranks share a GPU, or no links were read. GPUs are
    numbered by local rank; those that no rank uses follow.

    Args:
        rank_info: from the header of a run's records. Each rank's ``gpu`` has its ``pci`` address
            and ``links``, bundles of equal links: ``to`` (``gpu``, ``switch``, ``cpu``,
            ``unknown``), ``pci`` of the other end, number of ``links``, ``version`` of NVLink,
            ``link_Bps``.
    """
    ranks = [rank for rank in rank_info if rank["node"] == rank_info[0]["node"]]
    gpus = [rank.get("gpu") or {} for rank in sorted(ranks, key=lambda r: int(r["local_rank"]))]
    own = [normalise_address(gpu.get("pci")) for gpu in gpus]
    if None in own or len(set(own)) != len(own):
        return None
    numbers = {pci: number for number, pci in enumerate(own)}
    links = [_driver_links(gpu) for gpu in gpus]
    for idle in sorted({peer for found in links for peer in found} - {_SWITCH, *numbers}):
        numbers[idle] = len(numbers)
    found: dict[Edge, tuple[int, float]] = {}
    for number, here in enumerate(links):
        for peer, (count, bandwidth) in here.items():
            end = len(numbers) if peer == _SWITCH else numbers[peer]
            edge = (min(number, end), max(number, end))
            # Both ends report a link; where they differ, the smaller number works.
            said = found.get(edge, (count, bandwidth))
            found[edge] = (min(said[0], count), min(said[1], bandwidth))
    if not found:
        return None
    ends = [bundle.get("to") for gpu in gpus for bundle in gpu.get("links") or ()]
    guessed = ", whose other ends are taken for a switch" if "unknown" in ends else ""
    return Fabric(
        origin="links that the driver names" + guessed,
        gpus=len(numbers),
        links=tuple(Link(a, b, *sides) for (a, b), sides in sorted(found.items())),
    )


def normalise_address(written: object) -> str | None:
    """Returns a PCI address in one spelling; ``None`` if it is none.

    Tools differ in case, and write 4 or 8 digits of the domain.
    """
    match = _PCI.match(written) if isinstance(written, str) else None
    if match is None:
        return None
    return f"{int(match[1], 16):04x}:{match[2]}:{match[3]}".lower()


def _driver_links(gpu: Mapping[str, Any]) -> dict[str, tuple[int, float]]:
    """Returns number and bandwidth of links by other end; all switches are one end."""
    found: dict[str, tuple[int, float]] = {}
    for bundle in gpu.get("links") or ():
        peer = _peer(bundle)
        count = int(bundle.get("links") or 0)
        known = NVLINKS.get(str(bundle.get("version") or "").split(".")[0])
        bandwidth = known or float(bundle.get("link_Bps") or 0)
        if peer is None or count < 1 or bandwidth <= 0:
            continue
        before, theirs = found.get(peer, (0, bandwidth))
        found[peer] = (before + count, min(theirs, bandwidth))
    return found


def _peer(bundle: Mapping[str, Any]) -> str | None:
    """Returns the address of another GPU, or ``_SWITCH``; ``None`` for other ends."""
    if bundle.get("to") == "gpu":
        return normalise_address(bundle.get("pci"))
    return _SWITCH if bundle.get("to") in (_SWITCH, "unknown") else None


@lru_cache(maxsize=4096)
def _shortest_paths(fabric: Fabric, start: int, end: int) -> tuple[_Path, ...]:
    """Returns all paths with the fewest edges; none if the vertices are not connected."""
    paths: list[_Path] = [(start,)]
    seen = {start}
    while paths and end not in seen:
        paths = [
            (*path, to)
            for path in paths
            for start, to in fabric.capacity
            if start == path[-1] and to not in seen
        ]
        seen.update(path[-1] for path in paths)
    return tuple(path for path in paths if path[-1] == end)


def _parts(vertices: Sequence[int]) -> Iterator[frozenset[int]]:
    if len(vertices) > _CUT_ALL:  # fewer bounds, each valid
        for vertex in vertices:
            yield frozenset({vertex})
            yield frozenset(vertices) - {vertex}
        return
    for bits in range(1, 2 ** len(vertices) - 1):
        yield frozenset(v for v in vertices if bits >> v & 1)


def _cycles(free: Mapping[Edge, int], gpus: tuple[int, ...]) -> list[tuple[Edge, ...]]:
    """Returns all Hamiltonian cycles of the GPUs, each in one direction."""
    first, *others = gpus
    found = []
    for order in permutations(others):
        if order[0] < order[-1]:
            hops = tuple(pairwise((first, *order, first)))
            if all(hop in free for hop in hops):
                found.append(hops)
    return found


def _most_fitting(cycles: list[tuple[Edge, ...]], free: dict[Edge, int], most: int) -> int:
    """Returns the most rings found that share no link; the search has a limit of steps."""
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


@lru_cache(maxsize=256)
def disjoint_rings(fabric: Fabric, gpus: tuple[int, ...]) -> tuple[int, float]:
    """Returns the number of rings through all GPUs that share no link, and the bandwidth of each.

    Each ring is used in both directions. The number is 0 for fewer than 3 and for too many GPUs.
    """
    inside = {e: c for e, c in fabric.capacity.items() if e[0] in gpus and e[1] in gpus}
    if not 3 <= len(gpus) <= _RING_GPUS or not inside:
        return 0, 0.0
    # A ring takes one link between neighbours, so the slowest link bounds it.
    unit = min(link.bandwidth for link in fabric.links if (link.a, link.b) in inside)
    free = {edge: int(capacity // unit) for edge, capacity in inside.items()}
    most = min(sum(n for (a, _), n in free.items() if a == gpu) for gpu in gpus) // 2
    return _most_fitting(_cycles(free, gpus), free, most), unit
