"""Where a backend's arrays live: NumPy's on the host, CuPy's on a device."""

from __future__ import annotations

import mmap
import os
from typing import Any, Protocol

from commtune.kernels.python_bench.devices import Gpu


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
    """CuPy arrays on a GPU."""

    def __init__(self, gpu: Gpu) -> None:
        self.xp: Any = gpu.cupy

    def allocate(self, count: int, dtype: str) -> Any:
        return self.xp.zeros(count, dtype=dtype)  # CUDA aligns to 256 bytes at least

    def settle(self) -> None:
        self.xp.cuda.get_current_stream().synchronize()

    def words(self) -> str:
        return f"CuPy {self.xp.__version__}"
