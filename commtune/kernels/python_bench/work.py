"""What one rank does at one size: operations and patterns, ready to go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from commtune.kernels.python_bench.data import Expected
from commtune.kernels.python_bench.faults import UsageFault
from commtune.kernels.python_bench.layout import CALLS, ELEMENT_BYTES, Layout, lay_out
from commtune.kernels.python_bench.messages import Call, Message, MessagePattern
from commtune.kernels.python_bench.options import Options
from commtune.kernels.python_bench.world import World

_TAG = 8


@dataclass(frozen=True)
class Work:
    """One size of an operation or a pattern, for one rank."""

    layout: Layout
    run: Callable[[], None]  # does it once; returns when this rank's part is complete
    expected: tuple[Expected, ...]
    takes_part: bool
    #: What ``run`` left under way on this rank, in words; ``None`` where it can't.
    incomplete: Callable[[], str] | None = None
    is_call: bool = False  # done by the library's own call, not by messages


def _mpi_type(world: World, dtype: str) -> Any:
    mpi = world.mpi
    types = {"float32": mpi.FLOAT, "float64": mpi.DOUBLE, "int32": mpi.INT32_T}
    return types.get(dtype, mpi.UINT8_T)


def _mpi_reduction(world: World, word: str) -> Any:
    return world.mpi.SUM if word == "sum" else world.mpi.MAX


def _call_of(
    operation: str, world: World, send: Any, received: Any, reduction: Any
) -> Callable[[], None]:
    """A call of the library; the arrays with their types."""
    comm = world.comm
    match operation:
        case "allreduce":
            return lambda: comm.Allreduce(send, received, reduction)
        case "reduce":
            return lambda: comm.Reduce(send, received, reduction, 0)
        case "broadcast":
            data = send if world.is_first else received
            return lambda: comm.Bcast(data, 0)
        case "allgather":
            return lambda: comm.Allgather(send, received)
        case "reduce-scatter":
            return lambda: comm.Reduce_scatter_block(send, received, reduction)
        case "alltoall":
            return lambda: comm.Alltoall(send, received)
    raise ValueError(f"not a call: {operation}")


def _refuse_unaware(operation: str, denied_by: str) -> None:
    raise UsageFault(
        f"this MPI says that it is not aware of GPUs ({denied_by}): its {operation} "
        "would work on device memory from the host. Use mpi-staged or xccl, or an MPI "
        "built for these GPUs"
    )


class Operations:
    """MPI's operations over arrays of the largest size; ``denied_by`` is as in ``devices``.

    Raises:
        UsageFault: a size is too small, or the MPI would work on device memory from the host.
    """

    def __init__(self, options: Options, world: World, denied_by: str = "") -> None:
        op, dtype = options.op, options.dtype
        if denied_by and op in CALLS and op != "alltoall":
            _refuse_unaware(op, denied_by)
        self._is_call = op in CALLS and not denied_by
        self._window = options.window
        self._world = world
        self.layouts = [
            lay_out(op, dtype, size, world.size, options.window) for size in options.sizes
        ]
        self._type = _mpi_type(world, options.dtype)
        self._reduction = _mpi_reduction(world, options.reduction)

    def work(self, layout: Layout, send: Any, received: Any) -> Work:
        """One of the layouts, with the arrays of all of them."""
        rank, last = self._world.rank, self._world.size - 1
        self._send, self._received = send, received
        return Work(
            layout=layout,
            run=self._runner(layout),
            expected=tuple(_expected_by(layout, rank)),
            takes_part=not layout.takes_two or rank in (0, last),
            is_call=self._is_call,
        )

    def _runner(self, layout: Layout) -> Callable[[], None]:
        send = [self._send[: layout.send_count], self._type]
        received = [self._received[: layout.receive_count], self._type]
        if layout.takes_two and self._world.rank not in (0, self._world.size - 1):
            return lambda: None
        if self._is_call:
            return _call_of(layout.operation, self._world, send, received, self._reduction)
        match layout.operation:
            case "alltoall":
                return self._alltoall_of_messages(layout)
            case "ping-pong":
                return self._ping_pong(send, received)
            case "stream":
                return self._stream(send, received)
        return self._exchange(layout, send, received)

    def _ping_pong(self, send: Any, received: Any) -> Callable[[], None]:
        comm, last = self._world.comm, self._world.size - 1

        def serve() -> None:
            comm.Send(send, last, _TAG)
            comm.Recv(received, last, _TAG)

        def answer() -> None:
            comm.Recv(received, 0, _TAG)
            comm.Send(send, 0, _TAG)

        return serve if self._world.is_first else answer

    def _alltoall_of_messages(self, layout: Layout) -> Callable[[], None]:
        comm, waitall = self._world.comm, self._world.mpi.Request.Waitall
        begins = [rank * layout.count for rank in range(layout.ranks)]
        sends = [[self._send[b : b + layout.count], self._type] for b in begins]
        receives = [[self._received[b : b + layout.count], self._type] for b in begins]

        def all_at_once() -> None:
            requests = [comm.Irecv(block, rank, _TAG) for rank, block in enumerate(receives)]
            requests += [comm.Isend(block, rank, _TAG) for rank, block in enumerate(sends)]
            waitall(requests)

        return all_at_once

    def _exchange(self, layout: Layout, send: Any, received: Any) -> Callable[[], None]:
        """Sends to one rank and receives from one at the same time."""
        comm, waitall = self._world.comm, self._world.mpi.Request.Waitall
        rank, ranks = self._world.rank, self._world.size
        if layout.operation == "bidirectional":
            to = source = ranks - 1 - rank
        else:  # ring
            to, source = (rank + 1) % ranks, (rank - 1) % ranks

        def both() -> None:
            waitall([comm.Irecv(received, source, _TAG), comm.Isend(send, to, _TAG)])

        return both

    def _stream(self, send: Any, received: Any) -> Callable[[], None]:
        comm, waitall = self._world.comm, self._world.mpi.Request.Waitall
        last, window = self._world.size - 1, range(self._window)
        # The last rank answers with one element when it has the whole window.
        answer, heard = [self._send[:1], self._type], [self._received[:1], self._type]

        def pour() -> None:
            waitall([comm.Isend(send, last, _TAG) for _ in window])
            comm.Recv(heard, last, _TAG)

        def take() -> None:
            waitall([comm.Irecv(received, 0, _TAG) for _ in window])
            comm.Send(answer, 0, _TAG)

        return pour if self._world.is_first else take


def _expected_by(layout: Layout, rank: int) -> list[Expected]:
    """All that a rank must receive in an operation; nothing for ranks that receive nothing."""
    count, ranks = layout.count, layout.ranks
    last, own = ranks - 1, rank * count
    match layout.operation:
        case "ping-pong" | "bidirectional":
            return [Expected(0, count, last - rank, 0)] if rank in (0, last) else []
        case "stream":
            return {0: [Expected(0, 1, last, 0)], last: [Expected(0, count, 0, 0)]}.get(rank, [])
        case "ring":
            return [Expected(0, count, (rank - 1) % ranks, 0)]
        case "broadcast":
            return [Expected(0, count, 0, 0)] if rank else []
        case "allreduce":
            return [Expected(0, count, None, 0)]
        case "reduce":
            return [] if rank else [Expected(0, count, None, 0)]
        case "reduce-scatter":
            return [Expected(0, count, None, own)]
        case "allgather":
            return [Expected(source * count, count, source, 0) for source in range(ranks)]
        case "alltoall":
            return [Expected(source * count, count, source, own) for source in range(ranks)]
    raise ValueError(f"an operation without a check: {layout.operation}")


@dataclass(frozen=True)
class _PlacedCall:
    """A call with its layout; ``offset``: of what it receives, in elements."""

    layout: Layout
    times: int
    offset: int


class Patterns:
    """A user's pattern over arrays of the largest size; ``denied_by`` is as in ``devices``.

    Raises:
        UsageFault: a pattern has neither messages nor calls, or not the same ones on every rank,
            or the MPI would make its calls on device memory from the host.
    """

    def __init__(
        self, kind: type[MessagePattern], options: Options, world: World, denied_by: str = ""
    ) -> None:
        self._kind = kind
        self._options = options
        self._world = world
        self._denied_by = denied_by
        self._element = ELEMENT_BYTES[options.dtype]
        self.layouts = [self._layout(size) for size in options.sizes]

    def work(self, layout: Layout, send: Any, received: Any) -> Work:
        """As of ``Operations``."""
        rank = self._world.rank
        self._send, self._received = send, received
        pattern = self._kind(self._world.size, layout.bytes, self._element)
        comm, wait_all = self._world.comm, self._world.mpi.Request.Waitall
        calls = self._placed(pattern)
        pattern._bind(comm, self._begin, wait_all, self._caller(calls))
        mine = [m for m in pattern.messages if rank in (m.source, m.destination)]
        expected = [
            Expected(m.to_offset, m.count, m.source, m.from_offset)
            for m in mine
            if m.destination == rank
        ]
        for call in calls:
            expected += [
                replace(one, offset=one.offset + call.offset)
                for one in _expected_by(call.layout, rank)
            ]
        takes_part = bool(mine or calls)
        return Work(layout, pattern.run, tuple(expected), takes_part, pattern._incomplete)

    def _placed(self, pattern: MessagePattern) -> list[_PlacedCall]:
        """Calls, each with a place of its own behind what any rank receives in messages."""
        placed = []
        offset = max(_received_by(pattern.messages, self._world.size))
        for call in pattern.calls:
            layout = lay_out(call.operation, self._options.dtype, call.size, self._world.size)
            placed.append(_PlacedCall(layout, call.times, offset))
            offset += layout.receive_count
        return placed

    def _caller(self, calls: Sequence[_PlacedCall]) -> Callable[[], None]:
        mpi_type = _mpi_type(self._world, self._options.dtype)
        reduction = _mpi_reduction(self._world, self._options.reduction)
        each = []
        for call in calls:
            send = [self._send[: call.layout.send_count], mpi_type]
            end = call.offset + call.layout.receive_count
            received = [self._received[call.offset : end], mpi_type]
            made = _call_of(call.layout.operation, self._world, send, received, reduction)
            each.append((made, range(call.times)))

        def make_calls() -> None:
            for made, times in each:
                for _ in times:
                    made()

        return make_calls

    def _begin(self, messages: Sequence[Message]) -> Callable[[], list[Any]]:
        comm, rank = self._world.comm, self._world.rank
        receives = [
            (self._received[m.to_offset : m.to_offset + m.count], m.source, _TAG + m.part)
            for m in messages
            if m.destination == rank
        ]
        sends = [
            (self._send[m.from_offset : m.from_offset + m.count], m.destination, _TAG + m.part)
            for m in messages
            if m.source == rank
        ]

        def begin() -> list[Any]:
            requests = [comm.Irecv(*receive) for receive in receives]
            return requests + [comm.Isend(*send) for send in sends]

        return begin

    def _layout(self, size: int) -> Layout:
        world, element = self._world, self._element
        pattern = self._kind(world.size, size, element)
        self._refuse_unfit(pattern, size)
        messages, calls = pattern.messages, self._placed(pattern)
        sent = [sum(m.count for m in messages if m.source == r) for r in range(world.size)]
        received = max(_received_by(messages, world.size))
        blocks = [m.count for m in messages] + [call.layout.count for call in calls]
        return Layout(
            operation=self._options.op,
            ranks=world.size,
            bytes=size,
            count=max(blocks),
            bytes_per_rank=max(sent) * element
            + sum(call.times * call.layout.bytes_per_rank for call in calls),
            bytes_per_peer=max(blocks) * element,
            bytes_total=sum(sent) * element
            + sum(call.times * call.layout.bytes_total for call in calls),
            send_count=max([*sent, *(call.layout.send_count for call in calls)]),
            receive_count=received + sum(call.layout.receive_count for call in calls),
            meaning="per-rank",
        )

    def _refuse_unfit(self, pattern: MessagePattern, size: int) -> None:
        name, world = self._kind.__name__, self._world
        own: tuple[Message | Call, ...] = (*pattern.messages, *pattern.calls)
        if not own:
            raise UsageFault(f"{name} adds no messages and no calls at {size} bytes")
        alike = world.gather(own)
        if not world.from_first(all(other == alike[0] for other in alike)):
            raise UsageFault(
                f"{name} adds different messages or calls on different ranks at {size} bytes; "
                "every rank has to add all of them, in the same order"
            )
        if self._denied_by and pattern.calls:
            _refuse_unaware(pattern.calls[0].operation, self._denied_by)


def _received_by(messages: Sequence[Message], ranks: int) -> list[int]:
    """Elements that each rank receives."""
    return [sum(m.count for m in messages if m.destination == r) for r in range(ranks)]
