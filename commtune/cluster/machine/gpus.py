"""Finds the GPUs of this machine, their memory and links, and those that we may use."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commtune import process
from commtune.errors import MissingComponent, UserError
from commtune.paths import read_quietly
from commtune.systems.detection.seen import SeenGpus
from commtune.systems.nominal.fabric import NVLINKS, Fabric, fabric_of_ranks, normalise_address

_LIMIT_S = 20.0
_KFD = "sys/class/kfd/kfd/topology/nodes"
#: Variables by which each vendor's runtime restricts the visible GPUs.
_VISIBLE = {
    "nvidia": ("CUDA_VISIBLE_DEVICES",),
    "amd": ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
}


@dataclass(frozen=True)
class Gpu:
    """A GPU; ``model`` is the driver's name: ``NVIDIA H200``, or ``gfx90a`` for AMD."""

    vendor: str
    model: str
    driver: str


def list_gpus(root: Path) -> tuple[Gpu, ...]:
    """Returns the GPUs in /proc and /sys below a root folder, NVIDIA's before AMD's."""
    driver = _parse_nvidia_driver(read_quietly(root / "proc/driver/nvidia/version"))
    files = sorted((root / "proc/driver/nvidia/gpus").glob("*/information"))
    models = (re.search(r"^Model\s*:(.*)", read_quietly(file), re.MULTILINE) for file in files)
    found = [Gpu("nvidia", name[1].strip() if name else "unknown", driver) for name in models]
    driver = read_quietly(root / "sys/module/amdgpu/version").strip() or "in-kernel"
    targets = [
        _parse_kfd_node(read_quietly(f)) for f in sorted((root / _KFD).glob("*/properties"))
    ]
    found += [Gpu("amd", target, driver) for target in targets if target]
    if not found and root == Path("/"):
        # Containers may have GPUs without the driver's files.
        found = _parse_nvidia_smi(run_quietly(_ASK_NVIDIA))
    return tuple(found)


def _parse_nvidia_driver(text: str) -> str:
    match = re.search(r"NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", text)
    return match[1] if match else "unknown"


def _parse_kfd_node(properties: str) -> str:
    """Returns the target name (``gfx90a``) of a KFD topology node; empty for a CPU."""
    pairs = _pairs(properties)
    target = int(pairs.get("gfx_target_version", "0"))
    if int(pairs.get("simd_count", "0")) == 0 or target == 0:
        return ""
    # Minor version and stepping have two decimal digits each, and one hexadecimal in the name.
    return f"gfx{target // 10000}{target // 100 % 100:x}{target % 100:x}"


def run_quietly(arguments: Sequence[str]) -> str:
    """Returns a program's output; empty if it is missing or fails."""
    return process.ask_program(arguments, environment=os.environ, timeout_s=_LIMIT_S)


_ASK_NVIDIA = ("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")


def _parse_nvidia_smi(text: str) -> list[Gpu]:
    pairs = (line.rpartition(",") for line in text.splitlines())
    return [Gpu("nvidia", n.strip(), d.strip()) for n, comma, d in pairs if comma]


def _count_visible(gpus: Sequence[Gpu], environment: Mapping[str, str]) -> int:
    """Counts the GPUs that a program with this environment sees."""
    count = len(gpus)
    for name in _VISIBLE[gpus[0].vendor] if gpus else ():
        if name in environment:
            count = min(count, _named(environment[name]))
    return count


def _named(listed: str) -> int:
    """Counts the devices in a list, which ends at the first invalid one (-1, NoDevFiles)."""
    words = [word.strip() for word in listed.split(",")]
    good = [word.isdigit() or word.startswith(("GPU-", "MIG-")) for word in words]
    return good.index(False) if False in good else len(good)


def require_gpus(gpus: Sequence[Gpu], environment: Mapping[str, str], ranks: int) -> None:
    """Checks that each rank has a GPU of its own.

    Raises:
        MissingComponent: there is no GPU.
        UserError: there are fewer GPUs than ranks.
    """
    if not gpus:
        raise MissingComponent(
            "no GPU was found on this machine",
            hint="look at 'nvidia-smi' or 'rocminfo'; without GPUs, use the backend mpi-host",
        )
    seen = _count_visible(gpus, environment)
    if ranks > seen:
        of = f" of {len(gpus)}" if seen < len(gpus) else ""
        narrowed = [n for n in _VISIBLE[gpus[0].vendor] if n in environment] if of else []
        raise UserError(
            f"{ranks} ranks need {ranks} GPUs, one each, and {seen}{of} can be used here"
            + "".join(f" ({name}={environment[name]})" for name in narrowed),
            hint=f"ask for at most {seen} ranks" if seen > 1 else "look at 'commtune doctor'",
        )


#: As ``run_quietly``.
_Ask = Callable[[Sequence[str]], str]

_QUERY = (
    "nvidia-smi",
    "--query-gpu=name,memory.total,pci.bus_id",
    "--format=csv,noheader,nounits",
)
_TOPOLOGY = ("nvidia-smi", "topo", "-m")
_STATUS = ("nvidia-smi", "nvlink", "--status")
_REMOTE = ("nvidia-smi", "nvlink", "--remotelinkinfo")

#: KFD's type of links between GPUs, and the largest weight of a direct one.
_XGMI, _DIRECT = "11", 15
#: Heap types of memory banks on the GPU.
_FRAME_BUFFERS = ("1", "2")
_NEAR_ENOUGH = 0.08


@dataclass(frozen=True)
class _Part:
    """One GPU: memory in bytes, PCI address as /sys writes it, NUMA node."""

    memory: int | None
    pci: str
    numa: int | None
    links: tuple[dict[str, Any], ...] = ()


def inspect_gpus(gpus: Sequence[Gpu], root: Path, ask: _Ask) -> SeenGpus | None:
    """Returns the GPUs of this node with memory, NUMA nodes and links; ``None`` without GPUs.

    Args:
        gpus: from ``list_gpus``. Of several vendors, the first counts.
        ask: runs nvidia-smi.
    """
    if not gpus:
        return None
    own = [gpu for gpu in gpus if gpu.vendor == gpus[0].vendor]
    parts, asked = _amd(root) if own[0].vendor == "amd" else _nvidia(root, ask)
    visible = len(parts) if 0 < len(parts) < len(own) else None
    # If only some are visible, it is unknown which.
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
    """Returns the NUMA node of a PCI device; ``None`` if the kernel doesn't know it (-1)."""
    text = read_quietly(root / "sys/bus/pci/devices" / pci / "numa_node").strip()
    return int(text) if text.isdigit() else None


def _nvidia(root: Path, ask: _Ask) -> tuple[list[_Part], tuple[str, ...]]:
    """Returns NVIDIA's GPUs by nvidia-smi, or else by the driver's files, addresses only."""
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
    """Reads memory (bytes) and PCI address of each GPU from the output of ``_QUERY``."""
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
    """Returns the bundles of links of each GPU, from the output of nvidia-smi.

    Args:
        matrix: of ``topo -m``: links between any two, direct or by switches.
        status, remote: of ``nvlink``: the speed, and the other end, of each link.
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
    """Returns the number of a GPU's links to switches; 0 if it reaches its peers without.

    Links lead to switches if their other ends aren't GPUs, or if there are fewer than direct
    links to all peers would need.
    """
    if peers:
        return peers.get(None, 0) if set(peers) == {None} else 0
    return links if sum(own.values()) > links > 0 else 0


def _bundle(to: str, links: int, speed: float, pci: str = "") -> dict[str, Any]:
    return {"to": to, "pci": pci or None, "links": links, "link_Bps": speed}


def _nominal(speeds: Sequence[float]) -> float:
    """Returns a link's nominal speed; drivers report the raw rate (26.6 GB/s for 25)."""
    slowest = min(speeds, default=0.0)
    fits = (sold for sold in NVLINKS.values() if 0 <= slowest - sold <= _NEAR_ENOUGH * sold)
    return next(fits, slowest)


def _parse_matrix(text: str) -> dict[tuple[int, int], int]:
    """Reads the number of NVLinks of each ordered pair of GPUs from ``nvidia-smi topo -m``."""
    lines = [line.split("\t") if "\t" in line else line.split() for line in text.splitlines()]
    is_gpu = re.compile(r"\s*GPU\d+\s*").fullmatch
    rows = {int(r[0].strip()[3:]): r[1:] for r in lines if r and is_gpu(r[0])}
    found = {}
    for a, row in rows.items():
        for b, cell in enumerate(row[: len(rows)]):
            if match := re.fullmatch(r"NV(\d+)", cell.strip()):
                found[a, b] = int(match[1])
    return found


def _parse_status(text: str) -> dict[int, list[float]]:
    """Reads the bytes per second of active links, by GPU, from ``nvidia-smi nvlink --status``."""
    return {
        gpu: [float(speed) * 1e9 for speed in re.findall(r"Link \d+: ([\d.]+) GB/s", part)]
        for gpu, part in _by_gpu(text)
    }


def _parse_remote(text: str) -> dict[int, list[str]]:
    """Reads the PCI addresses of the links' other ends, by GPU, from ``nvidia-smi nvlink -R``."""
    end = re.compile(r"Link \d+: Remote Device ([0-9A-Fa-f]+:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\w)")
    return {gpu: end.findall(part) for gpu, part in _by_gpu(text)}


def _by_gpu(text: str) -> list[tuple[int, str]]:
    parts = re.split(r"^GPU (\d+):", text, flags=re.MULTILINE)
    return [(int(gpu), part) for gpu, part in zip(parts[1::2], parts[2::2], strict=True)]


def _amd(root: Path) -> tuple[list[_Part], tuple[str, ...]]:
    folders = sorted((root / _KFD).glob("[0-9]*"), key=lambda folder: int(folder.name))
    texts = {int(folder.name): read_quietly(folder / "properties") for folder in folders}
    gpus = {number: _pairs(text) for number, text in texts.items() if _parse_kfd_node(text)}
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
    place, domain = int(properties.get("location_id", 0)), int(properties.get("domain", 0))
    return f"{domain:04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}.{place & 7}"


def _bank_bytes(folder: Path) -> int | None:
    banks = [_pairs(read_quietly(file)) for file in folder.glob("mem_banks/*/properties")]
    own = [int(b.get("size_in_bytes", 0)) for b in banks if b.get("heap_type") in _FRAME_BUFFERS]
    return sum(own) or None


def _xgmi(folder: Path, where: Mapping[int, str]) -> list[dict[str, Any]]:
    """Returns the direct links to other GPUs; maximal over minimal bandwidth is their number."""
    found = []
    for file in sorted(folder.glob("io_links/*/properties")):
        link = _pairs(read_quietly(file))
        peer = where.get(int(link.get("node_to", -1)))
        most, one = (int(link.get(f"{end}_bandwidth", 0)) for end in ("max", "min"))
        direct = link.get("type") == _XGMI and int(link.get("weight", 0)) <= _DIRECT
        if peer and direct and one > 0:
            found.append(_bundle("gpu", max(1, round(most / one)), one * 1e6, peer))
    return found


def _pairs(properties: str) -> dict[str, str]:
    return dict(line.split() for line in properties.splitlines() if len(line.split()) == 2)
