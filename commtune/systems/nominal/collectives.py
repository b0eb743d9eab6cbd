"""Nominal bandwidths and bounds as data types, and the bounds of collectives.

All bandwidths are bus bandwidths in bytes per second.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from commtune.documents.quantities import format_bandwidth, short_bandwidth
from commtune.formatting import format_count
from commtune.model.operations import ACTIVE
from commtune.systems.nominal.fabric import Fabric, disjoint_rings
from commtune.systems.nominal.traffic import NominalQuestion

#: Shares from here on exceed the nominal bandwidth by more than rounding.
_ABOVE = 1.005


@dataclass(frozen=True)
class Nominal:
    """A nominal bandwidth, or why there is none."""

    #: Bus bandwidth, as in the benchmark's records; ``None`` if there is none.
    bytes_per_s: float | None
    model: str = ""
    why: str = ""  # the links that it is computed from, with numbers; or why there is none
    #: Upper bound for all algorithms and routings, if it is above the nominal.
    limit: float | None = None
    limit_why: str = ""
    assumptions: tuple[str, ...] = ()
    origin: str = ""  # the source of the links

    def share(self, bytes_per_s: float) -> float | None:
        """Returns a measured bus bandwidth relative to the nominal one, which is 1."""
        return bytes_per_s / self.bytes_per_s if self.bytes_per_s else None

    def reached(self, bytes_per_s: float) -> str:
        """Describes a measured bus bandwidth: ``62% of nominal 100 Gb/s by rings``."""
        share = self.share(bytes_per_s)
        if share is None:
            return f"no nominal bandwidth: {self.why}"
        said = f"{share:.0%} of nominal {self}"
        return f"{said}; above it, so that model does not hold here" if share > _ABOVE else said

    def plain(self) -> dict[str, Any]:
        """Returns plain data for JSON."""
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
class Bound(Nominal):
    """A bus bandwidth by one model."""

    bytes_per_s: float

    def with_limit(self, limit: float, why: str) -> Bound:
        """Returns the bound with a limit, which is dropped unless it is above the bound."""
        if limit <= self.bytes_per_s * (1 + 1e-9):
            return self
        return replace(self, limit=limit, limit_why=why)


#: Collectives with a root.
_ROOTED = ("broadcast", "reduce")
OPERATIONS = ("allreduce", "allgather", "reduce-scatter", *_ROOTED)

#: Operations whose bus bandwidth follows from the size and the number of ranks.
_PLAIN = (
    *OPERATIONS, "alltoall", "ping-pong", "bidirectional", "ring", "self", "pairs", "striping",
)  # fmt: skip

_ENDPOINTS = "ranks reduce, not switches (no NVLS, no SHARP)"


def bus_factor(operation: str, ranks: int) -> float:
    """Returns the ratio of bus bandwidth to algorithm bandwidth, as nccl-tests defines it."""
    others = (ranks - 1) / ranks
    if operation == "allreduce":
        return 2 * others
    return others if operation in ("allgather", "reduce-scatter", "alltoall") else 1.0


def bus_bandwidth(question: NominalQuestion, size: int, seconds: float) -> float | None:
    """Returns the bus bandwidth as the benchmark computes it, in bytes per second.

    ``None`` if the question lacks what it depends on, or the operation has none.

    Args:
        size: message size, bytes, a multiple of the element size.
        seconds: duration of one operation.
    """
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
    """Returns a collective's nominal bus bandwidth; ``None`` if no links join the GPUs."""
    inside = _bound_inside(fabric, question) if question.each > 1 and fabric.links else None
    if question.nodes == 1:
        return _add_assumptions(inside, question)
    if question.each > 1 and fabric.links and inside is None:
        return None
    between = _bound_between(fabric, question)
    return _add_assumptions(_choose_slower(between, inside, question), question)


def _add_assumptions(bound: Bound | None, question: NominalQuestion) -> Bound | None:
    if bound is None or question.operation not in ("allreduce", "reduce-scatter", "reduce"):
        return bound
    return replace(bound, assumptions=(*bound.assumptions, _ENDPOINTS))


def _choose_slower(between: Bound, inside: Bound | None, question: NominalQuestion) -> Bound:
    """Returns the slower step of a hierarchical algorithm, whose steps are assumed to overlap."""
    if inside is None:
        return between
    own = bus_factor(question.operation, question.each)
    rate = inside.bytes_per_s / own * bus_factor(question.operation, question.ranks)
    if rate >= between.bytes_per_s:
        return between
    return Bound(rate, inside.model, f"inside a node: {inside.why}").with_limit(
        between.limit or between.bytes_per_s, between.limit_why or between.why
    )


def _bound_inside(fabric: Fabric, question: NominalQuestion) -> Bound | None:
    """Returns the bound inside a node; ``None`` if no links join its GPUs."""
    gpus = tuple(range(question.each))
    if not all(fabric.widest_path(0, gpu) for gpu in gpus[1:]):
        return None
    if question.operation in _ROOTED:
        return _bound_rooted(fabric, gpus)
    best = max(_bound_schedules(fabric, gpus), key=lambda bound: bound.bytes_per_s)
    return best.with_limit(*min(_limit_inside(fabric, gpus, question)))


def _bound_schedules(fabric: Fabric, gpus: tuple[int, ...]) -> Iterator[Bound]:
    """Yields the bounds of the usual algorithms: direct exchange and rings."""
    demands = [(a, b, 1.0) for a in gpus for b in gpus if a != b]
    loads = fabric.edge_loads(demands)
    each = min(fabric.capacity[edge] / load for edge, load in loads.items())
    why = f"{format_bandwidth(each)} between each two of {len(gpus)} GPUs"
    yield Bound(each * (len(gpus) - 1), "direct exchange", why)
    yield from _bound_rings(fabric, gpus)


def _bound_rings(fabric: Fabric, gpus: tuple[int, ...]) -> Iterator[Bound]:
    count, width = disjoint_rings(fabric, gpus)
    if count:
        rings = format_count(count, "ring")
        why = f"{rings} that share no link, both ways, {short_bandwidth(width)} each"
        yield Bound(2 * count * width, "rings", why)


def _limit_inside(
    fabric: Fabric, gpus: tuple[int, ...], question: NominalQuestion
) -> Iterator[tuple[float, str]]:
    """Yields upper bounds of all algorithms: the cuts of the node, and the sum of its links."""
    n, reduces_all = len(gpus), question.operation == "allreduce"
    # Each byte is sent 2 (n - 1) times by any algorithm; switches can copy, not reduce.
    if reduces_all and fabric.vertices == n == fabric.gpus:
        mean = sum(fabric.injection(gpu) for gpu in gpus) / n
        yield mean, f"all links together, {format_bandwidth(mean)} a GPU"
    for part, capacity in fabric.node_cuts:
        held, why = len(part.intersection(gpus)), fabric.leading_out(part, capacity)
        if 0 < held < n and reduces_all:
            yield bus_factor(question.operation, n) * capacity, f"{why}, if switches reduced"
        elif 0 < held < n:
            yield (n - 1) * capacity / held, why


def _bound_rooted(fabric: Fabric, gpus: tuple[int, ...]) -> Bound:
    """Returns the bound of a collective with a root; its limit is the narrowest cut."""
    root = {gpus[0]}
    others = set(gpus[1:])
    cuts = [cut for cut in fabric.node_cuts if root <= cut[0] and others - cut[0]]
    part, capacity = min(cuts, key=lambda cut: cut[1])
    cut = Bound(capacity, "narrowest cut", fabric.leading_out(part, capacity))
    usual = (
        _bound_pair(fabric, *gpus) if len(gpus) == 2 else next(_bound_rings(fabric, gpus), None)
    )
    return usual.with_limit(cut.bytes_per_s, cut.why) if usual else cut


def _bound_pair(fabric: Fabric, root: int, other: int) -> Bound:
    path = fabric.widest_path(root, other)
    assert path is not None  # see _bound_inside
    width = fabric.path_width(path)
    why = f"{format_bandwidth(width)} between GPUs {root} and {other}"
    return Bound(width, "widest of the shortest paths", why)


def _bound_between(fabric: Fabric, question: NominalQuestion) -> Bound:
    """Returns the bound between nodes, each of which counts as one rank."""
    ports, usable = fabric.ports, fabric.group_bandwidth(question.each)
    assert ports and usable  # questions without ports are refused
    used = ports.of_gpu[: question.each]
    nodes, factor = question.nodes, bus_factor(question.operation, question.ranks)
    # Ratio of the algorithm bandwidth to the bandwidth that a node injects.
    share = 1.0 if question.operation in _ROOTED else 1 / bus_factor(question.operation, nodes)
    why = f"{len(set(used))} of {ports.count} ports of {short_bandwidth(ports.bandwidth)} a node"
    return Bound(factor * share * usable, "hierarchical, ports of a node", why).with_limit(
        factor * share * ports.together, f"all {ports.count} ports of a node"
    )
