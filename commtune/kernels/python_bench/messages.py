"""Messages of a pattern, and the parts in which they are started and waited for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commtune.kernels.python_bench.faults import UsageFault

if TYPE_CHECKING:
    from mpi4py import MPI


@dataclass(frozen=True)
class Message:
    """What one rank sends to another, or to itself; offsets and count are in elements.

    Attributes:
        from_offset: in the sender's send buffer.
        to_offset: in the receiver's receive buffer.
        part: number of the part that it belongs to.
    """

    source: int
    destination: int
    from_offset: int
    to_offset: int
    count: int
    part: int


class _Packing:
    """Puts messages one behind the other in the buffers of their senders and receivers."""

    def __init__(self, ranks: int, element: int) -> None:
        self.ranks = ranks
        self.element = element
        self.messages: list[Message] = []
        self.sent: dict[int, int] = defaultdict(int)
        self.received: dict[int, int] = defaultdict(int)
        self.parts = 0

    def add(self, source: int, destination: int, size: int, part: int) -> Message:
        for rank in (source, destination):
            if not 0 <= rank < self.ranks:
                raise UsageFault(f"a message names rank {rank}; ranks are 0 to {self.ranks - 1}")
        count = int(size) // self.element
        if count < 1:
            raise UsageFault(
                f"a message of {size} bytes is less than one element ({self.element} bytes)"
            )
        message = Message(
            source, destination, self.sent[source], self.received[destination], count, part
        )
        self.sent[source] += count
        self.received[destination] += count
        self.messages.append(message)
        return message


def _unbound() -> None:
    raise RuntimeError("start() and wait() work while a pattern is measured, not before")


@dataclass(frozen=True)
class Motion:
    """What a part does on one rank while it is measured.

    Attributes:
        under_way: whether messages were started and not waited for.
    """

    start: Callable[[], None]
    wait: Callable[[], None]
    under_way: Callable[[], bool]


_UNBOUND = Motion(_unbound, _unbound, lambda: False)


class Part:
    """Messages that are started together and waited for together."""

    def __init__(self, packing: _Packing) -> None:
        self._packing = packing
        self._number = packing.parts
        packing.parts += 1
        self._motion = _UNBOUND

    def add(self, source: int, destination: int, size: int) -> Message:
        """Adds a message; every rank adds the same ones, in the same order.

        Args:
            source, destination: ranks; they may be the same.
            size: bytes, rounded down to whole elements.
        """
        return self._packing.add(source, destination, size, self._number)

    def start(self) -> None:
        """Begins this rank's part of the messages."""
        self._motion.start()

    def wait(self) -> None:
        """Returns when this rank's part of the messages is complete."""
        self._motion.wait()


class MessagePattern(Part):
    """What a run needs of a user's :class:`~commtune.kernels.python_bench.pattern.Pattern`.

    Attributes:
        ranks: how many there are.
        size: bytes, as the campaign's ``sizes`` say them; what they mean is the pattern's affair.
        comm: all ranks, an mpi4py communicator; there while it is measured, ``None`` before.
    """

    def __init__(self, ranks: int, size: int, element: int = 1) -> None:
        self.ranks = ranks
        self.size = size
        self.comm: MPI.Comm | None = None
        self._parts: list[Part] = [self]
        super().__init__(_Packing(ranks, element))
        self.define()

    def define(self) -> None:
        """Adds the messages, by ``add`` and by ``part().add``. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} has no define()")

    def part(self) -> Part:
        """A further part, whose messages are started and waited for apart from others."""
        made = Part(self._packing)
        self._parts.append(made)
        return made

    def run(self) -> None:
        """One execution: what is timed. Parts follow each other unless it is overridden.

        When it returns, all messages of this rank must be complete.
        """
        for part in self._parts:
            part.start()
            part.wait()

    @property
    def messages(self) -> Sequence[Message]:
        """All messages, in the order they were added."""
        return self._packing.messages


def bind_messages(
    pattern: MessagePattern,
    comm: MPI.Comm,
    motion_of: Callable[[Sequence[Message]], Motion],
) -> None:
    """Gives every part of a pattern what starts and waits for its messages."""
    pattern.comm = comm
    for part in pattern._parts:
        own = [m for m in pattern.messages if m.part == part._number]
        part._motion = motion_of(own)


def incomplete_messages(pattern: MessagePattern) -> str:
    """What of this rank's messages ``run`` left under way, in words; empty if nothing."""
    left = [part._number for part in pattern._parts if part._motion.under_way()]
    if not left:
        return ""
    which = f"its part() {left[0]}" if left[0] else "the pattern itself"
    return (
        f"{type(pattern).__name__}: run() returned at {pattern.size} bytes before the messages of "
        f"{which} were complete; every start() needs its wait() in run()"
    )
