"""Traffic of operations that consist of point-to-point messages, by link and port.

Amounts are relative to the size of a message; for a matrix, to its largest entry. Ranks fill nodes
one after another, and rank i of a node uses its GPU i.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from commtune.model import Flow
from commtune.model.operations import ACTIVE

#: Patterns with more messages have no nominal bandwidth: counting them would take too long.
_MOST_MESSAGES = 200_000


class Memory(StrEnum):
    """Memory of the messages' buffers."""

    DEVICE = "device"
    HOST = "host"
    STAGED = "staged"  # device memory, copied through host memory

    @classmethod
    def of_backend(cls, backend: str) -> Memory:
        return {"mpi-host": cls.HOST, "mpi-staged": cls.STAGED}.get(backend, cls.DEVICE)


@dataclass(frozen=True)
class NominalQuestion:
    """The operation and layout whose nominal bandwidth is computed."""

    operation: str
    ranks: int
    nodes: int = 1
    memory: Memory = Memory.DEVICE
    #: group_size, active: g and k of patterns of groups.
    group_size: int = 0
    active: int = 0
    #: Of patterns of groups: ``outbound``, ``bidirectional`` or ``omnidirectional``.
    direction: str = "outbound"
    #: first, second: the ranks of ``pairs``.
    first: int = 0
    second: int = 1
    flows: tuple[Flow, ...] = ()  # messages of ``matrix``: sender, receiver, bytes
    window: int = 0  # messages in flight of ``stream``; 0 if unknown

    @property
    def each(self) -> int:
        """Ranks per node."""
        return self.ranks // self.nodes


@dataclass(frozen=True)
class Traffic:
    """Concurrent messages by node; nodes with the same traffic may be listed once."""

    inside: tuple[tuple[Flow, ...], ...]  # for each node, the messages between its GPUs
    #: For each node, the amounts that leave (``out``) and enter (``in``) by GPU.
    crossing: tuple[Mapping[tuple[int, str], float], ...]
    counted: float  # the amount that bus bandwidth counts

    @classmethod
    def of(cls, question: NominalQuestion) -> Traffic | None:
        """Returns an operation's traffic; ``None`` if it doesn't consist of messages.

        Raises:
            OverflowError: there are too many messages.
        """
        if question.operation == "alltoall":
            return _alltoall(question)
        found = _messages(question)
        return None if found is None else _traffic(question, found)

    @classmethod
    def steps_of_striping(cls, question: NominalQuestion) -> dict[str, Traffic]:
        """Returns the traffic of each step of ``striping``, relative to the whole message."""
        size = question.group_size or question.ranks // 2
        share = 1.0 / size
        messages = {
            "split": [(0, i, share) for i in range(1, size)],
            "translate": [(i, size + i, share) for i in range(size)],
            "assemble": [(size + i, size, share) for i in range(1, size)],
        }
        return {
            name: replace(_traffic(question, found), counted=1.0)
            for name, found in messages.items()
            if found
        }


def _traffic(question: NominalQuestion, found: Iterable[Flow]) -> Traffic:
    inside: defaultdict[int, list[Flow]] = defaultdict(list)
    crossing: defaultdict[int, defaultdict[tuple[int, str], float]]
    crossing = defaultdict(lambda: defaultdict(float))
    counted, each = 0.0, question.each
    for number, (start, end, amount) in enumerate(found):
        if number == _MOST_MESSAGES:
            raise OverflowError
        a, i, b, j = start // each, start % each, end // each, end % each
        if a == b:
            inside[a].append((i, j, amount))
        else:
            crossing[a][i, "out"] += amount
            crossing[b][j, "in"] += amount
        counted += _counted(question, start, end, amount)
    unlike = dict.fromkeys(tuple(demands) for demands in inside.values())
    return Traffic(tuple(unlike), tuple(dict(gpus) for gpus in crossing.values()), counted)


def _alltoall(question: NominalQuestion) -> Traffic:
    # Computed without its messages, of which there may be too many: all nodes are alike.
    gpus = range(question.each)
    inside = tuple((a, b, 1.0) for a in gpus for b in gpus if a != b)
    outside = float(question.ranks - question.each)
    crossing = {(gpu, way): outside for gpu in gpus for way in ("out", "in")} if outside else {}
    return Traffic(
        (inside,) if inside else (), (crossing,) if crossing else (), question.ranks - 1.0
    )


def _messages(question: NominalQuestion) -> Iterable[Flow] | None:
    ranks, last = question.ranks, question.ranks - 1
    match question.operation:
        case "ping-pong" | "stream":
            return [(0, last, 1.0)]
        case "bidirectional":
            return [(0, last, 1.0), (last, 0, 1.0)]
        case "pairs":
            return [(question.first, question.second, 1.0)]
        case "ring":
            return ((r, (r + 1) % ranks, 1.0) for r in range(ranks))
        case "incast":
            return ((r, 0, 1.0) for r in range(1, ranks))
        case "one-to-many":
            return ((0, r, 1.0) for r in range(1, ranks))
        case "matrix" if question.flows:
            largest = max(amount for _, _, amount in question.flows)
            return ((a, b, amount / largest) for a, b, amount in question.flows if a != b)
    return _groups(question) if question.operation in ACTIVE and question.group_size else None


def _groups(question: NominalQuestion) -> Iterator[Flow]:
    """Yields the messages of CommBench's rail, asymmetric and symmetric patterns."""
    groups = range(question.ranks // question.group_size)
    if question.direction == "omnidirectional":
        ways = ((a, b, False) for a in groups for b in groups if a != b)
    else:
        ways = ((0, other, False) for other in groups[1:])
    for start, end, back in ways:
        yield from _between(question, start, end, back=back)
    if question.direction == "bidirectional":
        for other in groups[1:]:
            yield from _between(question, other, 0, back=True)


def _between(question: NominalQuestion, start: int, end: int, *, back: bool) -> Iterator[Flow]:
    size, active = question.group_size, question.active
    senders, receivers = active, active
    if question.operation == "asymmetric":
        senders, receivers = (size, active) if back else (active, size)
    for i in range(senders):
        for j in [i] if question.operation == "rail" else range(receivers):
            yield start * size + i, end * size + j, 1.0


def _counted(question: NominalQuestion, start: int, end: int, amount: float) -> float:
    """Returns what bus bandwidth counts: of some patterns only messages of rank or group 0."""
    operation = question.operation
    if operation in ACTIVE:
        size = question.group_size
        return amount if (start < size) != (end < size) else 0.0
    if operation in ("bidirectional", "ring"):
        return amount if start == 0 else 0.0
    return amount
