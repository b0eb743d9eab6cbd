"""Operations, patterns of messages, backends, kinds of GPUs, and MPI installations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any


class Operation(StrEnum):
    """An operation of the benchmark, by its name in files and on the command line.

    ``own:NAME`` is the operation of a user's own benchmark; it is a member, but not listed.
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
        # Stored under its value, so that the same name gives the same member.
        known = cls._value2member_map_.setdefault(value, member)
        assert isinstance(known, Operation)
        return known

    def __reduce_ex__(self, _protocol: object) -> tuple[type[Operation], tuple[str]]:
        # By its value: Python 3.11.2, of Debian 12, would look for an attribute of the class.
        return Operation, (self.value,)

    @property
    def is_own(self) -> bool:
        """Whether it belongs to a user's own benchmark."""
        return self.startswith("own:")

    @property
    def is_collective(self) -> bool:
        """Whether libraries have a call for it; otherwise it is made of messages."""
        return self in _COLLECTIVES

    @property
    def mpi_name(self) -> str:
        """MPI's name of a collective in lower case, such as ``bcast``; empty for others."""
        return _COLLECTIVES.get(self, "")

    @property
    def is_total(self) -> bool:
        """Whether its size is the total of all ranks' blocks."""
        return self in _TOTALS

    @property
    def is_pattern(self) -> bool:
        """Whether it needs more than size and ranks, or is several operations: never a guard."""
        return self in _PATTERNS


#: Words of MPI, OSU, IMB and nccl-tests that spelling alone does not tell.
_OTHER_WORDS = {
    "bcast": Operation.BROADCAST,
    "latency": Operation.PING_PONG,
    "sendrecv": Operation.RING,
    "bibw": Operation.BIDIRECTIONAL,
}
#: What comes before and after an operation in the names of programs: osu_bcast, all_reduce_perf.
_PROGRAM = re.compile(r"^(osu|imb|mpi)_|_(perf|test)$")


def find_operation(word: str) -> Operation | None:
    """The operation that a word of ours or of another benchmark means: ``all_reduce_perf``."""
    try:
        return Operation(word)
    except ValueError:
        bare = _PROGRAM.sub("", _PROGRAM.sub("", word.lower()))
    by_letters = {one.replace("-", ""): one for one in Operation}
    return _OTHER_WORDS.get(bare) or by_letters.get(re.sub(r"[^a-z]", "", bare))


_OWN = re.compile(r"own:[A-Za-z0-9][A-Za-z0-9._-]{0,58}")


_COLLECTIVES = {
    Operation.ALLREDUCE: "allreduce",
    Operation.ALLTOALL: "alltoall",
    Operation.ALLGATHER: "allgather",
    Operation.REDUCE_SCATTER: "reduce_scatter_block",
    Operation.BROADCAST: "bcast",
    Operation.REDUCE: "reduce",
}
_TOTALS = (Operation.ALLTOALL, Operation.ALLGATHER, Operation.REDUCE_SCATTER)

#: The operations of the benchmark in Python, in the order in which it lists them.
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
    """How the benchmark communicates: by which library, and in which memory."""

    MPI_HOST = "mpi-host"  # MPI, host memory
    MPI_DEVICE = "mpi-device"  # GPU-aware MPI, given pointers to GPU memory
    MPI_STAGED = "mpi-staged"  # copy to the host, MPI, copy to the GPU
    IPC_PUT = "ipc-put"  # copies between GPUs of one node, written by the sender
    IPC_GET = "ipc-get"  # the same, read by the receiver
    XCCL = "xccl"  # NCCL or RCCL
    PYTHON_HOST = "python-host"  # mpi4py, NumPy's arrays: the benchmark in Python
    PYTHON_DEVICE = "python-device"  # mpi4py on a GPU-aware MPI, CuPy's arrays
    COMMAND = "command"  # a user's own command

    @property
    def is_native(self) -> bool:
        return self not in (*PYTHON_BACKENDS, Backend.COMMAND)

    def does(self, operation: Operation) -> bool:
        """Whether it has an operation of the benchmark; of users' own ones it isn't known."""
        return self not in PYTHON_BACKENDS or operation in IN_PYTHON

    @property
    def memory(self) -> str:
        """The memory of its messages: ``host`` or ``device``."""
        return "host" if self in (Backend.MPI_HOST, Backend.PYTHON_HOST) else "device"

    @property
    def uses_gpu(self) -> bool:
        """Whether every rank of the native benchmark has a GPU."""
        return self.is_native and self is not Backend.MPI_HOST


#: Those of the benchmark in Python.
PYTHON_BACKENDS = (Backend.PYTHON_HOST, Backend.PYTHON_DEVICE)


class GpuKind(StrEnum):
    """What the benchmark's GPU code is built for, by its name in CMake and on command lines."""

    NONE = "none"
    CUDA = "cuda"
    HIP = "hip"


class MpiFlavour(StrEnum):
    """MPI families whose launcher and quirks commtune knows."""

    MPICH = "mpich"
    OPENMPI = "openmpi"
    INTEL = "intel"
    CRAY = "cray-mpich"
    MVAPICH = "mvapich"
    #: No MPI: a user's own command of one process, which is started as it is.
    NONE = "none"

    @property
    def library(self) -> str:
        """The name of the library in search spaces and the catalogue."""
        return "intel-mpi" if self is MpiFlavour.INTEL else str(self)

    @property
    def label(self) -> str:
        """The name for people."""
        return _MPI_LABELS[self]


_MPI_LABELS = {
    MpiFlavour.MPICH: "MPICH",
    MpiFlavour.OPENMPI: "Open MPI",
    MpiFlavour.INTEL: "Intel MPI",
    MpiFlavour.CRAY: "Cray MPICH",
    MpiFlavour.MVAPICH: "MVAPICH",
    MpiFlavour.NONE: "no MPI",
}


@dataclass(frozen=True)
class MpiInstallation:
    """An MPI that the benchmark can be compiled with and launched by.

    Attributes:
        compiler: the C++ compiler wrapper (mpicxx); for a user's own command it need not exist.
        launcher: mpiexec.
        environment: variables that it needs to compile and run at all, such as I_MPI_ROOT.
        origin: how it was found: ``wheel:mpich``, ``path`` or ``prefix``.
    """

    flavour: MpiFlavour
    version: str
    prefix: Path
    compiler: Path
    launcher: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    origin: str = "path"

    @property
    def words(self) -> str:
        """``Open MPI 4.1.6``."""
        return f"{self.flavour.label} {self.version}".strip()


class Direction(StrEnum):
    """The direction of messages between groups, by its name in the native benchmark."""

    OUTBOUND = "outbound"  # from the first group to all others
    BIDIRECTIONAL = "bidirectional"  # and back at the same time
    OMNIDIRECTIONAL = "omnidirectional"  # from every group to every other


#: Sender, receiver, and bytes relative to those of the other messages.
Flow = tuple[int, int, float]


@dataclass(frozen=True)
class Matrix:
    """Messages that are sent together, in the order of their file.

    Attributes:
        file: its name, for people; it does not matter for equality.
    """

    flows: tuple[Flow, ...]
    file: str = field(default="", compare=False)

    @cached_property
    def text(self) -> str:
        """The messages as a matrix file, without comments."""
        return "".join(f"{start} {end} {amount!r}\n" for start, end, amount in self.flows)

    @cached_property
    def key(self) -> str:
        """SHA-256 of the text, equal for equal messages."""
        import hashlib  # not at the top: see content_key

        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class PatternParameters:
    """The parameters of operations that are made of messages; each operation uses some of them.

    Attributes:
        group_size, active: ranks of a group, and those of them that send.
        inside, between: backends of messages inside of nodes and between them; empty for the
            backend of the workload.
        assemble: backend of the last step of striping; empty for the one inside of nodes.
        matrix: key of the matrix; empty for none.
        content: the matrix, if it was read; stored parameters have only its key.
    """

    group_size: int = 1
    active: int = 1
    direction: str = Direction.OUTBOUND
    inside: str = ""
    between: str = ""
    assemble: str = ""
    matrix: str = ""
    content: Matrix | None = field(default=None, compare=False, repr=False)

    @property
    def backends(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(filter(None, (self.inside, self.between, self.assemble))))

    def plain(self) -> dict[str, Any]:
        """Returns plain data, without default values and without the matrix itself."""
        return {
            f.name: str(value) if isinstance(value, str) else value
            for f in fields(self)
            if f.name != "content" and (value := getattr(self, f.name)) != f.default
        }

    def said(self, operation: str) -> str:
        """Describes the parameters that an operation uses, for people; empty if none."""
        words = []
        if operation in GROUPED:
            words.append(f"groups of {self.group_size}")
        if operation in ACTIVE:
            words += [f"{self.active} of each active", str(self.direction)]
        if operation == Operation.MATRIX and self.matrix:
            name = self.content.file if self.content else ""
            words.append(f"file {self.matrix[:12]}" + (f" ({name})" if name else ""))
        if operation in MIXED:
            backends = (("inside", self.inside), ("between", self.between))
            words += [f"{name} nodes by {backend}" for name, backend in backends if backend]
        if operation == Operation.STRIPING and self.assemble:
            words.append(f"assembled by {self.assemble}")
        return ", ".join(words)


#: Operations with active ranks and a direction; with groups; with two backends.
ACTIVE = (Operation.RAIL, Operation.ASYMMETRIC, Operation.SYMMETRIC)
GROUPED = (*ACTIVE, Operation.STRIPING)
MIXED = (Operation.MATRIX, Operation.STRIPING)
_PATTERNS = frozenset((*ACTIVE, *MIXED, Operation.PAIRS))
