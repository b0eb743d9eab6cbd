"""Nominal bandwidths of operations, from the bandwidths of a machine's links and network ports.

The *nominal* bandwidth is that of an operation's usual algorithm. The *limit* is an upper bound
for all algorithms and routings. docs/nominal.md has the formulas and their sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from commtune.documents.quantities import format_bandwidth, short_bandwidth
from commtune.formatting import format_count
from commtune.systems.nominal import collectives
from commtune.systems.nominal.collectives import Bound, Nominal
from commtune.systems.nominal.fabric import Edge, Fabric, fabric_of_ranks, packed_ports
from commtune.systems.nominal.traffic import Memory, NominalQuestion, Traffic

_ASSUMED_PORTS = "GPUs that are neighbours share a network port; not documented"
#: Operations whose busiest rank copies all bytes to the host and all bytes back.
_MOVED_ALIKE = (
    "ping-pong", "bidirectional", "stream", "pairs", "ring", "allreduce", "alltoall", "broadcast",
    "reduce",
)  # fmt: skip
_OF_TWO_RANKS = ("ping-pong", "bidirectional", "stream", "pairs")
_HOST_PORTS = "each rank uses one network port, neighbours the same"


def nominal_bandwidth(fabric: Fabric, question: NominalQuestion) -> Nominal:
    """Returns the nominal bus bandwidth of an operation, or why there is none."""
    why = _explain_refusal(fabric, question)
    if why:
        return Nominal(None, why=why)
    if question.operation == "self":
        return _find_copy_nominal(fabric)
    if question.memory is Memory.STAGED:
        return _find_staged_nominal(fabric, question)
    return _find_nominal(fabric, question)


def _explain_refusal(fabric: Fabric, question: NominalQuestion) -> str:
    """Returns why there is no nominal bandwidth; empty if there may be one."""
    if question.ranks < 2 and question.operation != "self":
        return "a rank alone moves nothing"
    if question.ranks % question.nodes:
        return f"{question.ranks} ranks are not spread evenly over {question.nodes} nodes"
    if question.memory is not Memory.HOST and question.each > fabric.gpus:
        return f"{question.each} ranks a node, but {fabric.gpus} GPUs are described"
    if question.nodes > 1 and fabric.ports is None and question.operation != "self":
        return "no network port is described"
    if question.memory is Memory.HOST and question.nodes == 1:
        return "copies inside host memory are not described"
    return ""


def _find_nominal(fabric: Fabric, question: NominalQuestion) -> Nominal:
    if question.operation == "striping":
        return _find_striping_nominal(fabric, question)
    try:
        traffic = Traffic.of(question)
    except OverflowError:
        return Nominal(None, why="the pattern has too many messages to count through")
    if traffic is not None:
        return _find_traffic_nominal(fabric, question, traffic)
    if question.operation in collectives.OPERATIONS:
        found = collectives.collective_bounds(_restrict_fabric(fabric, question), question)
        return _add_assumptions(fabric, question, found)
    return Nominal(None, why=f"there is no model of {question.operation}")


def _restrict_fabric(fabric: Fabric, question: NominalQuestion) -> Fabric:
    """Returns the fabric that messages use; those in host memory use ports only."""
    if question.memory is not Memory.HOST or fabric.ports is None:
        return fabric
    of_rank = packed_ports(question.each, fabric.ports.count)
    return replace(fabric, links=(), ports=replace(fabric.ports, of_gpu=of_rank, assumed=False))


def _add_assumptions(fabric: Fabric, question: NominalQuestion, found: Bound | None) -> Nominal:
    if found is None:
        return Nominal(None, why="its GPUs are not joined by links that are described")
    assumptions = list(found.assumptions)
    if question.nodes > 1 and question.memory is Memory.HOST:
        assumptions.append(_HOST_PORTS)
    elif question.nodes > 1 and fabric.ports and fabric.ports.assumed:
        assumptions.append(_ASSUMED_PORTS)
    return replace(found, assumptions=tuple(assumptions), origin=fabric.origin)


def _find_traffic_nominal(fabric: Fabric, question: NominalQuestion, traffic: Traffic) -> Nominal:
    seen = _restrict_fabric(fabric, question)
    if question.memory is Memory.HOST:
        traffic = replace(traffic, inside=())
    if not _is_joined(seen, traffic):
        return _add_assumptions(fabric, question, None)
    slowest = _find_slowest_bound(seen, question, traffic)
    if slowest is None:
        return Nominal(None, why="its messages use no link and no port that is described")
    return _add_assumptions(fabric, question, slowest)


def _is_joined(fabric: Fabric, traffic: Traffic) -> bool:
    """Returns whether links join all GPUs of a node that exchange messages."""
    return all(
        a == b or fabric.widest_path(a, b) for demands in traffic.inside for a, b, _ in demands
    )


def _find_slowest_bound(
    fabric: Fabric, question: NominalQuestion, traffic: Traffic
) -> Bound | None:
    """Returns the bound of the most loaded link or port; ``None`` if none is used."""
    found = [*_bound_links(fabric, question, traffic), *_bound_ports(fabric, traffic)]
    slowest = min(found, key=lambda bound: bound.bytes_per_s, default=None)
    if slowest is None:
        return None
    limit = min([*_limit_cuts(fabric, traffic), *_limit_nodes(fabric, traffic)])
    return slowest.with_limit(*limit)


def _find_striping_nominal(fabric: Fabric, question: NominalQuestion) -> Nominal:
    """Adds up the times of the steps. The limit is the slowest step alone, with full overlap."""
    seen = _restrict_fabric(fabric, question)
    bounds: dict[str, Bound] = {}
    for name, traffic in Traffic.steps_of_striping(question).items():
        if question.memory is Memory.HOST and not traffic.crossing:
            continue
        if not _is_joined(seen, traffic):
            return _add_assumptions(fabric, question, None)
        if bound := _find_slowest_bound(seen, question, traffic):
            bounds[name] = bound
    if not bounds:
        return Nominal(None, why="its messages use no link and no port that is described")
    rate = 1 / sum(1 / bound.bytes_per_s for bound in bounds.values())
    why = ", then ".join(
        f"{name} at {short_bandwidth(bound.bytes_per_s)} ({bound.why})"
        for name, bound in bounds.items()
    )
    name, last = min(bounds.items(), key=lambda item: item[1].limit or item[1].bytes_per_s)
    assumptions = ["its steps don't overlap"]
    if question.memory is Memory.HOST:
        assumptions.append("copies inside the host's memory cost nothing")
    found = Bound(rate, "steps after one another", why, assumptions=tuple(assumptions))
    limit_why = f"{name} alone: {last.limit_why or last.why}"
    return _add_assumptions(
        fabric, question, found.with_limit(last.limit or last.bytes_per_s, limit_why)
    )


def _bound_links(fabric: Fabric, question: NominalQuestion, traffic: Traffic) -> Iterator[Bound]:
    for demands in traffic.inside:
        if question.operation in _OF_TWO_RANKS:
            yield from (_bound_pair(fabric, a, b, traffic.counted) for a, b, _ in demands)
            continue
        for edge, load in fabric.edge_loads(demands).items():
            rate = fabric.capacity[edge] / load * traffic.counted
            why = f"{_format_messages(load)} over {_describe_edge(fabric, edge)}"
            if traffic.counted != 1:
                why += f", {format_bandwidth(fabric.capacity[edge] / load)} each"
            yield Bound(rate, "edge forwarding index", why)


def _format_messages(load: float) -> str:
    return f"{load:.3g} message{'' if load == 1 else 's'}"


def _bound_pair(fabric: Fabric, a: int, b: int, counted: float) -> Bound:
    path = fabric.widest_path(a, b)
    assert path is not None  # see _is_joined
    narrowest = min(pairwise(path), key=lambda hop: fabric.capacity[hop])
    through = [vertex for vertex in path[1:-1] if vertex < fabric.gpus]
    why = _describe_edge(fabric, narrowest)
    if through:
        why = f"by way of GPU {', '.join(map(str, through))}: {why}"
    return Bound(fabric.path_width(path) * counted, "widest of the shortest paths", why)


def _describe_edge(fabric: Fabric, edge: Edge) -> str:
    words = " and ".join(str(link) for link in fabric.links if {link.a, link.b} == {*edge})
    a, b = (f"GPU {v}" if v < fabric.gpus else "the switch" for v in edge)
    return f"{words} from {a} to {b}"


def _bound_ports(fabric: Fabric, traffic: Traffic) -> Iterator[Bound]:
    """Yields the bound of the most loaded port of each node."""
    ports = fabric.ports
    for crossing in traffic.crossing if ports else ():
        assert ports is not None
        loads: dict[tuple[int, str], float] = {}
        users: dict[tuple[int, str], int] = {}
        for (gpu, way), amount in crossing.items():
            port = (ports.of_gpu[gpu], way)
            loads[port] = loads.get(port, 0.0) + amount
            users[port] = users.get(port, 0) + 1
        port, load = max(loads.items(), key=lambda item: item[1])
        ranks, width = format_count(users[port], "rank"), short_bandwidth(ports.bandwidth)
        why = f"{_format_messages(load)} of {ranks} over a port of {width}"
        yield Bound(ports.bandwidth / load * traffic.counted, "network port", why)


def _limit_cuts(fabric: Fabric, traffic: Traffic) -> Iterator[tuple[float, str]]:
    for demands in traffic.inside:
        for part, capacity in fabric.node_cuts:
            leaving = sum(w for a, b, w in demands if a in part and b not in part)
            if leaving:
                why = fabric.leading_out(part, capacity)
                yield capacity / leaving * traffic.counted, why


def _limit_nodes(fabric: Fabric, traffic: Traffic) -> Iterator[tuple[float, str]]:
    for crossing in traffic.crossing:
        assert fabric.ports is not None
        for way in ("out", "in"):
            amount = sum(w for (_, gpu_way), w in crossing.items() if gpu_way == way)
            if amount:
                rate = fabric.ports.together / amount * traffic.counted
                yield rate, f"all {fabric.ports.count} ports of the node"


def _find_copy_nominal(fabric: Fabric) -> Nominal:
    if fabric.memory is None:
        return Nominal(None, why="the bandwidth of the GPU's memory is not described")
    why = f"{format_bandwidth(fabric.memory)} of memory, each byte read and written"
    return Bound(fabric.memory / 2, "memory bandwidth", why, origin=fabric.origin)


def _find_staged_nominal(fabric: Fabric, question: NominalQuestion) -> Nominal:
    """Adds up the times of the copy to the host, the network, and the copy to the device."""
    if fabric.host_link is None:
        return Nominal(None, why="the link between a GPU and its processor is not described")
    shares = _count_copied(question)
    if shares is None:
        return Nominal(None, why=f"there is no model of {question.operation} through the host")
    down, up = shares
    factor = collectives.bus_factor(question.operation, question.ranks)
    times = (down + up) / fabric.host_link
    link = format_bandwidth(fabric.host_link)
    why = f"{down:.3g} + {up:.3g} of the bytes over {link} to the host"
    assumptions = ["nothing overlaps", "copies inside the host's memory cost nothing"]
    if question.nodes > 1:
        network = _find_nominal(fabric, replace(question, memory=Memory.HOST))
        if network.bytes_per_s is None:
            return network
        times += factor / network.bytes_per_s
        why += f", then {network.why}"
        assumptions += network.assumptions
    nominal = Bound(factor / times, "store and forward", why)
    return replace(nominal, assumptions=tuple(assumptions), origin=fabric.origin)


def _count_copied(question: NominalQuestion) -> tuple[float, float] | None:
    """Returns what the busiest rank copies to the host and back, relative to the message size."""
    n = question.ranks
    shares = {"allgather": (1 / n, 1.0), "reduce-scatter": (1.0, 1 / n)}
    shares |= dict.fromkeys(_MOVED_ALIKE, (1.0, 1.0))
    return shares.get(question.operation)


#: Values that the plain form of a shape omits.
_DEFAULTS = {"group_size": 1, "active": 1, "direction": "outbound"}

#: Key of a campaign's settings that holds a fabric as plain data.
FABRIC = "fabric"


def stored_fabric(settings: Mapping[str, Any], header: Mapping[str, Any] | None) -> Fabric | None:
    """Returns a campaign's fabric: as described, else by the links in a run's ``header``."""
    # Only links are stored, so that a corrected model applies to old measurements too.
    if described := settings.get(FABRIC):
        return Fabric.of_plain(described)
    ranks = (header or {}).get("rank_info")
    return fabric_of_ranks(ranks) if ranks else None


def stored_nominal(
    workload: Mapping[str, Any], fabric: Fabric | None, header: Mapping[str, Any] | None
) -> Nominal:
    """Returns the nominal bandwidth of a stored workload, or why there is none.

    Args:
        workload: plain data; its ``flows`` are the messages of a matrix.
        header: header of a run's records, with the values that the benchmark chose itself.
    """
    if fabric is None:
        return Nominal(None, why="neither a system description nor links that a driver names")
    if workload.get("emulated_nodes"):
        return Nominal(None, why="its nodes are emulated on one machine, over sockets")
    question = stored_question(workload, header)
    if question.operation == "matrix" and not question.flows:
        return Nominal(None, why="the messages of its matrix are not stored: there are too many")
    shape = workload.get("shape") or {}
    parts = [shape.get(key) for key in ("inside", "between", "assemble")]
    if "mpi-staged" in parts and question.memory is Memory.DEVICE:
        return Nominal(None, why="there is no model of messages of which some go through the host")
    return nominal_bandwidth(fabric, question)


def stored_question(
    workload: Mapping[str, Any], header: Mapping[str, Any] | None
) -> NominalQuestion:
    """Returns the question for a stored workload; arguments as for ``stored_nominal``."""
    shape = {**_DEFAULTS, **((header or {}).get("shape") or {}), **(workload.get("shape") or {})}
    return NominalQuestion(
        operation=str(workload["operation"]),
        ranks=int(workload["ranks"]),
        nodes=int(workload.get("nodes", 1)),
        memory=Memory.of_backend(str(workload.get("backend", "mpi-host"))),
        group_size=int(shape["group_size"]),
        active=int(shape["active"]),
        direction=str(shape["direction"]),
        flows=tuple((int(a), int(b), float(amount)) for a, b, amount in workload.get("flows", ())),
        window=int(workload.get("window") or shape.get("window") or 0),
    )
