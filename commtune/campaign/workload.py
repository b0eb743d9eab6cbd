"""Model of the section ``workload`` of a campaign file: what is measured."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from commtune.campaign.value_types import require_within
from commtune.documents.nearest import quote_value
from commtune.documents.quantities import list_multiples, parse_bytes
from commtune.errors import InvalidKey, InvalidValue
from commtune.formatting import format_size, list_first
from commtune.model import ELEMENT_BYTES, Backend, Direction, Operation, Workload
from commtune.spaces.schema import Model, Text, Truth, Whole

#: Default sizes (bytes) of comparisons, and of campaigns whose runs cost too much for more. Small
#: sizes are there to reveal harm; at large ones, gains are largest.
DEFAULT_SIZES = (8, 64, 1024, 8192, 65536, 262144, 1048576, 4194304)
_HOST_RANGE, _GPU_RANGE = "8 .. 4MiB x2", "8 .. 128MiB x2"
_LARGEST_SIZE = 2**30
#: The most MPI processes of a run; more has not been tried. The records' header grows with each.
MOST_RANKS = 4096
RANKS_WORDS = f"from 2 to {MOST_RANKS}; a command of your own from 1"
_FROM_TO = re.compile(r"(\w+) *(?:-|to|:) *(\w+)")
_SIZES_HINT = 'write [8, 64KiB, 1MiB] or "8 .. 4MiB x2"'


def _parse_operation(written: object) -> object:
    """Returns the word unchanged, but refuses several words, and what can't be tuned."""
    if isinstance(written, list):
        hint = "name one, and the others under guard_operations, at the top level"
        raise InvalidValue("a campaign tunes one operation", hint=hint)
    if written == "pairs":
        message = "pairs has no time of the whole: it measures each pair of ranks by itself"
        raise InvalidValue(message, hint="commtune bench --op pairs shows them")
    return written


def parse_sizes(written: object) -> tuple[int, ...]:
    """Parses sizes from a list or from ``"8 .. 4MiB x2"`` (each twice the last).

    Raises:
        InvalidValue: they are invalid; the hint says what is legal.
    """
    if isinstance(written, str) and ".." in written:
        return _size_range(written)
    if isinstance(written, str) and (ends := _FROM_TO.fullmatch(written)):
        hint = f'write "{ends[1]} .. {ends[2]} x2"'
        raise InvalidValue(f"{quote_value(written)} is not a range of sizes", hint=hint)
    items: Sequence[Any] = written if isinstance(written, list | tuple) else [written]
    sizes = sorted({parse_bytes(item) for item in items})
    if not sizes:
        raise InvalidValue("no size is given", hint=_SIZES_HINT)
    for size in sizes:
        if not 1 <= size <= _LARGEST_SIZE:
            raise InvalidValue(f"{format_size(size)} is out of range", hint="from 1 B to 1 GiB")
    return tuple(sizes)


def default_range(backend: Backend) -> tuple[int, ...]:
    """Returns the default sizes of a campaign: powers of two, in bytes."""
    return parse_sizes(_GPU_RANGE if backend.uses_gpu else _HOST_RANGE)


def check_elements(sizes: Sequence[int], dtype: str, backend: Backend) -> None:
    """Checks that each size (bytes) has one element or more.

    Raises:
        InvalidValue: one has less; the hint gives the smallest legal size.
    """
    element = 1 if backend is Backend.COMMAND else ELEMENT_BYTES[dtype]
    if (least := min(sizes)) < element:
        raise InvalidValue(
            f"{format_size(least)} is less than one element of {dtype} ({element} bytes)",
            hint=f"write sizes of {element} B or more",
        )


def rounded_words(workload: Workload) -> str:
    """Returns a remark on sizes that are no whole number of elements; else empty."""
    element = workload.element_bytes
    odd = [format_size(size) for size in workload.sizes if size % element]
    # A user's own benchmark interprets sizes as it likes.
    if not odd or workload.operation.is_own:
        return ""
    elements = f"whole elements of {workload.dtype} ({element} bytes)"
    return f"{list_first(odd)}: rounded down to {elements}"


def _size_range(written: str) -> tuple[int, ...]:
    match = re.fullmatch(r"\s*(\S+)\s*\.\.\s*(\S+)(?:\s+x\s*(\d+))?\s*", written)
    if match is None:
        raise InvalidValue(f"{quote_value(written)} is not a range of sizes", hint=_SIZES_HINT)
    low, high, factor = parse_bytes(match[1]), parse_bytes(match[2]), int(match[3] or 2)
    if not (0 < low <= high <= _LARGEST_SIZE) or factor < 2:
        raise InvalidValue(
            f"{quote_value(written)} holds no sizes",
            hint="sizes go up, from 1 B to 1 GiB, by a factor of 2 or more",
        )
    return tuple(list_multiples(low, high, factor))


class WorkloadPart(Model):
    """The section ``workload``."""

    operation: Annotated[Operation, BeforeValidator(_parse_operation)] = Operation.ALLREDUCE
    ranks: Annotated[Whole, require_within(1, MOST_RANKS, RANKS_WORDS)] = Field(
        default=2, description="MPI processes, on all nodes together"
    )
    nodes: Annotated[Whole, require_within(1, MOST_RANKS)] = 1
    sizes: Annotated[tuple[int, ...], BeforeValidator(parse_sizes)] = Field(
        default=(), description="as many as the cost of a run allows"
    )
    dtype: Literal["float32", "float64", "int32", "uint8"] = "float32"
    reduction: Literal["sum", "max"] = "sum"
    backend: Backend = Backend.MPI_HOST
    emulate_nodes: Annotated[Whole, require_within(2, 4096)] | None = Field(
        default=None, description="groups of ranks that NCCL treats as different nodes"
    )
    window: Annotated[Whole, require_within(1, 4096)] | None = Field(
        default=None, description="of stream: messages in flight"
    )
    group_size: Annotated[Whole, require_within(1, 4096)] | None = Field(
        default=None, description="of rail, asymmetric, symmetric, striping: ranks of a group"
    )
    active: Annotated[Whole, require_within(1, 4096)] | None = Field(
        default=None, description="of rail, asymmetric, symmetric: ranks of a group that send"
    )
    direction: Direction | None = Field(
        default=None, description="of rail, asymmetric, symmetric: which way messages go"
    )
    matrix: Text | None = Field(default=None, description="of matrix: file of messages")
    inside: Backend | None = Field(
        default=None, description="of matrix, striping: backend inside of nodes"
    )
    between: Backend | None = Field(
        default=None, description="of matrix, striping: backend between nodes"
    )
    assemble: Backend | None = Field(
        default=None, description="of striping: backend of its last part"
    )
    rotate: Truth = Field(
        default=False, description="each operation at another place in the buffers"
    )


def check_emulated(nodes: int, ranks: int, backends: Sequence[Backend | str | None]) -> None:
    """Checks that a workload can run on this number of emulated nodes.

    Args:
        backends: the backends of the workload, the main one first.

    Raises:
        InvalidKey: it can't; with a hint on what to write.
    """
    if Backend.XCCL not in backends:
        raise InvalidKey(
            "emulate_nodes",
            f"nodes can be emulated for the backend xccl only, and this is {backends[0]}",
            lambda write: f"it sets NCCL_HOSTID; remove it, or write {write('backend', 'xccl')}",
        )
    if nodes < 2:
        raise InvalidKey("emulate_nodes", f"{nodes} is out of range", "from 2")
    if ranks % nodes:
        near = max(1, ranks // nodes) * nodes
        raise InvalidKey(
            "emulate_nodes",
            f"{ranks} ranks can't be divided evenly among {nodes} emulated nodes",
            lambda write: f"nearest: {write('ranks', str(near))}",
        )
