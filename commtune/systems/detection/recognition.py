"""Which described system a machine is, and how it stands to the description, fact by fact."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from commtune.documents.quantities import short_bandwidth
from commtune.documents.yaml_document import load_shipped
from commtune.formatting import format_size, format_wall_time
from commtune.systems.detection.seen import Clues, SeenMachine, SeenPartition
from commtune.systems.nominal.fabric import Fabric, fabric_of
from commtune.systems.schema import Partition, System

#: Data sheets and drivers count a GPU's memory differently, by less than this.
_MEMORY_TOLERANCE = 0.15


@dataclass(frozen=True)
class Match:
    """A description that fits: by what, the surest first, in words. A higher rank is surer."""

    system: System
    by: tuple[str, ...]
    rank: int


def recognize_system(clues: Clues, systems: Iterable[System]) -> list[Match]:
    """The systems that the machine is, by their key `recognized`; the surest first."""
    found = [_match(clues, system) for system in systems]
    return sorted((match for match in found if match), key=lambda match: -match.rank)


def surest_matches(matches: list[Match]) -> list[Match]:
    """Of what was recognized, those that nothing surer stands against."""
    return [match for match in matches if match.rank == matches[0].rank]


def _match(clues: Clues, system: System) -> Match | None:
    known = system.recognized
    if known is None:
        return None
    by: list[str] = []
    # The cluster's name counts more than all variables together, a variable more than the host's
    # name. More than one is found only where descriptions name the same things.
    rank = 0
    if clues.cluster and clues.cluster in known.cluster:
        by.append(f"Slurm's cluster name {clues.cluster}")
        rank += 4
    values = [(n, v) for n, v in known.environment.items() if clues.environment.get(n) == v]
    if values:
        by += [f"the variable {name}={value}" for name, value in values]
        rank += 2
    if pattern := _host_pattern(clues.host, known.hosts):
        by.append(f"the host name {clues.host} ({pattern})")
        rank += 1
    return Match(system, tuple(by), rank) if by else None


def _host_pattern(host: str, patterns: Iterable[str]) -> str:
    """The first pattern that the name fits, whole or before its first dot; empty for none."""
    names = {host.lower(), host.lower().partition(".")[0]} - {""}
    for pattern in patterns:
        wanted = re.compile(".*".join(map(re.escape, pattern.lower().split("*"))))
        if any(wanted.fullmatch(name) for name in names):
            return pattern
    return ""


def look_alikes(seen: SeenMachine, systems: Iterable[System]) -> list[Match]:
    """The systems whose nodes have the shape of this one: GPUs, and ports where they are seen."""
    # It says nothing of which machine it is: many have the same nodes.
    found = []
    for system in systems:
        by = tuple(_alike(seen, system))
        if by:
            found.append(Match(system, by, len(by)))
    return sorted(found, key=lambda match: -match.rank)


def _alike(seen: SeenMachine, system: System) -> Iterator[str]:
    gpus, described, nics = seen.gpus, system.gpus, system.nics
    if gpus is None or described is None or gpus.vendor != described.vendor:
        return
    if gpus.count != described.count or not _is_same_gpu(described.model, gpus.model):
        return
    if gpus.memory and not _is_about(gpus.memory, described.memory, _MEMORY_TOLERANCE):
        return
    ports = seen.network_ports
    known = bool(ports) and ports[0].bandwidth is not None
    if known:
        model = _is_same_adapter(nics.model, ports[0].model)
        same_speed = _is_about(ports[0].bandwidth or 0, nics.bandwidth, 0.01)
        if len(ports) != nics.count or not same_speed or model is False:
            return
    yield f"{gpus.count} x {gpus.model}"
    if known:
        yield f"{len(ports)} x {ports[0].model}, {short_bandwidth(ports[0].bandwidth or 0)} each"


def _is_about(one: float, other: float, tolerance: float) -> bool:
    """Whether two amounts differ by at most a share of the larger."""
    return abs(one - other) <= tolerance * max(one, other)


#: Letters and a number as GPUs are called: A100, GH200, MI250X, L40S.
_GPU = re.compile(r"(?<![A-Z0-9])[A-Z]{1,3}\d{2,4}[A-Z]?(?![A-Z0-9])")


@cache
def _names(kind: str) -> Any:
    return load_shipped("systems/detection", "hardware_names").data[kind]


def gpu_names(found: str) -> tuple[str, ...]:
    """What a GPU may be called in a description, from what the driver calls it.

    ``gfx90a`` gives all GPUs of that target: the driver doesn't say which.
    """
    if found in _names("amd_gpus"):
        return (*_names("amd_gpus")[found], found.upper())
    return tuple(_GPU.findall(found.upper())) or (found.upper(),)


def _is_same_gpu(described: str, found: str) -> bool:
    """Whether a description's name and a driver's may mean the same model."""
    if found not in _names("amd_gpus") and not _GPU.search(found.upper()):
        return found.upper() in described.upper()
    return not set(_GPU.findall(described.upper())).isdisjoint(gpu_names(found))


def adapter_name(found: str) -> str:
    """The trade name of a network adapter, from what the device or driver is called."""
    if match := re.fullmatch(r"MT(\d+)(?:_.*)?", found):
        return str(_names("mellanox_adapters").get(match[1], found))
    others = _names("other_adapters").items()
    return next((name for begin, name in others if found.startswith(begin)), found)


def _is_same_adapter(described: str, found: str) -> bool | None:
    """Whether two names may mean the same adapter; ``None`` where one doesn't say which."""
    names = (found.lower(), *_names("also_called").get(found, ()))
    if any(name in described.lower() for name in names):
        return True
    says = any(family in described.lower() for family in _names("families"))
    return False if says and is_trade_name(found) else None


def is_trade_name(found: str) -> bool:
    """Whether an adapter's name is one that people use, and not only its driver's."""
    return any(found in _names(f"{kind}_adapters").values() for kind in ("mellanox", "other"))


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
        return "Slurm does not list this node"
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
    fits = _is_about(seen.memory, node.memory, _MEMORY)
    yield _held("memory", format_size(node.memory), _gib(seen.memory), fits)
    yield from _nics(seen, system)


def _gpus(seen: SeenMachine, system: System) -> Iterator[FactComparison]:
    gpus, found = system.gpus, seen.gpus
    if gpus is None:
        if found is not None:
            yield _held("GPUs", "none", f"{found.count} x {found.model}", False)
        return
    assert found is not None  # else this is elsewhere
    same = found.vendor == gpus.vendor and _is_same_gpu(gpus.model, found.model)
    yield _held("GPU model", gpus.model, found.model, same)
    yield _held("GPUs", str(gpus.count), str(found.count), gpus.count == found.count)
    fits = _is_about(found.memory or 0, gpus.memory, _MEMORY)
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
        _is_about(described.capacity.get(edge, 0), found.capacity.get(edge, 0), _SPEED)
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
    same = _is_same_adapter(nics.model, first.model)
    if same is None:
        yield _unseen("port model", nics.model, f"{first.model}: may be the same")
    else:
        yield _held("port model", nics.model, first.model, same)
    names = " ".join(port.name for port in ports)
    yield _held("ports", str(nics.count), f"{len(ports)}: {names}", len(ports) == nics.count)
    found = short_bandwidth(first.bandwidth) if first.bandwidth else ""
    fits = _is_about(first.bandwidth or 0, nics.bandwidth, _SPEED)
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
    fits = _is_about(known.memory, node.memory, _MEMORY)
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
    return _held(what, described, found, fits) if found else _unseen(what, described, why)


def _unseen(what: str, described: str, why: str) -> FactComparison:
    return FactComparison(what, described, why, FactVerdict.UNSEEN)


def _gib(amount: int | None) -> str:
    return f"{amount / 2**30:.0f} GiB" if amount else ""


def _numbers(numbers: list[int] | tuple[int, ...]) -> str:
    return " ".join(map(str, numbers))
