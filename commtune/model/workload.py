"""Workloads, which are what a run measures; timing; and aggressors beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from commtune.model.operations import Backend, Operation, PatternParameters

#: Values of ``Timing.mode`` and ``Timing.timer``, the default first.
_BLOCKING, BATCHED = "blocking", "batched"
WALL, DEVICE = "wall", "device"

#: Bytes of an element, by its type.
ELEMENT_BYTES = {"float32": 4, "float64": 8, "int32": 4, "uint8": 1}
#: Messages of a stream in flight, by the benchmark's default.
_STREAM_WINDOW = 64


#: The fewest samples with a 95th percentile; of fewer it would be the slowest one.
FEWEST_TAIL_SAMPLES = 20


@dataclass(frozen=True)
class Timing:
    """How long the benchmark measures each size.

    Attributes:
        warmup: iterations dropped before the first sample.
        min_samples, max_samples: bounds on the number of samples a size.
        relative_ci: stop when the 95 % confidence interval of the median is narrower, from end to
            end, than this share of the median.
        time_cap_s: wall seconds a size may take, warm-up included, once min_samples is reached.
        mode: ``blocking``: each sample waits for the end of its operations; ``batched``:
            ``operations`` are enqueued, and waited for together.
        operations: number in a batch, or in a sample if ``blocking``; 0: the benchmark batches the
            shortest.
        timer: ``wall``: the clock of the host, around waiting for the device; ``device``: events
            on the device.
        graph: whether a batch is recorded once and launched as a graph (``batched`` only).
        percentile: that of a size's samples which is its time: 50, the median, or 95.
    """

    warmup: int = 5
    min_samples: int = 10
    max_samples: int = 200
    relative_ci: float = 0.01
    time_cap_s: float = 0.05
    mode: str = _BLOCKING
    operations: int = 0
    timer: str = WALL
    graph: bool = False
    percentile: int = 50

    def plain(self) -> dict[str, Any]:
        """Returns plain data, without default values."""
        usual = asdict(Timing())
        optional = ("mode", "operations", "timer", "graph", "percentile")
        return _without_defaults(asdict(self), {name: usual[name] for name in optional})

    @property
    def said(self) -> str:
        """How operations are timed, for people; empty if each is waited for by itself."""
        recorded = ", recorded as graphs" if self.graph else ""
        together = f"in batches of {self.operations}{recorded}" if self.mode == BATCHED else ""
        clock = "by the device's clock" if self.timer == DEVICE else ""
        return ", ".join(filter(None, (together, clock)))


@dataclass(frozen=True)
class OwnBenchmark:
    """A user's own benchmark: a pattern in Python, or a command.

    Attributes:
        pattern: FILE.py:CLASS, or FILE.py alone, with an absolute path; empty for a command.
        command: its arguments; empty for a pattern.
        output: format of the command's output (see ``kernels.adapters``).
        folder: working directory of the command.
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
        window: messages of a stream in flight; 0 for the benchmark's default (``stream_window``).
        own: the user's own benchmark; ``None`` for commtune's.
        shape: parameters of operations between groups, of a matrix, and of striping.
        rotate: whether each operation is at another offset in the buffers, so that caches hold
            less.
        then: operations that the native benchmark measures afterwards, in the same processes.
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
    shape: PatternParameters = field(default_factory=PatternParameters)
    rotate: bool = False
    then: tuple[Operation, ...] = ()

    @property
    def operations(self) -> tuple[Operation, ...]:
        """All operations that one run measures, in order."""
        return (self.operation, *self.then)

    @property
    def takes_several(self) -> bool:
        """Whether one run can measure several operations: with the native benchmark only."""
        return self.own is None and Backend(self.backend).is_native

    @property
    def takes_any_size(self) -> bool:
        """Whether a run can measure any size; a command has its own sizes."""
        return self.own is None or not self.own.command

    @property
    def words(self) -> str:
        """The operation, for people; the element type of a command isn't known."""
        if self.backend == Backend.COMMAND or (self.own and self.own.command):
            return self.operation
        said = (f"{self.operation} of {self.dtype}", self.pattern)
        return ", ".join(filter(None, said))

    @property
    def pattern(self) -> str:
        """What the operation's name and ranks leave open, for people; empty for nothing."""
        # The window of a user's own benchmark isn't known.
        is_stream = self.operation is Operation.STREAM and self.own is None
        streaming = f"window of {self.stream_window}" if is_stream else ""
        rotating = "rotating through the buffers" if self.rotate else ""
        return ", ".join(filter(None, (streaming, self.shape.said(self.operation), rotating)))

    @property
    def stream_window(self) -> int:
        """The number of messages of a stream in flight."""
        return self.window or _STREAM_WINDOW

    @property
    def element_bytes(self) -> int:
        """The bytes of an element; 1 for a command, whose elements aren't known."""
        return 1 if self.backend == Backend.COMMAND else ELEMENT_BYTES[self.dtype]

    @property
    def bytes_of_one_more(self) -> int:
        """The bytes that one element more adds to a size, or one for each rank to a total."""
        return self.element_bytes * (self.ranks if self.operation.is_total else 1)

    @property
    def measured_a_size(self) -> int:
        """The most measurements of a run at each size, including those of parts or of pairs."""
        if self.operation is Operation.PAIRS:
            return self.ranks * (self.ranks - 1)
        return 1 + _PART_COUNTS.get(self.operation, 0)

    def plain(self) -> dict[str, Any]:
        """Returns plain data, without default values."""
        own = {**asdict(self.own), "command": list(self.own.command)} if self.own else None
        plain = {
            **{f.name: getattr(self, f.name) for f in fields(self)},
            "operation": str(self.operation),
            "backend": str(self.backend),
            "sizes": list(self.sizes),
            "own": own,
            "shape": self.shape.plain(),
            "then": [str(operation) for operation in self.then],
        }
        usual = {"emulated_nodes": 0, "window": 0, "own": None, "rotate": False}
        return _without_defaults(plain, {**usual, "shape": {}, "then": []})

    @classmethod
    def of_plain(cls, stored: Mapping[str, Any]) -> Workload:
        own = stored.get("own")
        restored = OwnBenchmark(**{**own, "command": tuple(own["command"])}) if own else None
        return cls(
            **{
                **stored,
                "operation": Operation(stored["operation"]),
                "sizes": tuple(stored["sizes"]),
                "own": restored,
                "shape": PatternParameters(**stored.get("shape") or {}),
                "then": tuple(Operation(word) for word in stored.get("then", ())),
            }
        )


#: The number of parts that the benchmark also measures by themselves, beside the whole.
_PART_COUNTS = {Operation.MATRIX: 2, Operation.STRIPING: 4}


def _without_defaults(plain: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the items that don't have their default values."""
    absent = object()
    return {name: value for name, value in plain.items() if value != usual.get(name, absent)}


class AggressorPattern(StrEnum):
    """Who sends to whom in an aggressor, by its name on the benchmark's command line."""

    INCAST = "incast"  # all ranks but the first send to the first
    ALLTOALL = "alltoall"  # all ranks send to all


@dataclass(frozen=True)
class Aggressor:
    """Deliberate traffic on separate nodes, beside what is measured.

    Attributes:
        nodes, ranks_per_node: its own nodes and ranks; at least 2 ranks in all.
        message_bytes: of one message, from one rank to another.
        burst_s, pause_s: seconds that it sends and pauses, in turn; both 0 for no pauses.
    """

    pattern: AggressorPattern
    nodes: int
    ranks_per_node: int = 1
    message_bytes: int = 131072
    burst_s: float = 0.0
    pause_s: float = 0.0

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node

    def plain(self) -> dict[str, Any]:
        """Returns plain data, as it is stored."""
        return {**asdict(self), "pattern": str(self.pattern)}

    @classmethod
    def of_plain(cls, stored: Mapping[str, Any]) -> Aggressor:
        return cls(**{**stored, "pattern": AggressorPattern(stored["pattern"])})
