"""Finds the description of a machine, or descriptions of systems with similar nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from commtune.documents.quantities import short_bandwidth
from commtune.documents.yaml_document import load_shipped
from commtune.systems.detection.seen import Clues, SeenMachine
from commtune.systems.schema import System

#: Data sheets and drivers differ in a GPU's memory by at most this share.
_MEMORY_TOLERANCE = 0.15


@dataclass(frozen=True)
class Match:
    """A matching description with the reasons, strongest first; a higher rank is more certain."""

    system: System
    by: tuple[str, ...]
    rank: int


def recognize_system(clues: Clues, systems: Iterable[System]) -> list[Match]:
    """Returns the system whose key `recognized` fits most certainly; several if equally so."""
    found = [match for system in systems if (match := _match(clues, system))]
    highest = max((match.rank for match in found), default=0)
    return [match for match in found if match.rank == highest]


def _match(clues: Clues, system: System) -> Match | None:
    known = system.recognized
    if known is None:
        return None
    by: list[str] = []
    # A cluster name outweighs variables and host name together, a variable the host name.
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
    """Returns the first pattern that fits the full or the short host name; empty for none."""
    names = {host.lower(), host.lower().partition(".")[0]} - {""}
    for pattern in patterns:
        wanted = re.compile(".*".join(map(re.escape, pattern.lower().split("*"))))
        if any(wanted.fullmatch(name) for name in names):
            return pattern
    return ""


def look_alikes(seen: SeenMachine, systems: Iterable[System]) -> list[Match]:
    """Returns the systems whose nodes have the same GPUs, and ports if they are known.

    They need not be this machine: many have the same nodes.
    """
    found = [(system, tuple(_alike(seen, system))) for system in systems]
    matches = [Match(system, by, len(by)) for system, by in found if by]
    return sorted(matches, key=lambda match: -match.rank)


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
    """Returns whether two amounts differ by at most a share of the larger."""
    return abs(one - other) <= tolerance * max(one, other)


#: Names of GPUs: A100, GH200, MI250X, L40S.
_GPU = re.compile(r"(?<![A-Z0-9])[A-Z]{1,3}\d{2,4}[A-Z]?(?![A-Z0-9])")


@cache
def _names(kind: str) -> Any:
    return load_shipped("systems/detection", "hardware_names").data[kind]


def gpu_names(found: str) -> tuple[str, ...]:
    """Returns the names that descriptions may have for a GPU with this driver's name.

    ``gfx90a`` gives all GPUs of that target: the driver doesn't tell which it is.
    """
    if found in _names("amd_gpus"):
        return (*_names("amd_gpus")[found], found.upper())
    return tuple(_GPU.findall(found.upper())) or (found.upper(),)


def _is_same_gpu(described: str, found: str) -> bool:
    """Returns whether a description's name and a driver's may mean the same model."""
    if found not in _names("amd_gpus") and not _GPU.search(found.upper()):
        return found.upper() in described.upper()
    return not set(_GPU.findall(described.upper())).isdisjoint(gpu_names(found))


def adapter_name(found: str) -> str:
    """Returns the trade name of a network adapter, from the name of its device or driver."""
    if match := re.fullmatch(r"MT(\d+)(?:_.*)?", found):
        return str(_names("mellanox_adapters").get(match[1], found))
    others = _names("other_adapters").items()
    return next((name for begin, name in others if found.startswith(begin)), found)


def _is_same_adapter(described: str, found: str) -> bool | None:
    """Returns whether two names may mean the same adapter; ``None`` if one is too general."""
    names = (found.lower(), *_names("also_called").get(found, ()))
    if any(name in described.lower() for name in names):
        return True
    says = any(family in described.lower() for family in _names("families"))
    return False if says and is_trade_name(found) else None


def is_trade_name(found: str) -> bool:
    """Returns whether an adapter's name is a trade name, not its driver's."""
    return any(found in _names(f"{kind}_adapters").values() for kind in ("mellanox", "other"))
