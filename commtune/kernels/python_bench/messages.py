"""Messages of a pattern, in the parts in which they are started and waited for; and its calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from commtune.kernels.python_bench.faults import UsageFault
from commtune.kernels.python_bench.layout import CALLS

if TYPE_CHECKING:
    from mpi4py import MPI


@dataclass(frozen=True)
class Message:
    """What one rank sends to another, or to itself.

    Offsets, in the sender's and in the receiver's buffer, and count are in elements.
    """

    source: int
    destination: int
    from_offset: int
    to_offset: int
    count: int
    part: int


@dataclass(frozen=True)
class Call:
    """A collective of the library, so many times in a row; ``size`` as in docs/benchmark.md."""

    operation: str
    size: int
    times: int


def _unbound(*_: object) -> list[Any]:
    raise RuntimeError("start() and wait() work while a pattern is measured, not before")


class Part:
    """Messages that are started together and waited for together."""

    def __init__(self, whole: MessagePattern, number: int) -> None:
        self._whole = whole
        self._number = number
        self._begin: Callable[[], list[Any]] = _unbound
        self._wait_all: Callable[[list[Any]], object] = _unbound
        self._under_way: list[Any] = []

    def add(self, source: int, destination: int, size: int) -> Message:
        """Adds a message; every rank adds the same ones, in the same order.

        Args:
            source, destination: ranks; they may be the same.
            size: bytes, rounded down to whole elements.
        """
        return self._whole._packed(source, destination, size, self._number)

    def start(self) -> None:
        """Begins this rank's part of the messages."""
        self._under_way.extend(self._begin())

    def wait(self) -> None:
        """Returns when this rank's part of the messages is complete."""
        self._wait_all(self._under_way)
        self._under_way.clear()


class MessagePattern(Part):
    """What a run needs of a user's :class:`~commtune.kernels.python_bench.Pattern`."""

    def __init__(self, ranks: int, size: int, element: int = 1) -> None:
        super().__init__(self, 0)
        self.ranks = ranks
        self.size = size
        self.comm: MPI.Comm | None = None
        self._element = element
        self._parts: list[Part] = [self]
        self._messages: list[Message] = []
        self._sent: dict[int, int] = defaultdict(int)
        self._received: dict[int, int] = defaultdict(int)
        self._calls: list[Call] = []
        self._make_calls: Callable[[], object] = _unbound
        self.define()

    def define(self) -> None:
        """Adds messages and calls, by ``add``, ``part().add`` and ``call``. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} has no define()")

    def part(self) -> Part:
        """A further part, whose messages are started and waited for apart from others."""
        made = Part(self, len(self._parts))
        self._parts.append(made)
        return made

    def call(self, operation: str, size: int, times: int = 1) -> None:
        """Adds a collective of the library over all ranks; every rank adds the same ones.

        Args:
            operation: ``allreduce``, ``broadcast`` ...
            size: bytes, as the operation counts them.
            times: how often, one after the other.
        """
        if operation not in CALLS:
            raise UsageFault(f"there is no call '{operation}'; calls are: {', '.join(CALLS)}")
        if times < 1:
            raise UsageFault(f"{operation} is to be called {times} times")
        self._calls.append(Call(operation, int(size), int(times)))

    def run_calls(self) -> None:
        """Makes all calls, in the order in which they were added."""
        self._make_calls()

    def run(self) -> None:
        """Executes it once, which is timed: part after part, then the calls, unless overridden.

        When it returns, all messages of this rank must be complete, and all calls made.
        """
        for part in self._parts:
            part.start()
            part.wait()
        if self._calls:
            self.run_calls()

    @property
    def calls(self) -> Sequence[Call]:
        """All calls, in the order they were added."""
        return self._calls

    @property
    def messages(self) -> Sequence[Message]:
        """All messages, in the order they were added."""
        return self._messages

    def _packed(self, source: int, destination: int, size: int, part: int) -> Message:
        """Puts a message behind the others in the buffers of its sender and its receiver."""
        for rank in (source, destination):
            if not 0 <= rank < self.ranks:
                raise UsageFault(f"a message names rank {rank}; ranks are 0 to {self.ranks - 1}")
        count = int(size) // self._element
        if count < 1:
            raise UsageFault(
                f"a message of {size} bytes is less than one element ({self._element} bytes)"
            )
        begin, end = self._sent[source], self._received[destination]
        message = Message(source, destination, begin, end, count, part)
        self._sent[source] += count
        self._received[destination] += count
        self._messages.append(message)
        return message

    def _bind(
        self,
        comm: MPI.Comm,
        begin_of: Callable[[Sequence[Message]], Callable[[], list[Any]]],
        wait_all: Callable[[list[Any]], object],
        make_calls: Callable[[], object],
    ) -> None:
        """Gives every part what starts its messages, and what waits for their requests."""
        self.comm = comm
        self._make_calls = make_calls
        for part in self._parts:
            part._begin = begin_of([m for m in self.messages if m.part == part._number])
            part._wait_all = wait_all

    def _incomplete(self) -> str:
        """What of this rank's messages ``run`` left under way, in words; empty if nothing."""
        left = [part._number for part in self._parts if part._under_way]
        if not left:
            return ""
        which = f"its part() {left[0]}" if left[0] else "the pattern itself"
        return (
            f"{type(self).__name__}: run() returned at {self.size} bytes before the messages of "
            f"{which} were complete; every start() needs its wait() in run()"
        )
