"""``commtune bench``."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from commtune import formatting as text
from commtune.app import nominal_share
from commtune.app.benchmarking import run_benchmark
from commtune.app.comparison import emulated_nodes
from commtune.campaign.patterns import PatternFields, backend_of, matrix_path, pattern_of
from commtune.campaign.timing import (
    DEFAULT_BATCH,
    LARGEST_BATCH,
    MODES,
    TIMERS,
    check_timing,
)
from commtune.campaign.workload import (
    ELEMENT_BYTES,
    MOST_RANKS,
    check_elements,
)
from commtune.commands.flags import (
    keys_are_flags,
    operation_flag,
    print_json,
    settings_flag,
    sizes_flag,
    word_flag,
)
from commtune.commands.measure import bench_data, bench_remarks, bench_tables
from commtune.commands.options import BackendOption, EmulateOption, JsonOption
from commtune.documents.quantities import QuantityError, parse_seconds
from commtune.errors import EnvironmentFault, InvalidKey, UserError
from commtune.model import (
    BATCHED,
    BLOCKING,
    WALL,
    Backend,
    Direction,
    Operation,
    Outcome,
    PatternParameters,
    RunRequest,
    RunResult,
    Timing,
    Workload,
)
from commtune.model.run_costs import cost_of

#: Seconds that the benchmark takes for ``--time-cap``.
_LEAST_CAP_S, _LONGEST_CAP_S = 1e-6, 1e5
#: Records of pairs: each has some 1.4 KB, and a file of 64 MiB is read.
_MOST_PAIRS = 40_000
#: Ranks, and those of a group; messages under way.
_MOST = MOST_RANKS
#: Samples of a size, and those of a pair, of which there are many.
_MOST_SAMPLES, _MOST_OF_PAIRS = 1000, 50
_T = TypeVar("_T")


@dataclass(frozen=True)
class BenchOptions:
    """What to run, as written on the command line; ``None`` and empty where nothing is."""

    op: str = "allreduce"
    ranks: int = 2
    sizes: str = "8"
    settings: Sequence[str] = ()
    dtype: str = "float32"
    time_cap: str = "0.2s"
    backend: str = ""
    emulate_nodes: int = 0
    group_size: int | None = None
    active: int | None = None
    direction: str = ""
    matrix: str = ""
    inside: str = ""
    between: str = ""
    assemble: str = ""
    window: int | None = None
    rotate: str = ""
    mode: str = ""
    operations: int | None = None
    timer: str = ""
    graph: str = ""


def bench_command(
    op: Annotated[str, typer.Option("--op", help="operation")] = "allreduce",
    ranks: Annotated[int, typer.Option(help="MPI processes")] = 2,
    sizes: Annotated[str, typer.Option(help="message sizes")] = "8 .. 4MiB x2",
    setting: Annotated[
        list[str] | None, typer.Option("-x", help="NAME=VALUE for the run; may be repeated")
    ] = None,
    mpi: Annotated[str, typer.Option(help="which MPI")] = "auto",
    dtype: Annotated[str, typer.Option(help="float32, float64, int32 or uint8")] = "float32",
    time_cap: Annotated[str, typer.Option(help="time for each size")] = "0.2s",
    backend: BackendOption = None,
    emulate_nodes: EmulateOption = 0,
    group_size: Annotated[
        int | None,
        typer.Option(help="rail, asymmetric, symmetric, striping: ranks of a group, of a node"),
    ] = None,
    active: Annotated[
        int | None, typer.Option(help="rail, asymmetric, symmetric: ranks of a group that send")
    ] = None,
    direction: Annotated[
        str, typer.Option(help="of these: outbound (default), bidirectional, omnidirectional")
    ] = "",
    matrix: Annotated[str, typer.Option(help="matrix: file of lines FROM TO BYTES")] = "",
    inside: Annotated[str, typer.Option(help="matrix, striping: backend inside of nodes")] = "",
    between: Annotated[str, typer.Option(help="matrix, striping: backend between nodes")] = "",
    assemble: Annotated[str, typer.Option(help="striping: backend of its last part")] = "",
    window: Annotated[
        int | None, typer.Option(help="stream: messages under way together [64]")
    ] = None,
    rotate: Annotated[
        str, typer.Option(help="yes: each operation at another place of the buffers")
    ] = "",
    mode: Annotated[
        str, typer.Option(help="blocking (default); xccl: batched, many enqueued together")
    ] = "",
    operations: Annotated[int | None, typer.Option(help="batched: of a batch [20]")] = None,
    timer: Annotated[
        str, typer.Option(help="wall (default); xccl: device, by events on the GPU")
    ] = "",
    graph: Annotated[
        str, typer.Option(help="yes: with batched, a batch is launched as one graph")
    ] = "",
    json_output: JsonOption = False,
) -> None:
    """Run the benchmark once and show what it measured."""
    options = BenchOptions(
        op=op,
        ranks=ranks,
        sizes=sizes,
        settings=setting or (),
        dtype=dtype,
        time_cap=time_cap,
        backend=backend or "",
        emulate_nodes=emulate_nodes,
        group_size=group_size,
        active=active,
        direction=direction,
        matrix=matrix,
        inside=inside,
        between=between,
        assemble=assemble,
        window=window,
        rotate=rotate,
        mode=mode,
        operations=operations,
        timer=timer,
        graph=graph,
    )
    request = request_of(options)
    done = run_benchmark(request, mpi)
    result, is_good = done.result, done.result.outcome is Outcome.OK
    said = bench_remarks.settings_remarks(request, done.mpi, result)
    if is_good:
        said += bench_remarks.run_remarks(request.workload, result)
    if json_output:
        print_json(bench_data.run_data(request, result, said))
    else:
        if bench_remarks.all_measured(result):
            _print_measured(request, result, f"{done.mpi.flavour} {done.mpi.version}")
        for line in said:
            print(line)
    if not is_good:
        raise EnvironmentFault(
            f"the run ended as {result.outcome}: {result.detail}", hint=result.output_tail.strip()
        )


def _print_measured(request: RunRequest, result: RunResult, mpi: str) -> None:
    workload = request.workload
    print(describe_run(request, mpi))
    whole = nominal_share.nominal_of_run(workload, result)
    print(bench_tables.run_table(workload, result, _nominal(workload, result), whole))
    if reached := nominal_share.of_run(workload, result):
        print(reached)
    if cost := cost_of(result):
        print(bench_remarks.cost_words(cost))


def describe_run(request: RunRequest, mpi: str) -> str:
    """What is measured, by what, and how it is timed where that could be otherwise."""
    workload, timed = request.workload, request.timing.said
    if not timed and workload.backend == Backend.XCCL:
        timed = "one by one"
    backend = [workload.backend] if workload.backend != Backend.MPI_HOST else []
    said = [workload.operation, f"{workload.ranks} ranks", workload.pattern, *backend, mpi]
    said += [text.describe_emulated(workload.emulated_nodes)] if workload.emulated_nodes else []
    said += [f"timed {timed}"] if timed else []
    return ", ".join(filter(None, said))


def _nominal(workload: Workload, result: RunResult) -> dict[tuple[int, int], float]:
    return (
        nominal_share.of_pairs(workload, result) if workload.operation is Operation.PAIRS else {}
    )


@keys_are_flags()
def request_of(options: BenchOptions) -> RunRequest:
    """The run that the command line describes.

    Raises:
        UserError: a flag that can't be read, or doesn't go with the others.
    """
    operation = operation_flag(options.op)
    dtype = word_flag("--dtype", options.dtype, list(ELEMENT_BYTES))
    sizes = sizes_flag(options.sizes)
    time_cap_s = _time_cap_s(options.time_cap)
    alone = operation.is_collective or operation in (Operation.RING, Operation.SELF)
    least = 1 if alone else 2
    if not least <= options.ranks <= _MOST:
        raise UserError(
            f"--ranks: {options.ranks} is out of range", hint=f"from {least} to {_MOST}"
        )
    backend, shape = _shape(options, operation)
    _read("--sizes", lambda each: check_elements(each, dtype, backend), sizes)
    workload = Workload(
        operation,
        sizes,
        options.ranks,
        backend=backend,
        dtype=dtype,
        emulated_nodes=emulated_nodes(options.emulate_nodes, options.ranks, backend),
        window=options.window or 0,
        shape=shape,
        rotate=_rotate(options.rotate, backend),
    )
    if operation is Operation.PAIRS:
        _check_pairs(workload)
    timing = _timing(options, workload, time_cap_s)
    return RunRequest(uuid.uuid4().hex, settings_flag(options.settings), workload, timing)


def _time_cap_s(written: str) -> float:
    seconds = _read("--time-cap", parse_seconds, written)
    if not _LEAST_CAP_S <= seconds <= _LONGEST_CAP_S:
        raise UserError(
            f"--time-cap: {written!r} is out of range", hint="from 1us to 100000s, as in 0.2s"
        )
    return seconds


def _check_pairs(workload: Workload) -> None:
    pairs, sizes = workload.measured_a_size, len(workload.sizes)
    if pairs * sizes > _MOST_PAIRS:
        raise UserError(
            f"--sizes: {pairs:,} pairs at {sizes} sizes are more than {_MOST_PAIRS:,} times",
            hint="take fewer ranks, or fewer sizes, such as 8,1MiB",
        )


def _shape(options: BenchOptions, operation: Operation) -> tuple[Backend, PatternParameters]:
    """The backend and the shape that flags ask for, by the checks of campaign files."""
    known = [backend for backend in Backend if backend is not Backend.COMMAND]
    named = {
        name: Backend(word_flag(f"--{name}", word, known)) if word else None
        for name, word in (
            ("backend", options.backend), ("inside", options.inside), ("between", options.between),
            ("assemble", options.assemble),
        )
    }  # fmt: skip
    way = options.direction and word_flag("--direction", options.direction, list(Direction))
    for name in ("window", "group_size", "active"):
        number = getattr(options, name)
        if number is not None and not 1 <= number <= _MOST:
            raise InvalidKey(name, f"{number} is out of range", f"from 1 to {_MOST}")
    asked = PatternFields(
        operation,
        options.ranks,
        nodes=options.emulate_nodes or 1,
        window=options.window,
        group_size=options.group_size,
        active=options.active,
        direction=Direction(way) if way else None,
        matrix=matrix_path(options.matrix, Path()),
        **named,
    )
    return backend_of(asked), pattern_of(asked)


def _rotate(word: str, backend: Backend) -> bool:
    is_yes = _yes("--rotate", word)
    if is_yes and not backend.is_native:
        raise UserError(f"--rotate: the backend {backend} does not rotate", hint="leave it out")
    return is_yes


def _yes(flag: str, word: str) -> bool:
    return bool(word) and word_flag(flag, word, ("yes", "no")) == "yes"


def _timing(options: BenchOptions, workload: Workload, time_cap_s: float) -> Timing:
    """How flags ask for operations to be timed, by the checks of campaign files."""
    mode = word_flag("--mode", options.mode or BLOCKING, MODES)
    counted = options.operations
    if counted is not None and not 1 <= counted <= LARGEST_BATCH:
        raise UserError(
            f"--operations: {counted} is out of range", hint=f"from 1 to {LARGEST_BATCH}"
        )
    timing = Timing(
        max_samples=_MOST_OF_PAIRS if workload.operation is Operation.PAIRS else _MOST_SAMPLES,
        time_cap_s=time_cap_s,
        mode=mode,
        operations=(counted or DEFAULT_BATCH) if mode == BATCHED else 0,
        timer=word_flag("--timer", options.timer or WALL, TIMERS),
        graph=_yes("--graph", options.graph),
    )
    check_timing(timing, workload, is_counted=counted is not None)
    return timing


def _read(flag: str, parse: Callable[[Any], _T], written: object) -> _T:
    try:
        return parse(written)
    except QuantityError as error:
        raise UserError(f"{flag}: {error.message}", hint=error.hint) from error
