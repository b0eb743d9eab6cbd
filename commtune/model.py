"""The frozen vocabulary: what every layer speaks.

Nothing here does I/O. Times are seconds, sizes are bytes, bandwidths bytes per second, unless a
name says otherwise.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any


def content_key(value: Any) -> str:
    """A short stable key (16 hexadecimal digits of SHA-256) of any JSON-like value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Configuration(Mapping[str, str]):
    """One assignment of environment variables; the empty one is the default.

    Values are the exact strings that the process sees. A variable that is absent is left unset.
    Immutable, hashable, ordered by name, so that equal configurations have equal text and key.
    """

    __slots__ = ("_values", "key")

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        ordered = dict(sorted((values or {}).items()))
        self._values: Mapping[str, str] = MappingProxyType(ordered)
        self.key: str = content_key(ordered)

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Configuration):
            return NotImplemented
        return dict(self) == dict(other)

    def __repr__(self) -> str:
        return f"Configuration({dict(self)})"

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.items()) or "(default)"

    def __deepcopy__(self, memo: dict[int, Any]) -> Configuration:
        # dataclasses.asdict copies deeply; what can't change needs no copy.
        return self

    @property
    def is_default(self) -> bool:
        """Whether this configuration sets nothing."""
        return not self._values


DEFAULT = Configuration()


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


@dataclass(frozen=True)
class MpiInstallation:
    """An MPI that the benchmark can be compiled with and launched by.

    Attributes:
        compiler: the C++ compiler wrapper (mpicxx).
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


#: Values of ``Timing.mode`` and ``Timing.timer`` for what has always been done.
BLOCKING, BATCHED = "blocking", "batched"
WALL, DEVICE = "wall", "device"


def _without_defaults(value: Timing | Workload, names: Collection[str]) -> dict[str, Any]:
    """The fields as plain data, but for those named that have their default.

    So results from before there was such a field compare with today's.
    """
    return {
        f.name: getattr(value, f.name)
        for f in fields(value)
        if f.name not in names or getattr(value, f.name) != f.default
    }


@dataclass(frozen=True)
class Timing:
    """How long the benchmark measures each size.

    Attributes:
        warmup: iterations dropped before the first sample.
        min_samples, max_samples: bounds on the number of samples a size.
        relative_ci: stop when the 95 % confidence interval of the median is narrower than this
            share of the median, on both sides together.
        time_cap_s: wall seconds a size may take, warm-up included, once min_samples is reached.
        mode: ``blocking``: each sample waits for the end of what it measures; ``batched``:
            ``operations`` are enqueued, and waited for together.
        operations: of a batch, where ``mode`` is ``batched``; else 0.
        timer: ``wall``: the clock of the host, around waiting for the device; ``device``: events
            on the device.
    """

    warmup: int = 5
    min_samples: int = 10
    max_samples: int = 200
    relative_ci: float = 0.01
    time_cap_s: float = 0.05
    mode: str = BLOCKING
    operations: int = 0
    timer: str = WALL

    def plain(self) -> dict[str, Any]:
        """As plain data; what came later is left out where it is as it always was before."""
        return _without_defaults(self, {"mode", "operations", "timer"})


@dataclass(frozen=True)
class OwnBenchmark:
    """What a user measures by instead: a pattern in Python, or a command.

    Attributes:
        pattern: FILE.py:CLASS, or FILE.py alone, with an absolute path; empty for a command.
        command: its words; empty for a pattern.
        output: how the command's output is read (see ``kernels.adapters``).
        folder: where the command is started.
    """

    pattern: str = ""
    command: tuple[str, ...] = ()
    output: str = ""
    folder: str = ""


@dataclass(frozen=True)
class Workload:
    """What is measured: operation, backend, sizes (bytes), ranks, nodes.

    Attributes:
        emulated_nodes: groups of ranks on one machine that the library takes for different
            nodes, so that it uses its network transport between them; 0 for none.
        window: messages under way together, of streams; 0 for the benchmark's own choice.
        own: the user's own benchmark; ``None`` for ours.
    """

    operation: Operation
    sizes: tuple[int, ...]
    ranks: int = 2
    nodes: int = 1
    backend: str = Backend.MPI_HOST
    dtype: str = "float32"
    reduction: str = "sum"
    emulated_nodes: int = 0
    window: int = 0
    own: OwnBenchmark | None = None

    @property
    def words(self) -> str:
        """What is done, for people; of a command, nobody knows the type of its elements."""
        return (
            self.operation
            if self.backend == Backend.COMMAND
            else (f"{self.operation} of {self.dtype}")
        )

    def plain(self) -> dict[str, Any]:
        """As plain data; what came later is left out where it is as it always was before."""
        data = _without_defaults(self, {"emulated_nodes", "window", "own"})
        words = {"operation": str(self.operation), "backend": str(self.backend)}
        own = {"own": _plain_own(self.own)} if self.own else {}
        return {**data, **words, "sizes": list(self.sizes), **own}

    @classmethod
    def of_plain(cls, stored: Mapping[str, Any]) -> Workload:
        """From what ``plain`` gave."""
        own = stored.get("own")
        restored = OwnBenchmark(**{**own, "command": tuple(own["command"])}) if own else None
        return cls(
            **{
                **stored,
                "operation": Operation(stored["operation"]),
                "sizes": tuple(stored["sizes"]),
                "own": restored,
            }
        )


def _plain_own(own: OwnBenchmark) -> dict[str, Any]:
    return {**asdict(own), "command": list(own.command)}


class Outcome(StrEnum):
    """How a run ended. Only OK counts as evidence; the others keep what they measured."""

    OK = "ok"
    WRONG_RESULT = "wrong-result"
    TIMED_OUT = "timed-out"
    CRASHED = "crashed"
    FAILED = "failed"
    TRUNCATED = "truncated"
    MALFORMED = "malformed"
    MISSING_PROGRAM = "missing-program"
    OUT_OF_MEMORY = "out-of-memory"
    INTERRUPTED = "interrupted"
    NODE_FAILURE = "node-failure"
    PREEMPTED = "preempted"
    CANCELLED = "cancelled"
    NEVER_STARTED = "never-started"

    @property
    def is_lost(self) -> bool:
        """Whether the run was cut short or never made, by something that it could not help."""
        return self in _LOST

    @property
    def blames_configuration(self) -> bool:
        """Whether the configuration may be the cause, so that the search must learn of it."""
        return self not in (Outcome.OK, Outcome.MISSING_PROGRAM, *_LOST)


_LOST = frozenset(
    {
        Outcome.INTERRUPTED,
        Outcome.NODE_FAILURE,
        Outcome.PREEMPTED,
        Outcome.CANCELLED,
        Outcome.NEVER_STARTED,
    }
)


class Phase(StrEnum):
    """What a run was made for."""

    SEARCH = "search"
    ABLATE = "ablate"
    CONFIRM = "confirm"
    GUARD = "guard"
    VERIFY = "verify"


@dataclass(frozen=True)
class BlockPlan:
    """Runs to be made close together, in this order; stored before the first of them starts.

    Attributes:
        order: the configurations by position; the default is among them.
    """

    number: int
    phase: Phase
    operation: Operation
    order: tuple[Configuration, ...]


class Followed(StrEnum):
    """Whether the library did what a configuration asked for."""

    EXECUTED = "executed"
    REPLACED = "replaced"
    IGNORED = "ignored"
    UNKNOWN = "unknown"

    @property
    def is_credited(self) -> bool:
        """Whether results may be put down to the configuration."""
        return self in (Followed.EXECUTED, Followed.UNKNOWN)


@dataclass(frozen=True)
class Execution:
    """What the library did under a configuration, from an untimed run of its own.

    Attributes:
        fingerprints: by size in bytes, a digest of a floating-point reduction whose result
            depends on the order of summation: equal digests, most likely the same algorithm.
        said: what the library itself said that it did, line by line, without its timestamps.
        why: for a person: what was ignored or replaced, and how that is known.
        became: key of the configuration that behaves the same, where one is known.
    """

    configuration: Configuration
    operation: str
    followed: Followed = Followed.UNKNOWN
    fingerprints: Mapping[int, str] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    why: str = ""
    became: str | None = None


@dataclass(frozen=True)
class RunRequest:
    """One launch of the benchmark, decided but not yet made.

    Attributes:
        run_id: ours, unique, given before anything starts.
        trial: number of the trial in its campaign that this run belongs to.
        block: number of the block; runs of one block were made close together.
        position: place of the run inside its block, from 0.
    """

    run_id: str
    configuration: Configuration
    workload: Workload
    timing: Timing
    phase: Phase = Phase.SEARCH
    trial: int = 0
    block: int = 0
    position: int = 0


@dataclass(frozen=True)
class Measurement:
    """What one run says of one size.

    Attributes:
        bytes: message size, in the sense of the operation (see the benchmark reference).
        median_s, min_s, mean_s, p95_s, max_s: over samples; a sample is the maximum over ranks.
        samples_s: the samples themselves, in the order taken.
        batch: operations timed together in one sample (time is per operation).
        canary_s, canary_after_s: core-to-core cache-line round trip before and after this size;
            ``None`` where not measured. They differ where the machine changed its speed between.
        wrong: number of wrong elements found by the check.
    """

    bytes: int
    median_s: float
    min_s: float
    mean_s: float
    p95_s: float
    max_s: float
    algbw: float
    busbw: float
    samples_s: tuple[float, ...] = ()
    batch: int = 1
    canary_s: float | None = None
    canary_after_s: float | None = None
    wrong: int = 0


@dataclass(frozen=True)
class RunResult:
    """What came of one launch.

    Attributes:
        wall_s: from starting the launcher to its end, as the controller saw it.
        measurements: the sizes that were finished, whatever the outcome.
        header, footer: the benchmark's own records, verbatim; ``None`` where it wrote none. In the
            header is ``beside`` as well, where an aggressor was: what that moved, and how fast.
        detail: why the outcome is not OK, for a person; for OK empty, or what disturbed the run:
            GPUs that were slowed down.
        output_tail: last lines of standard output and error.
        oversubscribed: more ranks than cores they may use: never yields a profile.
        other_load: CPU time that others used on this machine's cores during the run, as a share
            of all its cores' time (0 to 1); ``None`` where it can't be told.
        nodes: names of the nodes that it ran on, where a scheduler gave them; else empty.
        distance: how far apart they stand, as ``cluster.slurm.placement.Distance`` says it; empty
            where nobody asked.
    """

    run_id: str
    outcome: Outcome
    started_at: float
    wall_s: float
    measurements: tuple[Measurement, ...] = ()
    header: Mapping[str, Any] | None = None
    footer: Mapping[str, Any] | None = None
    detail: str = ""
    output_tail: str = ""
    exit_code: int | None = None
    oversubscribed: bool = False
    other_load: float | None = None
    nodes: tuple[str, ...] = ()
    distance: str = ""


class JobKind(StrEnum):
    """What a scheduler's job is for."""

    BLOCK = "block"
    ALLOCATION = "allocation"
    TRACE = "trace"


class JobStage(StrEnum):
    """How far a job has come, as we wrote it down: the way is one, from left to right."""

    PREPARED = "prepared"  # stored, its script written; perhaps handed in, perhaps not
    SUBMITTED = "submitted"  # the scheduler's number for it is known
    OVER = "over"  # it ended, and what came of it is stored


@dataclass(frozen=True)
class JobRecord:
    """One job of a campaign, as the store keeps it; written before the scheduler hears of it.

    Attributes:
        key: ours, unique for ever; part of the job's name, by which the job is found again.
        block: number of the block whose runs it makes; ``None`` for other kinds.
        folder: where its script, its output and its exit files are.
        number: the scheduler's own number; empty until it is known.
        word, reason: the scheduler's last words on it.
        nodes: names in the scheduler's short form.
        node_count: nodes asked for, and had once it ran.
        prepared_at, started_at, ended_at: seconds since 1970; ``None`` while unknown.
        node_hours: nodes times hours that it had them; as far as known while it runs.
        detail: what went wrong, for a person.
    """

    key: str
    kind: JobKind
    folder: str
    prepared_at: float
    node_count: int
    block: int | None = None
    stage: JobStage = JobStage.PREPARED
    number: str = ""
    word: str = ""
    reason: str = ""
    nodes: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    node_hours: float = 0.0
    detail: str = ""


class Verdict(StrEnum):
    """What confirmation says of a size, or of a size range."""

    FASTER = "faster"
    DEFAULT = "default"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Interval:
    """A ratio default/candidate with its confidence interval; above 1 the candidate is faster."""

    ratio: float
    low: float
    high: float
    pairs: int


@dataclass(frozen=True)
class PointEvidence:
    """What confirmation says of one size, at one machine speed.

    Attributes:
        speed: name of the machine speed that the pairs share (``fast``, ``slow`` or ``all``).
        default_s, tuned_s: median of run medians over the pairs.
        share: share of the pairs of this size that had this speed, 0 to 1.
    """

    operation: str
    bytes: int
    speed: str
    default_s: float
    tuned_s: float
    gain: Interval
    verdict: Verdict
    share: float = 1.0


@dataclass(frozen=True)
class Profile:
    """What comes out of a campaign for a range of sizes: a configuration and its evidence.

    The configuration is the default, empty one where nothing better was confirmed.

    Attributes:
        bytes_low, bytes_high: the range, both ends inclusive.
        points: evidence for the tuned operation, per size and machine speed.
        guards: evidence for other operations measured under the same configuration.
        level: confidence level of every interval, after correction for all that was looked at.
        note: lines for a person: traffic on purpose beside the runs, what could still be hidden.
        details: what else is known, as plain data: what each variable brings, what decided the
            range's ends, what the library executed (see ``tuner.conclusion``).
    """

    name: str
    operation: str
    backend: str
    ranks: int
    nodes: int
    bytes_low: int
    bytes_high: int
    configuration: Configuration
    verdict: Verdict
    points: tuple[PointEvidence, ...] = ()
    guards: tuple[PointEvidence, ...] = ()
    level: float = 0.95
    minimum_gain: float = 0.02
    note: str = ""
    simulated: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)


class AggressorPattern(StrEnum):
    """Who sends to whom in an aggressor; the word is the one of the benchmark's command line."""

    INCAST = "incast"  # all ranks but the first send to the first
    ALLTOALL = "alltoall"  # all ranks send to all


@dataclass(frozen=True)
class Aggressor:
    """Traffic on purpose, on nodes of its own, beside what is measured.

    Attributes:
        nodes, ranks_per_node: what it has to itself; at least 2 ranks in all.
        message_bytes: one message, from one rank to one other.
        burst_s, pause_s: seconds that it sends and is silent, in turn; both 0: it never pauses.
    """

    pattern: AggressorPattern
    nodes: int
    ranks_per_node: int = 1
    message_bytes: int = 131072
    burst_s: float = 0.0
    pause_s: float = 0.0

    @property
    def ranks(self) -> int:
        """Ranks in all."""
        return self.nodes * self.ranks_per_node

    def plain(self) -> dict[str, Any]:
        """As plain data, for what is stored."""
        return {**asdict(self), "pattern": str(self.pattern)}

    @classmethod
    def of_plain(cls, stored: Mapping[str, Any]) -> Aggressor:
        """From what ``plain`` gave."""
        return cls(**{**stored, "pattern": AggressorPattern(stored["pattern"])})
