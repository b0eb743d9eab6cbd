"""A machine held against a description, fact by fact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from commtune.formatting import format_size, format_wall_time
from commtune.systems.detection.recognition import is_about, is_same_adapter, is_same_gpu
from commtune.systems.detection.seen import SeenMachine, SeenPartition
from commtune.systems.nominal.fabric import Fabric, fabric_of
from commtune.systems.schema import Partition, System
from commtune.systems.units import short_bandwidth

#: The kernel keeps some of what is built in, firmware and Slurm keep more.
_MEMORY = 0.12
#: Speeds are told rounded.
_SPEED = 0.01


class FactVerdict(StrEnum):
    """How what is found stands to what is described."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNSEEN = "can't be seen here"


@dataclass(frozen=True)
class FactComparison:
    """One fact. ``found`` says why, where it can't be seen."""

    what: str
    described: str
    found: str
    verdict: FactVerdict


def compare_machine(seen: SeenMachine, system: System) -> list[FactComparison]:
    """What a description says, and how this machine stands to it. Nothing undescribed is told."""
    elsewhere = _why_elsewhere(seen, system)
    node = _by_slurm(seen, system, elsewhere) if elsewhere else _node(seen, system)
    return [*node, *_partitions(seen, system)]


def _why_elsewhere(seen: SeenMachine, system: System) -> str:
    """Why this is not a node of the described kind; empty if it may be one."""
    if system.gpus is not None and seen.gpus is None:
        if system.gpus.vendor == "intel":
            return "Intel's GPUs are not read"
        return "no GPU is here: a login node, or another kind of node"
    if system.gpus is None and seen.slurm is not None and not seen.slurm.is_node:
        return "this is no node that Slurm lists"
    return ""


def _node(seen: SeenMachine, system: System) -> Iterator[FactComparison]:
    node = system.node
    yield from _gpus(seen, system)
    usable = f", {node.usable_cores} for jobs" if node.usable_cores else ""
    fits = seen.cores in (node.cores, node.usable_cores)
    yield _held("cores", f"{node.cores}{usable}", str(seen.cores), fits)
    if node.numa_nodes:
        fits = seen.numa_nodes == node.numa_nodes
        yield _held("NUMA nodes", str(node.numa_nodes), str(seen.numa_nodes), fits)
    fits = is_about(seen.memory, node.memory, _MEMORY)
    yield _held("memory", format_size(node.memory), _gib(seen.memory), fits)
    yield from _nics(seen, system)


def _gpus(seen: SeenMachine, system: System) -> Iterator[FactComparison]:
    gpus, found = system.gpus, seen.gpus
    if gpus is None:
        if found is not None:
            yield _held("GPUs", "none", f"{found.count} x {found.model}", False)
        return
    assert found is not None  # else this is elsewhere
    same = found.vendor == gpus.vendor and is_same_gpu(gpus.model, found.model)
    yield _held("GPU model", gpus.model, found.model, same)
    yield _held("GPUs", str(gpus.count), str(found.count), gpus.count == found.count)
    fits = is_about(found.memory or 0, gpus.memory, _MEMORY)
    why = "the driver's files don't say it"
    yield _fact("GPU memory", format_size(gpus.memory), _gib(found.memory), fits, why)
    if gpus.numa:
        fits, why = list(found.numa) == gpus.numa, "the kernel doesn't say"
        numbers = _numbers(gpus.numa), _numbers(found.numa)
        yield _fact("NUMA nodes of the GPUs", *numbers, fits, why)
    yield from _links(fabric_of(system), found.fabric)


def _links(described: Fabric, found: Fabric | None) -> Iterator[FactComparison]:
    if not described.links:
        return
    if found is None:
        yield _unseen("links of the GPUs", _sent(described), "no driver names them here")
        return
    fits = described.gpus == found.gpus and all(
        is_about(described.capacity.get(edge, 0), found.capacity.get(edge, 0), _SPEED)
        for edge in {*described.capacity, *found.capacity}
    )
    yield _held("links of the GPUs", _sent(described), _sent(found), fits)


def _sent(fabric: Fabric) -> str:
    amounts = sorted({fabric.injection(gpu) for gpu in range(fabric.gpus)})
    each = short_bandwidth(amounts[0])
    return f"{each} a GPU" if len(amounts) == 1 else f"{each} to {short_bandwidth(amounts[-1])}"


def _nics(seen: SeenMachine, system: System) -> Iterator[FactComparison]:
    nics, ports = system.nics, seen.network_ports
    speed = short_bandwidth(nics.bandwidth)
    if not ports:
        why = "no network port that is up is seen"
        yield _unseen("network ports", f"{nics.count} x {nics.model}, {speed}", why)
        return
    # A port that the description names is looked at even where others are faster.
    ports = tuple(port for port in seen.ports if port.name in nics.devices) or ports
    first = ports[0]
    same = is_same_adapter(nics.model, first.model)
    if same is None:
        yield _unseen("port model", nics.model, f"{first.model}: may be the same")
    else:
        yield _held("port model", nics.model, first.model, same)
    names = " ".join(port.name for port in ports)
    yield _held("ports", str(nics.count), f"{len(ports)}: {names}", len(ports) == nics.count)
    found = short_bandwidth(first.bandwidth) if first.bandwidth else ""
    fits = is_about(first.bandwidth or 0, nics.bandwidth, _SPEED)
    yield _fact("port speed", speed, found, fits, "the ports don't say")


def _by_slurm(seen: SeenMachine, system: System, why: str) -> Iterator[FactComparison]:
    """The node's facts from a place that is no such node: what Slurm knows of those that are."""
    node, gpus, nics = system.node, system.gpus, system.nics
    name = system.slurm.partition if system.slurm else ""
    known = (seen.slurm.partition(name) if seen.slurm else None) or SeenPartition(name)
    if gpus:
        yield _unseen("GPU model", gpus.model, why)
        fits = known.gpus == gpus.count
        yield _fact("GPUs", str(gpus.count), _by_words(known.gpus), fits, why)
    fits = known.cores in (node.cores, node.usable_cores)
    yield _fact("cores", str(node.cores), _by_words(known.cores), fits, why)
    if node.numa_nodes:
        yield _unseen("NUMA nodes", str(node.numa_nodes), why)
    fits = is_about(known.memory, node.memory, _MEMORY)
    yield _fact("memory", format_size(node.memory), _by_words(_gib(known.memory)), fits, why)
    speed = short_bandwidth(nics.bandwidth)
    yield _unseen("network ports", f"{nics.count} x {nics.model}, {speed}", why)
    if gpus and gpus.numa:
        yield _unseen("NUMA nodes of the GPUs", _numbers(gpus.numa), why)


def _by_words(found: int | str) -> str:
    return f"{found}, says Slurm" if found else ""


def _partitions(seen: SeenMachine, system: System) -> Iterator[FactComparison]:
    if system.scheduler is not None:
        kind = system.scheduler.kind
        what = f"scheduler {kind.upper()}"
        if seen.scheduler:
            yield _held(what, "runs jobs", f"{seen.scheduler.upper()}", seen.scheduler == kind)
        else:
            yield _unseen(what, "runs jobs", "its commands are not on PATH")
        return
    for name, partition in system.jobs.partitions.items():
        yield _partition(seen, name, partition)


def _partition(seen: SeenMachine, name: str, partition: Partition) -> FactComparison:
    what = f"partition {name}"
    described = _limits(partition.most_nodes, partition.longest) or "its limits are not described"
    if seen.slurm is None:
        return _unseen(what, described, "no Slurm answers here")
    found = seen.slurm.partition(name)
    if found is None:
        # sinfo hides those that the user may not use.
        return _held(what, described, "sinfo does not list it (to you)", False)
    fits = _within(partition.most_nodes, found.most_nodes) and _within(
        partition.longest, found.longest
    )
    limits = _limits(found.most_nodes, found.longest) or "no limits"
    return _held(what, described, limits, fits)


def _within(described: float | None, found: float | None) -> bool:
    """Whether a limit holds: one that isn't described may be any; a site's QOS may be narrower."""
    return described is None or found is None or described <= found


def _limits(most_nodes: int | None, longest: float | None) -> str:
    words = [f"to {most_nodes} nodes"] if most_nodes else []
    words += [f"to {format_wall_time(longest)}"] if longest else []
    return ", ".join(words)


def _held(what: str, described: str, found: str, fits: bool) -> FactComparison:
    return FactComparison(
        what, described, found, FactVerdict.AGREES if fits else FactVerdict.DIFFERS
    )


def _fact(what: str, described: str, found: str, fits: bool, why: str) -> FactComparison:
    """What is found and whether it fits; where nothing is, why."""
    return _held(what, described, found, fits) if found else _unseen(what, described, why)


def _unseen(what: str, described: str, why: str) -> FactComparison:
    return FactComparison(what, described, why, FactVerdict.UNSEEN)


def _gib(amount: int | None) -> str:
    return f"{amount / 2**30:.0f} GiB" if amount else ""


def _numbers(numbers: list[int] | tuple[int, ...]) -> str:
    return " ".join(map(str, numbers))
