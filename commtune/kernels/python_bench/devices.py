"""The GPU that this rank works on, by CuPy; which one it is as src/gpu/device.cpp decides it."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commtune.kernels.python_bench import launcher
from commtune.kernels.python_bench.faults import UsageFault


@dataclass(frozen=True)
class Gpu:
    """A GPU, chosen: from now on CuPy's arrays of this process are there.

    Attributes:
        cupy: the module.
        index: its number among those that are visible.
    """

    cupy: Any
    index: int

    @property
    def kind(self) -> str:
        """``cuda`` or ``hip``."""
        return "hip" if self.cupy.cuda.runtime.is_hip else "cuda"

    def facts(self) -> dict[str, Any]:
        """As a header has them of each rank; what can't be told is ``None``."""
        runtime = self.cupy.cuda.runtime
        properties = runtime.getDeviceProperties(self.index)
        pci = runtime.deviceGetPCIBusId(self.index).lower()
        numa_node = _pci_file(pci, "numa_node")
        return {
            "index": self.index,
            "name": _text(properties["name"]),
            "pci": pci,
            "multiprocessors": properties["multiProcessorCount"],
            "memory_bytes": properties["totalGlobalMem"],
            "numa_node": int(numa_node) if numa_node.isdecimal() else None,
            "local_cpus": _pci_file(pci, "local_cpulist") or None,
            "kind": self.kind,
        }


def choose_early(*, shares: bool) -> Gpu | None:
    """The GPU of the place that the launcher says: before MPI_Init, since libraries look there.

    Returns:
        ``None`` where the launcher doesn't say it, or something is wrong: what, ``choose`` says
        when ranks can agree on who says it.
    """
    local_rank = launcher.local_rank()
    if local_rank is None:
        return None
    try:
        return choose_gpu(local_rank, launcher.local_ranks(), shares=shares)
    except UsageFault:
        return None


def choose_gpu(local_rank: int, local_ranks: int, *, shares: bool) -> Gpu:
    """The GPU of a place on this node, used from now on.

    Raises:
        UsageFault: there is no CuPy, no GPU, there are fewer than ranks, or it can't be used.
    """
    try:
        cupy = importlib.import_module("cupy")
        devices = cupy.cuda.runtime.getDeviceCount()
    except ImportError as error:
        raise UsageFault(
            "--backend python-device needs CuPy: python -m pip install cupy-cuda13x"
        ) from error
    except Exception as error:  # CuPy's own kinds of errors are known only where it is
        raise UsageFault(f"--backend python-device: no GPU: {error}") from error
    index = place_among(devices, local_rank, local_ranks, shares=shares)
    try:
        cupy.cuda.Device(index).use()
        cupy.cuda.runtime.free(0)  # makes the context, which libraries look for
    except Exception as error:  # as above
        raise UsageFault(f"--backend python-device: GPU {index} can't be used: {error}") from error
    return Gpu(cupy, index)


def place_among(devices: int, local_rank: int, local_ranks: int, *, shares: bool) -> int:
    """The number of a rank's GPU.

    Args:
        devices: how many this process sees. Where a site's wrapper shows each rank one, it has
            chosen.
        local_ranks: how many ranks the node has; 0 where that isn't known.

    Raises:
        UsageFault: there are fewer GPUs than ranks.
    """
    if shares:
        return local_rank % devices
    ranks = max(local_ranks, local_rank + 1)
    if 1 < devices < ranks:
        raise UsageFault(
            f"{ranks} ranks on a node that has {devices} GPUs: each rank needs one of its own; "
            "start no more ranks a node than it has GPUs"
        )
    return 0 if devices == 1 else local_rank


def _pci_file(pci: str, name: str) -> str:
    """What the kernel says of a PCI device; empty where it says nothing."""
    try:
        return Path(f"/sys/bus/pci/devices/{pci}/{name}").read_text().strip()
    except OSError:
        return ""


def _text(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
