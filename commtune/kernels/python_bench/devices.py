"""Where the arrays live: NumPy's on the host, CuPy's on the GPU that this rank works on.

Which GPU that is, and whether the MPI may touch its memory, is decided as in src/gpu/device.cpp
and src/backends/mpi/mpi.cpp.
"""

from __future__ import annotations

import ctypes
import importlib
import mmap
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commtune.kernels.python_bench.faults import UsageFault, Waived
from commtune.kernels.python_bench.libraries import communication_libraries
from commtune.kernels.python_bench.world import launched_ranks

#: Of a kind of GPU: functions without arguments, 0 for no. Open MPI and MPICH name some of them
#: differently; MPICH's work only after MPI_Init.
_QUERIES = {
    "cuda": ("MPIX_Query_cuda_support",),
    "hip": ("MPIX_Query_rocm_support", "MPIX_Query_hip_support"),
}


def denied_by(kind: str) -> str:
    """The function by which the MPI, once up, says that it knows no GPUs of a kind; or empty."""
    # Such a library may send device memory all the same, through UCX, but its collectives add and
    # copy on the host. A library that says nothing is believed.
    for path in communication_libraries():
        if not path.rpartition("/")[2].startswith("libmpi"):
            continue
        with suppress(OSError):
            library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)  # none is loaded by it
            for name in _QUERIES[kind]:
                query = getattr(library, name, None)
                if query is not None:
                    return "" if query() else name
    return ""


@dataclass(frozen=True)
class Gpu:
    """A GPU, by its number among those that are visible; CuPy's arrays are there from now on."""

    cupy: Any
    index: int

    @classmethod
    def choose_early(cls, *, shares: bool) -> Gpu | None:
        """The GPU of the launcher's place for this rank; before MPI_Init: libraries look there."""
        local_rank, local_ranks, _ = launched_ranks()
        if local_rank is None:
            return None
        try:
            return cls.choose(local_rank, local_ranks, shares=shares)
        except UsageFault:
            return None  # it is said later, when ranks can agree on who says it

    @classmethod
    def choose(cls, local_rank: int, local_ranks: int, *, shares: bool) -> Gpu:
        """The GPU of a place on this node, used from now on.

        Raises:
            Waived: there is no CuPy, no GPU, or there are fewer than ranks.
            UsageFault: it can't be used.
        """
        try:
            cupy = importlib.import_module("cupy")
            devices = cupy.cuda.runtime.getDeviceCount()
        except ImportError as error:
            raise Waived(
                "--backend python-device needs CuPy: python -m pip install cupy-cuda13x"
            ) from error
        except Exception as error:  # CuPy's own kinds of errors are known only where it is
            raise Waived(f"--backend python-device: no GPU: {error}") from error
        index = _place_among(devices, local_rank, local_ranks, shares=shares)
        try:
            cupy.cuda.Device(index).use()
            cupy.cuda.runtime.free(0)  # makes the context, which libraries look for
        except Exception as error:  # as above
            raise UsageFault(
                f"--backend python-device: GPU {index} can't be used: {error}"
            ) from error
        return cls(cupy, index)

    @property
    def kind(self) -> str:
        """``cuda`` or ``hip``."""
        return "hip" if self.cupy.cuda.runtime.is_hip else "cuda"

    def facts(self) -> dict[str, Any]:
        """What the header says of each rank's device; what can't be told is ``None``."""
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


def _place_among(devices: int, local_rank: int, local_ranks: int, *, shares: bool) -> int:
    """The number of a rank's GPU.

    Args:
        devices: how many this process sees: one where a site's wrapper has chosen.
        local_ranks: how many ranks the node has; 0 where that isn't known.

    Raises:
        Waived: there are fewer GPUs than ranks.
    """
    if shares:
        return local_rank % devices
    ranks = max(local_ranks, local_rank + 1)
    if 1 < devices < ranks:
        raise Waived(
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


class HostMemory:
    """NumPy arrays; ``xp`` is the module that makes them."""

    def __init__(self) -> None:
        # NumPy starts a thread a core for linear algebra that nobody does here.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        import numpy

        self.xp: Any = numpy

    def allocate(self, count: int, dtype: str) -> Any:
        """Allocates zeroed memory, aligned to a page, with every page touched."""
        size = count * self.xp.dtype(dtype).itemsize
        # From the heap, as the native benchmark's: which memory it is makes a difference.
        raw = self.xp.empty(size + mmap.PAGESIZE, dtype="uint8")
        begin = -raw.ctypes.data % mmap.PAGESIZE
        array = raw[begin : begin + size].view(dtype)
        array[:] = 0
        return array

    def settle(self) -> None:
        """Returns when all that was begun on the arrays is done."""

    def words(self) -> str:
        """What makes the arrays, for the header."""
        return f"NumPy {self.xp.__version__}"


class DeviceMemory:
    """CuPy arrays on a GPU, as ``HostMemory`` has them."""

    def __init__(self, gpu: Gpu) -> None:
        self.xp: Any = gpu.cupy

    def allocate(self, count: int, dtype: str) -> Any:
        return self.xp.zeros(count, dtype=dtype)  # CUDA aligns to 256 bytes at least

    def settle(self) -> None:
        self.xp.cuda.get_current_stream().synchronize()

    def words(self) -> str:
        return f"CuPy {self.xp.__version__}"


Memory = HostMemory | DeviceMemory
