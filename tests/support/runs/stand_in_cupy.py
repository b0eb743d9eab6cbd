"""A module that is imported as ``cupy``, for machines without a GPU: NumPy's arrays stand in.

Variables say what GPUs there are: STAND_IN_GPUS, how many (0: as CuPy does where there is none);
STAND_IN_BUSY, the number of one that another process has for itself.
What MPI does with device memory can't be tested by it; what is decided before that, and with
which MPI, can.
"""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any

import numpy
from numpy import *  # noqa: F403  # as CuPy has NumPy's functions

__version__ = f"none, but NumPy {numpy.__version__}"  # type: ignore[misc]  # it is not NumPy's


class Device:
    """A GPU of no effect."""

    def __init__(self, index: int) -> None:
        self.index = index

    def use(self) -> None:
        """Says whether that is before MPI's start."""
        if str(self.index) == os.environ.get("STAND_IN_BUSY"):
            raise RuntimeError("cudaErrorDevicesUnavailable: CUDA-capable device(s) is/are busy")
        when = "late" if "mpi4py.MPI" in sys.modules else "early"
        print(f"stand-in: GPU {self.index} {when}", flush=True)


def _count() -> int:
    count = int(os.environ["STAND_IN_GPUS"])
    if count == 0:
        raise RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
    return count


def _properties(index: int) -> dict[str, Any]:
    name = f"Stand-in {index}".encode()
    return {"name": name, "multiProcessorCount": 1, "totalGlobalMem": 2**30}


cuda = SimpleNamespace(
    Device=Device,
    get_current_stream=lambda: SimpleNamespace(synchronize=lambda: None),
    runtime=SimpleNamespace(
        is_hip=False,
        getDeviceCount=_count,
        getDeviceProperties=_properties,
        deviceGetPCIBusId=lambda index: f"FFFF:{index:02X}:00.0",
        free=lambda _: None,
    ),
)
