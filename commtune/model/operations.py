"""What is measured by what: operations, backends, kinds of GPUs, MPI libraries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Operation(StrEnum):
    """What the benchmark does; the word is the one used in files and on the command line.

    ``own:NAME`` is what a user's own benchmark does; it is an operation as well, but not listed.
    """

    PING_PONG = "ping-pong"
    BIDIRECTIONAL = "bidirectional"
    ALLREDUCE = "allreduce"
    ALLTOALL = "alltoall"
    ALLGATHER = "allgather"
    REDUCE_SCATTER = "reduce-scatter"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    STREAM = "stream"
    RING = "ring"
    INCAST = "incast"
    ONE_TO_MANY = "one-to-many"
    SELF = "self"
    RAIL = "rail"
    ASYMMETRIC = "asymmetric"
    SYMMETRIC = "symmetric"
    MATRIX = "matrix"
    STRIPING = "striping"
    PAIRS = "pairs"

    @classmethod
    def _missing_(cls, value: object) -> Operation | None:
        if not isinstance(value, str) or not _OWN.fullmatch(value):
            return None
        member = str.__new__(cls, value)
        member._name_ = member._value_ = value
        # Under its value, so that the same word is the same member.
        known = cls._value2member_map_.setdefault(value, member)
        assert isinstance(known, Operation)
        return known

    @property
    def is_own(self) -> bool:
        """Whether a user's own benchmark does it."""
        return self.startswith("own:")

    @property
    def is_collective(self) -> bool:
        """Whether libraries have a call of its own for it; else it is made of messages."""
        return self in _COLLECTIVES

    @property
    def is_pattern(self) -> bool:
        """Whether it needs more than a size and ranks, or is no single operation: no guard."""
        return self in _PATTERNS


_OWN = re.compile(r"own:[A-Za-z0-9][A-Za-z0-9._-]{0,58}")


_COLLECTIVES = frozenset(
    {
        Operation.ALLREDUCE,
        Operation.ALLTOALL,
        Operation.ALLGATHER,
        Operation.REDUCE_SCATTER,
        Operation.BROADCAST,
        Operation.REDUCE,
    }
)

_PATTERNS = frozenset(
    {
        Operation.RAIL,
        Operation.ASYMMETRIC,
        Operation.SYMMETRIC,
        Operation.MATRIX,
        Operation.STRIPING,
        Operation.PAIRS,
    }
)


#: What the benchmark in Python does, in the order in which it says so.
IN_PYTHON = (
    Operation.PING_PONG,
    Operation.BIDIRECTIONAL,
    Operation.STREAM,
    Operation.ALLREDUCE,
    Operation.REDUCE,
    Operation.BROADCAST,
    Operation.RING,
    Operation.ALLTOALL,
    Operation.ALLGATHER,
    Operation.REDUCE_SCATTER,
)


class Backend(StrEnum):
    """How the benchmark communicates: a library, and the memory that it works on."""

    MPI_HOST = "mpi-host"  # MPI, host memory
    MPI_DEVICE = "mpi-device"  # GPU-aware MPI, given pointers to GPU memory
    MPI_STAGED = "mpi-staged"  # copy to the host, MPI, copy to the GPU
    IPC_PUT = "ipc-put"  # copies between GPUs of one node, written by the sender
    IPC_GET = "ipc-get"  # the same, read by the receiver
    XCCL = "xccl"  # NCCL or RCCL
    PYTHON_HOST = "python-host"  # mpi4py, NumPy's arrays: the benchmark in Python
    PYTHON_DEVICE = "python-device"  # mpi4py on a GPU-aware MPI, CuPy's arrays
    COMMAND = "command"  # whatever a user's own command does

    @property
    def is_native(self) -> bool:
        """Whether it is one of the native benchmark."""
        return self not in (Backend.PYTHON_HOST, Backend.PYTHON_DEVICE, Backend.COMMAND)

    def does(self, operation: Operation) -> bool:
        """Whether it has an operation of the benchmark; what users' own do is not asked here."""
        in_python = self in (Backend.PYTHON_HOST, Backend.PYTHON_DEVICE)
        return not in_python or operation in IN_PYTHON

    @property
    def memory(self) -> str:
        """What its messages begin and end in: ``host`` or ``device``."""
        return "host" if self in (Backend.MPI_HOST, Backend.PYTHON_HOST) else "device"

    @property
    def uses_gpu(self) -> bool:
        """Whether every rank of the native benchmark has a GPU."""
        return self.is_native and self is not Backend.MPI_HOST


class GpuKind(StrEnum):
    """What the benchmark's GPU code is built for; the words of CMake and the command line."""

    NONE = "none"
    CUDA = "cuda"
    HIP = "hip"


class MpiFlavour(StrEnum):
    """MPI families whose launcher and quirks commtune knows."""

    MPICH = "mpich"
    OPENMPI = "openmpi"
    INTEL = "intel"
    CRAY = "cray-mpich"
    #: A user's own command of one process, where there is no MPI: it is started as it is.
    NONE = "none"

    @property
    def library(self) -> str:
        """What search spaces and the catalogue call it."""
        return "intel-mpi" if self is MpiFlavour.INTEL else str(self)


@dataclass(frozen=True)
class MpiInstallation:
    """An MPI that the benchmark can be compiled with and launched by.

    Attributes:
        compiler: the C++ compiler wrapper (mpicxx); for a user's own command it need not exist.
        launcher: mpiexec.
        environment: what this installation needs to compile and run at all (I_MPI_ROOT, say).
        origin: ``wheel:mpich``, ``path`` or ``prefix``: how it was found.
    """

    flavour: MpiFlavour
    version: str
    prefix: Path
    compiler: Path
    launcher: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    origin: str = "path"
