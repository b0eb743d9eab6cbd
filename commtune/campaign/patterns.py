"""Builds the workload of a campaign file, and checks its pattern against ranks and nodes."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from commtune.campaign.workload import DEFAULT_SIZES, WorkloadPart, check_emulated
from commtune.documents.files import read_file, resolve_path
from commtune.documents.nearest import quote_value
from commtune.documents.quantities import decimal_number, whole_number
from commtune.errors import CampaignError, InvalidKey, UserError, WriteKey, os_reason
from commtune.formatting import list_first
from commtune.model import Backend, Direction, Flow, Matrix, Operation, PatternParameters, Workload
from commtune.model.operations import ACTIVE, GROUPED, IN_PYTHON, MIXED

#: The most messages of a matrix; rank 0 broadcasts their text.
_MOST_MESSAGES = 100_000
_LARGEST_FILE = 16 * 2**20

#: The operations that each key is for.
_TAKEN_BY: dict[str, tuple[Operation, ...]] = {
    "window": (Operation.STREAM,),
    "group_size": GROUPED,
    "active": ACTIVE,
    "direction": ACTIVE,
    "matrix": (Operation.MATRIX,),
    "inside": MIXED,
    "between": MIXED,
    "assemble": (Operation.STRIPING,),
}

#: Keys that give some of the messages a backend of their own.
_MECHANISMS = ("inside", "between", "assemble")
#: Keys whose values the workload takes unchanged.
_OF_WORKLOADS = {"operation", "ranks", "nodes", "dtype", "reduction", "rotate"}


def as_workload(part: WorkloadPart, folder: Path, *, uses_scheduler: bool = False) -> Workload:
    """Builds the workload; its sizes are checked by ``check_elements``.

    Args:
        folder: the folder that relative paths in the file start from.

    Raises:
        InvalidKey: the operation doesn't have a key, or keys conflict.
        CampaignError: a matrix file is invalid; with its line.
    """
    if part.dtype == "uint8" and part.reduction == "sum":
        raise InvalidKey(
            "dtype",
            "a sum of uint8 overflows and can't be checked",
            "use reduction: max, or dtype: int32",
        )
    if part.rotate and not part.backend.is_native:
        problem = f"the backend {part.backend} does not rotate through its buffers"
        raise InvalidKey("rotate", problem, "remove it")
    if emulated := part.emulate_nodes or 0:
        check_emulated(
            emulated, part.ranks, (part.backend, part.inside, part.between, part.assemble)
        )
        if uses_scheduler or part.nodes > 1:
            problem = "nodes are emulated on one machine, without a scheduler"
            raise InvalidKey("emulate_nodes", problem, "remove it: the campaign has real nodes")
    matrix = _matrix_path(part.matrix, folder)
    nodes = emulated or part.nodes
    backend = _choose_backend(part, nodes)
    _check_keys(part)
    content = _read_matrix(matrix, part.ranks) if matrix else None
    # These keys need no further check, and no default that depends on others.
    same = part.model_dump(include=_OF_WORKLOADS)
    size = choose_group_size(part.operation, part.ranks, nodes, part.group_size)
    return Workload(
        **same,
        sizes=part.sizes or DEFAULT_SIZES,
        backend=backend,
        emulated_nodes=emulated,
        window=part.window or 0,
        shape=PatternParameters(
            group_size=size,
            active=_active(part, size),
            direction=str(part.direction or Direction.OUTBOUND),
            inside=str(part.inside or ""),
            between=str(part.between or ""),
            assemble=str(part.assemble or ""),
            matrix=content.key if content else "",
            content=content,
        ),
    )


def _choose_backend(part: WorkloadPart, nodes: int) -> Backend:
    """Chooses the backend of the workload: as written, else one that ``_MECHANISMS`` name.

    Raises:
        InvalidKey: they use other memory or need another build, or the backend doesn't
            support the operation.
    """
    named = {key: value for key in _MECHANISMS if (value := getattr(part, key))}
    backend = part.backend
    # with_benchmark sets the backend of commands and users' patterns, which aren't native.
    if named and backend.is_native and "backend" not in part.model_fields_set:
        values = tuple(named.values())
        backend = Backend.XCCL if Backend.XCCL in values else values[-1]
    for key, value in named.items():
        _check_mechanism(key, value, backend, nodes)
    check_operation(part.operation, backend, "backend")
    return backend


def _matrix_path(written: str | None, folder: Path) -> Path | None:
    if not written:
        return None
    try:
        return resolve_path(written, folder)
    except UserError as error:
        raise InvalidKey("matrix", error.message, error.hint) from error


def check_operation(operation: Operation, backend: Backend, key: str) -> None:
    """Checks that a backend supports an operation.

    Args:
        key: the key that the error names.

    Raises:
        InvalidKey: it doesn't; the hint lists those that it supports.
    """
    if not operation.is_own and not backend.does(operation):
        raise InvalidKey(
            key,
            f"the backend {backend} does not know the operation {operation}",
            f"it knows {', '.join(IN_PYTHON)}",
        )


def _check_mechanism(key: str, value: Backend, backend: Backend, nodes: int) -> None:
    if not value.is_native or not backend.is_native:
        other = value if not value.is_native else backend
        raise InvalidKey(
            key, f"{other} can't use two backends", "they are for commtune's own benchmark"
        )
    if value.memory != backend.memory:
        raise InvalidKey(
            key,
            f"{value} works on {value.memory} memory, and the backend {backend} on "
            f"{backend.memory} memory",
            lambda write: (
                f"write {write('backend', value)}, or name backends for {backend.memory} memory"
            ),
        )
    if value is Backend.XCCL and backend is not Backend.XCCL:
        raise InvalidKey(
            key,
            f"results with xccl are bound to its version, and the backend is {backend}",
            lambda write: f"write {write('backend', Backend.XCCL)}",
        )
    if key == "between" and nodes > 1 and value in (Backend.IPC_PUT, Backend.IPC_GET):
        raise InvalidKey(
            key,
            f"{value} can't reach another node",
            lambda write: f"write {write('between', 'xccl or mpi-device')}",
        )


def _check_keys(part: WorkloadPart) -> None:
    operation = part.operation
    for key, takers in _TAKEN_BY.items():
        if getattr(part, key) not in (None, "") and operation not in takers:
            word = {"window": "window of messages", "matrix": "matrix file"}.get(key, key)
            raise InvalidKey(
                key,
                f"{operation} has no {word}",
                partial(_other_operation, " or ".join(takers)),
            )
    if operation is Operation.MATRIX and not part.matrix:
        raise InvalidKey(
            "matrix",
            "operation matrix needs a file of messages",
            lambda write: (
                f"write {write('matrix', 'FILE')}, with a line 'FROM TO BYTES' for each message"
            ),
        )


def _other_operation(takers: str, write: WriteKey) -> str:
    return f"remove it, or write {write('operation', takers)}"


def choose_group_size(operation: Operation, ranks: int, nodes: int, size: int | None) -> int:
    """Returns the number of ranks of a group, by default a suitable one.

    Args:
        nodes: the real or emulated nodes of a run; by default a group has the ranks of a node.
        size: as written; ``None`` for the default.

    Raises:
        InvalidKey: the ranks can't be divided into such groups.
    """
    if operation not in GROUPED:
        return 1
    legal = _legal_groups(operation, ranks, nodes)
    if not legal:
        need = "an even number of ranks" if operation is Operation.STRIPING else "2 ranks or more"
        raise InvalidKey(
            "ranks",
            f"{operation} is between groups of ranks, and {ranks} ranks don't make them",
            f"write {need}",
        )
    each = ranks // nodes
    if size is None:
        if operation is Operation.STRIPING:
            return legal[-1]
        return each if nodes > 1 and each in legal else legal[0]
    if size not in legal:
        why = _why_not(operation, ranks, each, size)
        raise InvalidKey("group_size", why, _nearest(legal, size))
    return size


def _legal_groups(operation: Operation, ranks: int, nodes: int) -> list[int]:
    each = ranks // nodes
    if operation is Operation.STRIPING:
        return [ranks // 2] if ranks >= 2 and ranks % 2 == 0 else []
    return [
        size
        for size in range(1, ranks // 2 + 1)
        if ranks % size == 0 and (each % size == 0 or size % each == 0)
    ]


def _why_not(operation: Operation, ranks: int, each: int, size: int) -> str:
    if operation is Operation.STRIPING:
        return f"striping is between 2 groups, and {size} is not half of {ranks} ranks"
    if ranks % size:
        return f"{ranks} ranks can't be divided into groups of {size}"
    if ranks == size:
        return f"{ranks} ranks make one group of {size}, which has no other to send to"
    if size > ranks:
        return f"a group of {size} is more than the {ranks} ranks"
    return f"groups of {size} cross the boundaries of nodes with {each} ranks each"


def _nearest(legal: list[int], wanted: int) -> str:
    nearest = min(legal, key=lambda size: (abs(size - wanted), size))
    return f"nearest: {nearest}" + (f"; legal: {list_first(legal, 12)}" if len(legal) > 1 else "")


def _active(part: WorkloadPart, size: int) -> int:
    active = part.active or 1
    if active > size:
        raise InvalidKey(
            "active", f"{active} active ranks are more than a group of {size}", f"nearest: {size}"
        )
    return active


def _read_matrix(file: Path, ranks: int) -> Matrix:
    """Reads a matrix file: lines ``FROM TO BYTES``, where ``#`` begins a comment.

    Raises:
        InvalidKey: the file can't be read.
        CampaignError: its content is invalid; with file and line.
    """
    try:
        text = read_file(file, _LARGEST_FILE).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidKey(
            "matrix", f"the matrix file {file} is not text", "lines: FROM TO BYTES"
        ) from error
    except OSError as error:
        raise InvalidKey(
            "matrix",
            f"the matrix file {file} can't be read: {os_reason(error)}",
            "in a campaign, paths start at the campaign file's folder",
        ) from error
    flows: list[Flow] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        flow = _flow(words, file, number, ranks)
        if flow[2] > 0:
            flows.append(flow)
        if len(flows) > _MOST_MESSAGES:
            raise CampaignError(
                f"more than {_MOST_MESSAGES:,} messages", file=file, line=number,
                hint="merge the messages between the same two ranks",
            )  # fmt: skip
    if not flows:
        raise CampaignError("nobody sends anything", file=file, hint="a line: FROM TO BYTES")
    return Matrix(tuple(flows), file=" ".join(file.name.split()))


def _flow(words: list[str], file: Path, line: int, ranks: int) -> Flow:
    hint = "write three numbers from 0: sender, receiver, bytes"
    read = (whole_number, whole_number, decimal_number)
    found = [one(word) for one, word in zip(read, words, strict=False)]
    numbers = [number for number in found if number is not None and number >= 0]
    if not len(words) == len(numbers) == 3:
        raise CampaignError(
            f"{quote_value(' '.join(words))} is not a message", file=file, line=line, hint=hint
        )
    start, end, amount = int(numbers[0]), int(numbers[1]), float(numbers[2])
    if max(start, end) >= ranks:
        raise CampaignError(
            f"rank {max(start, end)} is named, and there are {ranks} ranks", file=file, line=line,
            hint=f"nearest: {ranks - 1}; ranks are counted from 0",
        )  # fmt: skip
    return start, end, amount
