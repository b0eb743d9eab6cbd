"""What models answer with, and the bounds of collectives that are more than messages.

All are bus bandwidths, bytes per second, for n ranks on N nodes, g ranks a node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from commtune.documents.quantities import format_bandwidth, short_bandwidth
from commtune.formatting import format_count
from commtune.model.operations import ACTIVE
from commtune.systems.nominal.fabric import Fabric, disjoint_rings
from commtune.systems.nominal.traffic import NominalQuestion

#: Shares from here on are above the nominal, and not only beside it by rounding.
_ABOVE = 1.005


@dataclass(frozen=True)
class Nominal:
    """A nominal bandwidth, in bytes per second, or why there is none.

    Attributes:
        bytes_per_s: bus bandwidth, as the benchmark's records count it; ``None`` where nothing
            can be said, and `why` says why.
        why: from which links, with numbers.
        limit: what no algorithm and no routing exceed, where that is more.
        origin: where the links are from.
    """

    bytes_per_s: float | None
    model: str = ""
    why: str = ""
    limit: float | None = None
    limit_why: str = ""
    assumptions: tuple[str, ...] = ()
    origin: str = ""

    def share(self, bytes_per_s: float) -> float | None:
        """The share of it that a measured bus bandwidth reached, 1 for all of it."""
        return bytes_per_s / self.bytes_per_s if self.bytes_per_s else None

    def reached(self, bytes_per_s: float) -> str:
        """A measured bus bandwidth in words: ``62 % of nominal 100 Gb/s (...)``."""
        share = self.share(bytes_per_s)
        if share is None:
            return f"no nominal bandwidth: {self.why}"
        said = f"{share:.0%} of nominal {self}"
        return f"{said}; above it, so that model does not hold here" if share > _ABOVE else said

    def plain(self) -> dict[str, Any]:
        """Plain data for programs; bytes per second."""
        return {
            "nominal_Bps": self.bytes_per_s,
            "model": self.model,
            "why": self.why,
            "origin": self.origin,
            "assumptions": list(self.assumptions),
        }

    def __str__(self) -> str:
        if self.bytes_per_s is None:
            return f"none: {self.why}"
        return f"{format_bandwidth(self.bytes_per_s)} by {self.model}"


@dataclass(frozen=True)
class Bound:
    """A bus bandwidth by one model, before it is said of which machine."""

    bytes_per_s: float
    model: str
    why: str
    limit: float | None = None
    limit_why: str = ""
    assumptions: tuple[str, ...] = ()

    def with_limit(self, limit: float, why: str) -> Bound:
        """The same below a limit, which is kept where it is more."""
        if limit <= self.bytes_per_s * (1 + 1e-9):
            return self
        return replace(self, limit=limit, limit_why=why)

    def as_nominal(self, fabric: Fabric, assumptions: tuple[str, ...]) -> Nominal:
        """What is said to people."""
        said = {**asdict(self), "assumptions": assumptions}
        return Nominal(**said, origin=fabric.origin)


#: Every rank ends with all, or gives all: bytes are moved by all ranks alike.
_SPREAD = ("allreduce", "allgather", "reduce-scatter")
#: One rank has, or gets, all.
_ROOTED = ("broadcast", "reduce")
OPERATIONS = (*_SPREAD, *_ROOTED)

#: A size, a number of ranks and a factor are all that their bytes depend on.
_PLAIN = (
    *OPERATIONS, "alltoall", "ping-pong", "bidirectional", "ring", "self", "pairs", "striping",
)  # fmt: skip

_ENDPOINTS = "ranks reduce, not switches (no NVLS, no SHARP)"


def bus_factor(operation: str, ranks: int) -> float:
    """Bus bandwidth over algorithm bandwidth, as nccl-tests counts."""
    others = (ranks - 1) / ranks
    if operation == "allreduce":
        return 2 * others
    return others if operation in ("allgather", "reduce-scatter", "alltoall") else 1.0


def bus_bandwidth(question: NominalQuestion, size: int, seconds: float) -> float | None:
    """Bytes per second, as the benchmark counts them, of a size in whole elements, or ``None``."""
    operation, ranks = question.operation, question.ranks
    if operation in ("incast", "one-to-many"):
        return (ranks - 1) * size / seconds
    if operation in ACTIVE:
        ways = 1 if question.direction == "outbound" else 2
        return ways * question.active * size / seconds if question.active else None
    if operation == "matrix":
        largest = max((amount for _, _, amount in question.flows), default=0.0)
        moved = sum(amount / largest for _, _, amount in question.flows) if largest else 0.0
        return moved * size / seconds or None
    if operation == "stream":
        return question.window * size / seconds if question.window else None
    return size * bus_factor(operation, ranks) / seconds if operation in _PLAIN else None


def collective_bounds(fabric: Fabric, question: NominalQuestion) -> Bound | None:
    """The nominal bus bandwidth with its limit; ``None`` where GPUs are not joined."""
    inside = _inside(fabric, question) if question.each > 1 and fabric.links else None
    if question.nodes == 1:
        return _assuming(inside, question)
    if question.each > 1 and fabric.links and inside is None:
        return None
    between = _between(fabric, question)
    return _assuming(_slower(between, inside, question), question)


def _assuming(bound: Bound | None, question: NominalQuestion) -> Bound | None:
    if bound is None or question.operation not in ("allreduce", "reduce-scatter", "reduce"):
        return bound
    return replace(bound, assumptions=(*bound.assumptions, _ENDPOINTS))


def _slower(between: Bound, inside: Bound | None, question: NominalQuestion) -> Bound:
    """The slower step of a hierarchical algorithm: its steps overlap, so that this one decides."""
    if inside is None:
        return between
    own = bus_factor(question.operation, question.each)
    rate = inside.bytes_per_s / own * bus_factor(question.operation, question.ranks)
    if rate >= between.bytes_per_s:
        return between
    return Bound(rate, inside.model, f"inside a node: {inside.why}").with_limit(
        between.limit or between.bytes_per_s, between.limit_why or between.why
    )


def _inside(fabric: Fabric, question: NominalQuestion) -> Bound | None:
    """The bound inside a node; ``None`` where its GPUs are not joined."""
    gpus = tuple(range(question.each))
    if not all(fabric.widest_path(0, gpu) for gpu in gpus[1:]):
        return None
    if question.operation in _ROOTED:
        return _rooted(fabric, gpus)
    best = max(_schedules(fabric, gpus), key=lambda bound: bound.bytes_per_s)
    return best.with_limit(*min(_limits(fabric, gpus, question)))


def _schedules(fabric: Fabric, gpus: tuple[int, ...]) -> Iterator[Bound]:
    """Ways to do it: all send their parts directly, or along rings."""
    demands = [(a, b, 1.0) for a in gpus for b in gpus if a != b]
    loads = fabric.edge_loads(demands)
    each = min(fabric.capacity[edge] / load for edge, load in loads.items())
    why = f"{format_bandwidth(each)} between each two of {len(gpus)} GPUs"
    yield Bound(each * (len(gpus) - 1), "direct exchange", why)
    yield from _rings(fabric, gpus)


def _rings(fabric: Fabric, gpus: tuple[int, ...]) -> Iterator[Bound]:
    count, width = disjoint_rings(fabric, gpus)
    if count:
        rings = format_count(count, "ring")
        why = f"{rings} that share no link, both ways, {short_bandwidth(width)} each"
        yield Bound(2 * count * width, "rings", why)


def _limits(
    fabric: Fabric, gpus: tuple[int, ...], question: NominalQuestion
) -> Iterator[tuple[float, str]]:
    """What no schedule exceeds: what leaves each part of the node, and all links together."""
    n = len(gpus)
    if question.operation == "allreduce":
        # 2 (n - 1) sends of every byte, whoever makes them; switches can copy, not reduce.
        if fabric.vertices == n == fabric.gpus:
            mean = sum(fabric.injection(gpu) for gpu in gpus) / n
            yield mean, f"all links together, {format_bandwidth(mean)} a GPU"
        factor = bus_factor(question.operation, n)
        for part, capacity in fabric.node_cuts:
            if 0 < len(part.intersection(gpus)) < n:
                yield (
                    factor * capacity,
                    f"{fabric.leading_out(part, capacity)}, if switches reduced",
                )
        return
    for part, capacity in fabric.node_cuts:
        held = len(part.intersection(gpus))
        if 0 < held < n:
            yield (n - 1) * capacity / held, fabric.leading_out(part, capacity)


def _rooted(fabric: Fabric, gpus: tuple[int, ...]) -> Bound:
    """As much as the narrowest cut between the root and another rank lets through."""
    root = {gpus[0]}
    others = set(gpus[1:])
    cuts = [cut for cut in fabric.node_cuts if root <= cut[0] and others - cut[0]]
    part, capacity = min(cuts, key=lambda cut: cut[1])
    cut = Bound(capacity, "narrowest cut", fabric.leading_out(part, capacity))
    usual = _pair(fabric, *gpus) if len(gpus) == 2 else next(_rings(fabric, gpus), None)
    return usual.with_limit(cut.bytes_per_s, cut.why) if usual else cut


def _pair(fabric: Fabric, root: int, other: int) -> Bound:
    path = fabric.widest_path(root, other)
    assert path is not None  # asked before
    width = fabric.path_width(path)
    why = f"{format_bandwidth(width)} between GPUs {root} and {other}"
    return Bound(width, "widest of the shortest paths", why)


def _between(fabric: Fabric, question: NominalQuestion) -> Bound:
    """Each node as one rank: what its ports carry."""
    ports = fabric.ports
    assert ports is not None  # asked before
    used = ports.of_gpu[: question.each]
    shared = max(used.count(port) for port in used)
    usable = question.each * ports.bandwidth / shared
    nodes, factor = question.nodes, bus_factor(question.operation, question.ranks)
    # Algorithm bandwidth over what a node injects, from what must enter or leave each node.
    share = 1.0 if question.operation in _ROOTED else 1 / bus_factor(question.operation, nodes)
    why = f"{len(set(used))} of {ports.count} ports of {short_bandwidth(ports.bandwidth)} a node"
    return Bound(factor * share * usable, "hierarchical, ports of a node", why).with_limit(
        factor * share * ports.together, f"all {ports.count} ports of a node"
    )
