"""What GPUs have beside their names: memory, NUMA node, and the links between them.

NVIDIA's are asked through nvidia-smi, AMD's read from /sys. The links of both become the bundles
of links that `commtune.systems.driver` makes a graph of.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commtune.cluster.machine.description import Gpu, parse_kfd_node
from commtune.systems.detection.seen import SeenGpus
from commtune.systems.nominal.fabric import Fabric, fabric_of_ranks, normalise_address

#: Runs a program and returns what it prints; empty where it can't or fails.
Ask = Callable[[Sequence[str]], str]

_QUERY = (
    "nvidia-smi",
    "--query-gpu=name,memory.total,pci.bus_id",
    "--format=csv,noheader,nounits",
)
_TOPOLOGY = ("nvidia-smi", "topo", "-m")
_STATUS = ("nvidia-smi", "nvlink", "--status")
_REMOTE = ("nvidia-smi", "nvlink", "--remotelinkinfo")

_KFD = "sys/class/kfd/kfd/topology/nodes"
#: KFD's number for links between GPUs, and its weight of a direct one.
_XGMI, _DIRECT = "11", 15
#: Kinds of memory banks that are on the GPU.
_FRAME_BUFFERS = ("1", "2")
_NEAR_ENOUGH = 0.08
#: What NVLinks are sold for, bytes per second in one direction.
_NVLINKS = (20e9, 25e9, 50e9)


@dataclass(frozen=True)
class _Part:
    """One GPU: memory in bytes, PCI address as /sys writes it, NUMA node."""

    memory: int | None
    pci: str
    numa: int | None
    links: tuple[dict[str, Any], ...] = ()


def inspect_gpus(gpus: Sequence[Gpu], root: Path, ask: Ask) -> SeenGpus | None:
    """The GPUs of this node, with all that drivers say of them; ``None`` without GPUs.

    Args:
        gpus: as ``machine.describe_machine`` found them. Of several vendors, the first counts.
        root: where /proc and /sys are.
        ask: runs nvidia-smi.
    """
    if not gpus:
        return None
    own = [gpu for gpu in gpus if gpu.vendor == gpus[0].vendor]
    parts, asked = _amd(root) if own[0].vendor == "amd" else _nvidia(root, ask)
    visible = len(parts) if 0 < len(parts) < len(own) else None
    # Which of them a job's are is not known.
    numa = [part.numa for part in parts] if len(parts) == len(own) else []
    memory = {part.memory for part in parts}
    return SeenGpus(
        vendor=own[0].vendor,
        model=Counter(gpu.model for gpu in own).most_common(1)[0][0],
        count=len(own),
        memory=memory.pop() if len(memory) == 1 else None,
        numa=tuple(n for n in numa if n is not None) if None not in numa else (),
        fabric=_fabric(parts) if visible is None else None,
        asked=asked,
        visible=visible,
    )


def _fabric(parts: Sequence[_Part]) -> Fabric | None:
    ranks = [
        {"node": 0, "local_rank": i, "gpu": {"pci": part.pci, "links": part.links}}
        for i, part in enumerate(parts)
    ]
    return fabric_of_ranks(ranks) if len(ranks) > 1 else None


def _numa(root: Path, pci: str) -> int | None:
    """The NUMA node of a PCI device; ``None`` where the kernel doesn't know (-1)."""
    text = _read(root / "sys/bus/pci/devices" / pci / "numa_node").strip()
    return int(text) if text.isdigit() else None


def _nvidia(root: Path, ask: Ask) -> tuple[list[_Part], tuple[str, ...]]:
    """By nvidia-smi; without it, addresses from the driver's files."""
    listed = _parse_query(ask(_QUERY))
    if not listed:
        folders = sorted((root / "proc/driver/nvidia/gpus").glob("*/information"))
        names = [file.parent.name for file in folders]
        return [_Part(None, pci, _numa(root, pci)) for pci in names], ("/proc/driver/nvidia",)
    matrix, status, remote = ask(_TOPOLOGY), ask(_STATUS), ask(_REMOTE)
    bundles = _find_nvlinks([pci for _, pci in listed], matrix, status, remote)
    parts = [
        _Part(memory, pci, _numa(root, pci), links)
        for (memory, pci), links in zip(listed, bundles, strict=True)
    ]
    return parts, tuple(" ".join(question) for question in (_QUERY, _TOPOLOGY, _STATUS, _REMOTE))


def _parse_query(text: str) -> list[tuple[int | None, str]]:
    """Memory (bytes) and PCI address of each GPU, from what ``QUERY`` prints."""
    found = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.rsplit(",", 2)]
        pci = re.fullmatch(r"0*([0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)", fields[-1])
        if len(fields) == 3 and pci:
            memory = int(fields[1]) * 2**20 if fields[1].isdigit() else None
            found.append((memory, pci[1].lower()))
    return found


def _find_nvlinks(
    addresses: Sequence[str], matrix: str, status: str, remote: str
) -> list[tuple[dict[str, Any], ...]]:
    """The bundles of links of each GPU.

    Args:
        addresses: PCI addresses of the GPUs.
        matrix: what ``nvidia-smi topo -m`` prints: links between each two, direct or by switches.
        status: what ``nvidia-smi nvlink --status`` prints: the speed of each link.
        remote: what ``nvidia-smi nvlink --remotelinkinfo`` prints: where each leads.
    """
    pairs = _parse_matrix(matrix)
    speeds, ends = _parse_status(status), _parse_remote(remote)
    numbers = {normalise_address(pci): i for i, pci in enumerate(addresses)}
    found: list[tuple[dict[str, Any], ...]] = []
    for gpu in range(len(addresses)):
        speed = _nominal(speeds.get(gpu, ()))
        peers = Counter(numbers.get(normalise_address(end)) for end in ends.get(gpu, ()))
        own = {b: count for (a, b), count in pairs.items() if a == gpu}
        if not speed or not own:
            found.append(())
            continue
        by_switch = _by_switch(own, len(speeds.get(gpu, ())), peers)
        if by_switch:
            found.append((_bundle("switch", by_switch, speed),))
        else:
            found.append(tuple(_bundle("gpu", n, speed, addresses[b]) for b, n in own.items()))
    return found


def _by_switch(own: Mapping[int, int], links: int, peers: Mapping[int | None, int]) -> int:
    """Links of a GPU to switches, where all its peers are reached by them; else 0.

    Either the driver names ends that are none of the GPUs, or there are fewer links than the
    pairs would need if each had its own.
    """
    if peers:
        return peers.get(None, 0) if set(peers) == {None} else 0
    return links if sum(own.values()) > links > 0 else 0


def _bundle(to: str, links: int, speed: float, pci: str = "") -> dict[str, Any]:
    return {"to": to, "pci": pci or None, "links": links, "link_Bps": speed}


def _nominal(speeds: Sequence[float]) -> float:
    """What a link is sold for; drivers tell what the wires carry (26.6 GB/s for 25)."""
    slowest = min(speeds, default=0.0)
    fits = (sold for sold in _NVLINKS if 0 <= slowest - sold <= _NEAR_ENOUGH * sold)
    return next(fits, slowest)


def _parse_matrix(text: str) -> dict[tuple[int, int], int]:
    """NVLinks between each two GPUs, both ways, from what ``nvidia-smi topo -m`` prints."""
    lines = [line.split("\t") if "\t" in line else line.split() for line in text.splitlines()]
    rows = {int(r[0].strip()[3:]): r[1:] for r in lines if r and _is_gpu(r[0])}
    found = {}
    for a, row in rows.items():
        for b, cell in enumerate(row[: len(rows)]):
            if match := re.fullmatch(r"NV(\d+)", cell.strip()):
                found[a, b] = int(match[1])
    return found


def _is_gpu(word: str) -> bool:
    return re.fullmatch(r"GPU\d+", word.strip()) is not None


def _parse_status(text: str) -> dict[int, list[float]]:
    """Bytes per second of each active link, by GPU, from ``nvidia-smi nvlink --status``."""
    return {
        gpu: [float(speed) * 1e9 for speed in re.findall(r"Link \d+: ([\d.]+) GB/s", part)]
        for gpu, part in _by_gpu(text)
    }


def _parse_remote(text: str) -> dict[int, list[str]]:
    """PCI address of each link's other end, by GPU, from ``nvidia-smi nvlink -R``."""
    end = re.compile(r"Link \d+: Remote Device ([0-9A-Fa-f]+:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\w)")
    return {gpu: end.findall(part) for gpu, part in _by_gpu(text)}


def _by_gpu(text: str) -> list[tuple[int, str]]:
    parts = re.split(r"^GPU (\d+):", text, flags=re.MULTILINE)
    return [(int(gpu), part) for gpu, part in zip(parts[1::2], parts[2::2], strict=True)]


def _amd(root: Path) -> tuple[list[_Part], tuple[str, ...]]:
    """From the kernel's description of the topology."""
    folders = sorted((root / _KFD).glob("[0-9]*"), key=lambda folder: int(folder.name))
    texts = {int(folder.name): _read(folder / "properties") for folder in folders}
    gpus = {number: _pairs(text) for number, text in texts.items() if parse_kfd_node(text)}
    where = {number: _pci(properties) for number, properties in gpus.items()}
    parts = [
        _Part(
            _bank_bytes(root / _KFD / str(number)),
            pci,
            _numa(root, pci),
            tuple(_xgmi(root / _KFD / str(number), where)),
        )
        for number, pci in where.items()
    ]
    return parts, ("/" + _KFD,)


def _pci(properties: Mapping[str, str]) -> str:
    """Its address, as /sys/bus/pci writes it."""
    place, domain = int(properties.get("location_id", 0)), int(properties.get("domain", 0))
    return f"{domain:04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}.{place & 7}"


def _bank_bytes(folder: Path) -> int | None:
    banks = [_pairs(_read(file)) for file in folder.glob("mem_banks/*/properties")]
    own = [int(b.get("size_in_bytes", 0)) for b in banks if b.get("heap_type") in _FRAME_BUFFERS]
    return sum(own) or None


def _xgmi(folder: Path, where: Mapping[int, str]) -> list[dict[str, Any]]:
    """Direct links to other GPUs: the most that they carry is a multiple of what one does."""
    found = []
    for file in sorted(folder.glob("io_links/*/properties")):
        link = _pairs(_read(file))
        peer = where.get(int(link.get("node_to", -1)))
        most, one = (int(link.get(f"{end}_bandwidth", 0)) for end in ("max", "min"))
        direct = link.get("type") == _XGMI and int(link.get("weight", 0)) <= _DIRECT
        if peer and direct and one > 0:
            found.append(_bundle("gpu", max(1, round(most / one)), one * 1e6, peer))
    return found


def _pairs(properties: str) -> dict[str, str]:
    return dict(line.split() for line in properties.splitlines() if len(line.split()) == 2)


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
