"""Where a backend's arrays live: NumPy's on the host, CuPy's on a device."""

from __future__ import annotations

import mmap
import os
from typing import Any, Protocol

from commtune.kernels.twin.faults import UsageFault


class Memory(Protocol):
    """A kind of arrays."""

    @property
    def xp(self) -> Any:
        """The module that makes them: numpy or cupy."""
        ...

    def allocate(self, count: int, dtype: str) -> Any:
        """Zeroed, aligned to a page, every page touched."""
        ...

    def settle(self) -> None:
        """Returns when all that was begun on the arrays is done."""
        ...

    def words(self) -> str:
        """What makes the arrays, for the header."""
        ...


class HostMemory:
    """NumPy arrays."""

    def __init__(self) -> None:
        # NumPy starts a thread a core for linear algebra that nobody does here.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        import numpy

        self.xp: Any = numpy

    def allocate(self, count: int, dtype: str) -> Any:
        size = count * self.xp.dtype(dtype).itemsize
        # From the heap, as the native benchmark's: which memory it is makes a difference.
        raw = self.xp.empty(size + mmap.PAGESIZE, dtype="uint8")
        begin = -raw.ctypes.data % mmap.PAGESIZE
        array = raw[begin : begin + size].view(dtype)
        array[:] = 0
        return array

    def settle(self) -> None:
        return

    def words(self) -> str:
        return f"NumPy {self.xp.__version__}"


class DeviceMemory:
    """CuPy arrays on the GPU that the local rank comes to.

    Raises:
        UsageFault: there is no CuPy, or no GPU.
    """

    def __init__(self, local_rank: int) -> None:
        import importlib

        try:
            self.xp: Any = importlib.import_module("cupy")
            devices = self.xp.cuda.runtime.getDeviceCount()
        except ImportError as error:
            raise UsageFault(
                "--backend python-device needs CuPy: python -m pip install cupy-cuda13x"
            ) from error
        except Exception as error:  # CuPy's own kinds of errors are known only where it is
            raise UsageFault(f"--backend python-device: no GPU: {error}") from error
        self.xp.cuda.Device(local_rank % devices).use()

    def allocate(self, count: int, dtype: str) -> Any:
        return self.xp.zeros(count, dtype=dtype)  # CUDA aligns to 256 bytes at least

    def settle(self) -> None:
        self.xp.cuda.get_current_stream().synchronize()

    def words(self) -> str:
        return f"CuPy {self.xp.__version__}"


def make_memory(backend: str, local_rank: int) -> Memory:
    """The arrays of a backend."""
    return DeviceMemory(local_rank) if backend == "python-device" else HostMemory()
