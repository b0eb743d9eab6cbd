"""What a message size means for an operation and a number of ranks; as in docs/benchmark.md."""

from __future__ import annotations

from dataclasses import dataclass

from commtune.kernels.python_bench.faults import UsageFault

#: Data types, with the size of one element.
ELEMENT_BYTES = {"float32": 4, "float64": 8, "int32": 4, "uint8": 1}
#: Messages that ``stream`` has under way, unless it is said otherwise.
WINDOW = 64

_BETWEEN_TWO = ("ping-pong", "bidirectional", "stream")
_TOTAL = ("alltoall", "allgather", "reduce-scatter")
#: What is done by the library's own call; the others are made of messages.
CALLS = ("allreduce", "reduce", "broadcast", *_TOTAL)
OPERATIONS = (*_BETWEEN_TWO, "ring", *CALLS)


@dataclass(frozen=True)
class Layout:
    """One size of one operation; counts are in elements."""

    operation: str
    ranks: int
    bytes: int
    count: int  # elements of one block
    bytes_per_rank: int
    bytes_per_peer: int
    bytes_total: int  # what bandwidths are computed from
    send_count: int
    receive_count: int
    meaning: str  # ``per-rank`` or ``total``: what ``bytes`` counts

    @property
    def takes_two(self) -> bool:
        """Whether only rank 0 and the last rank take part."""
        return self.operation in _BETWEEN_TWO

    @property
    def bus_factor(self) -> float:
        """Bus bandwidth / algorithm bandwidth (factors of nccl-tests)."""
        others = (self.ranks - 1) / self.ranks
        if self.operation == "allreduce":
            return 2 * others
        return others if self.operation in _TOTAL else 1.0

    @property
    def time_share(self) -> float:
        """Share of the timed interval that is one operation: half of a ping-pong's round trip."""
        return 0.5 if self.operation == "ping-pong" else 1.0


def lay_out(operation: str, dtype: str, size: int, ranks: int, window: int = WINDOW) -> Layout:
    """Lays a size (bytes) out over ranks, rounded down to whole elements, but never to none.

    Raises:
        UsageFault: it doesn't hold a single element, or there are too few ranks.
    """
    element = ELEMENT_BYTES[dtype]
    if size < element:
        raise UsageFault(f"size {size} is less than one element of {dtype} ({element} bytes)")
    if operation in _BETWEEN_TWO and ranks < 2:
        raise UsageFault(f"{operation} needs at least 2 ranks")
    blocks = ranks if operation in _TOTAL else 1
    count = max(1, size // (element * blocks))
    block, whole = count * element, count * element * blocks
    return Layout(
        operation=operation,
        ranks=ranks,
        bytes=size,
        count=count,
        bytes_per_rank=block if operation in ("allgather", "reduce-scatter") else whole,
        bytes_per_peer=block,
        bytes_total=window * whole if operation == "stream" else whole,
        send_count=count if operation == "allgather" else count * blocks,
        receive_count=count if operation == "reduce-scatter" else count * blocks,
        meaning="total" if operation in _TOTAL else "per-rank",
    )
