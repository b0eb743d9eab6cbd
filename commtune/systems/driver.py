"""The links of a node as its GPUs' driver names them, where nobody has described the system."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from commtune.systems.fabric import Fabric, Link

#: What stands for a peer where links lead to a switch.
SWITCH = "switch"
_PCI = re.compile(r"([0-9a-f]+):([0-9a-f]{2}):([0-9a-f]{2})\.[0-9a-f]\Z", re.IGNORECASE)
#: Two vertices, the lower first: links side by side, and bytes per second of each.
_Found = dict[tuple[int, int], tuple[int, float]]


def fabric_of_ranks(rank_info: Sequence[Mapping[str, Any]]) -> Fabric | None:
    """The links between GPUs of rank 0's node, from the `rank_info` of a record's header.

    Each rank's ``gpu`` has its ``pci`` address and ``links``: ``peer`` (another GPU's address, or
    ``switch``), ``count`` and ``bytes_per_s_each``. GPUs are numbered by local rank, and GPUs that
    no rank uses follow. Switches count as one that lets everything through. What leads out of the
    node is not known.

    Returns:
        ``None`` where a rank of the node has no GPU, no links were read, or ranks share a GPU.
    """
    ranks = [rank for rank in rank_info if rank["node"] == rank_info[0]["node"]]
    gpus = [rank.get("gpu") or {} for rank in sorted(ranks, key=lambda r: int(r["local_rank"]))]
    own = [address(gpu.get("pci")) for gpu in gpus]
    if None in own or len(set(own)) != len(own):
        return None
    numbers = {pci: number for number, pci in enumerate(own)}
    links = [_links(gpu) for gpu in gpus]
    for idle in sorted({peer for found in links for peer, _, _ in found} - {SWITCH, *numbers}):
        numbers[idle] = len(numbers)
    found: _Found = {}
    for number, here in enumerate(links):
        for peer, count, bandwidth in here:
            end = len(numbers) if peer == SWITCH else numbers[peer]
            _join(found, number, end, count, bandwidth)
    if not found:
        return None
    return Fabric(
        origin="links that the driver names",
        gpus=len(numbers),
        links=tuple(Link(a, b, *sides) for (a, b), sides in sorted(found.items())),
    )


def address(written: object) -> str | None:
    """A PCI address in one spelling: tools write 4 or 8 digits of the domain, and either case."""
    match = _PCI.match(written) if isinstance(written, str) else None
    if match is None:
        return None
    return f"{int(match[1], 16):04x}:{match[2]}:{match[3]}".lower()


def _links(gpu: Mapping[str, Any]) -> list[tuple[str, int, float]]:
    """Peer, number and bandwidth of each; links to processors and unknown things are left out."""
    found = []
    for link in gpu.get("links") or ():
        peer = SWITCH if link.get("peer") == SWITCH else address(link.get("peer"))
        count, bandwidth = int(link.get("count") or 0), float(link.get("bytes_per_s_each") or 0)
        if peer and count > 0 and bandwidth > 0:
            found.append((peer, count, bandwidth))
    return found


def _join(found: _Found, a: int, b: int, count: int, bandwidth: float) -> None:
    """Both ends name a link; where they differ, the lesser number is what works."""
    edge = (min(a, b), max(a, b))
    said = found.get(edge, (count, bandwidth))
    found[edge] = (min(said[0], count), min(said[1], bandwidth))
