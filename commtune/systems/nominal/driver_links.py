"""The links of a node as its GPUs' driver names them, where nobody has described the system."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from commtune.systems.nominal.fabric import Fabric, Link

#: What stands for the other end of links that lead to a switch.
_SWITCH = "switch"
_PCI = re.compile(r"([0-9a-f]+):([0-9a-f]{2}):([0-9a-f]{2})\.[0-9a-f]\Z", re.IGNORECASE)
#: Nominal bytes per second of one NVLink in one direction, by version: NVIDIA's figures for P100
#: (4 links, 160 GB/s both ways), V100 (6, 300), A100 (12, 600), H100 (18, 900), B200 (18, 1800).
#: Drivers say what the wires carry (26.6 GB/s for 4.0), which is more than data can use.
_NVLINK = {"1": 20e9, "2": 25e9, "3": 25e9, "4": 25e9, "5": 50e9}
#: By vertices, the lower first: links side by side, and bytes per second of each.
_Found = dict[tuple[int, int], tuple[int, float]]


def fabric_of_ranks(rank_info: Sequence[Mapping[str, Any]]) -> Fabric | None:
    """The links between GPUs of rank 0's node, from the `rank_info` of a record's header.

    Each rank's ``gpu`` has its ``pci`` address and ``links``, bundles of equal ones: ``to``
    (``gpu``, ``switch``, ``cpu``, ``unknown``), ``pci`` of the other end, number of ``links``,
    ``version`` of NVLink, ``link_Bps``. GPUs are numbered by local rank, and GPUs that no rank
    uses follow. All switches count as one that lets everything through, and an end that the driver
    can't name is taken for a switch. What leads out of the node is not known.

    Returns:
        ``None`` where a rank of the node has no GPU, no links were read, or ranks share a GPU.
    """
    ranks = [rank for rank in rank_info if rank["node"] == rank_info[0]["node"]]
    gpus = [rank.get("gpu") or {} for rank in sorted(ranks, key=lambda r: int(r["local_rank"]))]
    own = [normalise_address(gpu.get("pci")) for gpu in gpus]
    if None in own or len(set(own)) != len(own):
        return None
    numbers = {pci: number for number, pci in enumerate(own)}
    links = [_links(gpu) for gpu in gpus]
    for idle in sorted({peer for found in links for peer in found} - {_SWITCH, *numbers}):
        numbers[idle] = len(numbers)
    found: _Found = {}
    for number, here in enumerate(links):
        for peer, (count, bandwidth) in here.items():
            end = len(numbers) if peer == _SWITCH else numbers[peer]
            _join(found, number, end, count, bandwidth)
    if not found:
        return None
    return Fabric(
        origin="links that the driver names" + _guessed(gpus),
        gpus=len(numbers),
        links=tuple(Link(a, b, *sides) for (a, b), sides in sorted(found.items())),
    )


def normalise_address(written: object) -> str | None:
    """A PCI address in one spelling: tools write 4 or 8 digits of the domain, and either case."""
    match = _PCI.match(written) if isinstance(written, str) else None
    if match is None:
        return None
    return f"{int(match[1], 16):04x}:{match[2]}:{match[3]}".lower()


def _links(gpu: Mapping[str, Any]) -> dict[str, tuple[int, float]]:
    """Number and bandwidth by the other end; bundles to several switches are put together."""
    found: dict[str, tuple[int, float]] = {}
    for bundle in gpu.get("links") or ():
        peer = _peer(bundle)
        count, bandwidth = int(bundle.get("links") or 0), _bandwidth(bundle)
        if peer is None or count < 1 or bandwidth <= 0:
            continue
        before, theirs = found.get(peer, (0, bandwidth))
        found[peer] = (before + count, min(theirs, bandwidth))
    return found


def _peer(bundle: Mapping[str, Any]) -> str | None:
    """The address of another GPU, or the switch; ``None`` for what is neither."""
    if bundle.get("to") == "gpu":
        return normalise_address(bundle.get("pci"))
    return _SWITCH if bundle.get("to") in (_SWITCH, "unknown") else None


def _bandwidth(bundle: Mapping[str, Any]) -> float:
    known = _NVLINK.get(str(bundle.get("version") or "").split(".")[0])
    return known or float(bundle.get("link_Bps") or 0)


def _guessed(gpus: Sequence[Mapping[str, Any]]) -> str:
    ends = [bundle.get("to") for gpu in gpus for bundle in gpu.get("links") or ()]
    return ", whose other ends are taken for a switch" if "unknown" in ends else ""


def _join(found: _Found, a: int, b: int, count: int, bandwidth: float) -> None:
    """Both ends name a link; where they differ, the lesser number is what works."""
    edge = (min(a, b), max(a, b))
    said = found.get(edge, (count, bandwidth))
    found[edge] = (min(said[0], count), min(said[1], bandwidth))
