"""Whether the loaded MPI library knows device memory, as src/backends/mpi/mpi.cpp asks it."""

from __future__ import annotations

import ctypes
import os

from commtune.kernels.python_bench.libraries import communication_libraries

#: Of a kind of GPU: functions without arguments, 0 for no. Open MPI and MPICH name some of them
#: differently; MPICH's work only after MPI_Init.
_QUERIES = {
    "cuda": ("MPIX_Query_cuda_support",),
    "hip": ("MPIX_Query_rocm_support", "MPIX_Query_hip_support"),
}


def denied_by(kind: str) -> str:
    """The function by which the MPI says that it is not aware of GPUs of this kind.

    Such a library may send device memory all the same, through UCX, but its collectives add and
    copy on the host. MPI has to be up.

    Args:
        kind: ``cuda`` or ``hip``.

    Returns:
        Empty where it says that it is, or nothing: a library that says nothing is believed.
    """
    for path in communication_libraries():
        if not path.rpartition("/")[2].startswith("libmpi"):
            continue
        library = _loaded(path)
        for name in _QUERIES[kind]:
            query = getattr(library, name, None)
            if query is not None:
                return "" if query() else name
    return ""


def _loaded(path: str) -> ctypes.CDLL | None:
    """A library that this process has; none is loaded by this."""
    try:
        return ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return None
