"""``commtune bench``."""

from __future__ import annotations

import json
import re
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from commtune import wiring
from commtune.campaign.invalid_key import InvalidKey
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
    parse_sizes,
)
from commtune.commands import text
from commtune.commands.flags import emulated_nodes, one_of
from commtune.commands.measure import bench_data, bench_remarks, bench_tables
from commtune.commands.options import BackendOption, EmulateOption, JsonOption
from commtune.commands.profiles import nominal_share
from commtune.errors import EnvironmentFault, UserError
from commtune.model import (
    BATCHED,
    BLOCKING,
    WALL,
    Backend,
    Configuration,
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
from commtune.spaces import QuantityError, parse_seconds

#: Wall seconds that a run may take: so many at least, or so many times what was asked for.
_LIMIT_S, _LIMIT_FACTOR = 600.0, 3.0
#: Seconds that the benchmark takes for ``--time-cap``.
_LEAST_CAP_S, _LONGEST_CAP_S = 1e-6, 1e5
#: Records of pairs: each has some 1.4 KB, and a file of 64 MiB is read.
_MOST_PAIRS = 40_000
#: Ranks, and those of a group; messages under way.
_MOST = MOST_RANKS
#: Samples of a size, and those of a pair, of which there are many.
_MOST_SAMPLES, _MOST_OF_PAIRS = 1000, 50
_KEYS = re.compile(r"\b(operation|matrix|backend|between|mode|timer): ")
_T = TypeVar("_T")


@dataclass(frozen=True)
class ShapeFlags:
    """What patterns need beside a size, as written; ``None`` and empty where nothing is."""

    group_size: int | None = None
    active: int | None = None
    direction: str = ""
    matrix: str = ""
    inside: str = ""
    between: str = ""
    assemble: str = ""
    window: int | None = None
    rotate: str = ""


@dataclass(frozen=True)
class TimingFlags:
    """How operations are timed, as written; ``None`` and empty where nothing is."""

    mode: str = ""
    operations: int | None = None
    timer: str = ""
    graph: str = ""


@dataclass(frozen=True)
class Settings:
    """What to run, as written on the command line; an empty backend is left to the others."""

    op: str
    ranks: int
    sizes: str
    settings: tuple[str, ...]
    mpi: str
    dtype: str
    time_cap: str
    backend: str = ""
    emulate_nodes: int = 0
    shape: ShapeFlags = ShapeFlags()
    timing: TimingFlags = TimingFlags()


def run(settings: Settings, *, json_output: bool) -> None:
    """Runs the benchmark once and prints a table."""
    request = request_of(settings)
    mpi = wiring.find_named_mpi(settings.mpi)
    with tempfile.TemporaryDirectory(prefix="commtune-") as folder:
        benchmark = wiring.prepare_benchmark(mpi, None, request.workload, Path(folder))
        result = wiring.run_once(benchmark, request, limit_s(request))
    is_good = result.outcome is Outcome.OK
    said = bench_remarks.settings_remarks(request, mpi, result)
    if is_good:
        said += bench_remarks.run_remarks(request.workload, result)
    if json_output:
        plain = bench_data.run_data(request, result, said)
        print(json.dumps(plain, indent=2))
    else:
        if bench_remarks.all_measured(result):
            _print_measured(request, result, f"{mpi.flavour} {mpi.version}")
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


def request_of(settings: Settings, flag: str = "-x ") -> RunRequest:
    """The run that the command line describes; ``flag`` stands before a setting there."""
    operation = Operation(one_of("--op", settings.op, list(Operation)))
    dtype = one_of("--dtype", settings.dtype, list(ELEMENT_BYTES))
    written = settings.sizes if ".." in settings.sizes else settings.sizes.split(",")
    sizes = _read("--sizes", parse_sizes, written)
    time_cap_s = _time_cap_s(settings.time_cap)
    alone = operation.is_collective or operation in (Operation.RING, Operation.SELF)
    least = 1 if alone else 2
    if not least <= settings.ranks <= _MOST:
        raise UserError(
            f"--ranks: {settings.ranks} is out of range", hint=f"from {least} to {_MOST}"
        )
    backend, shape = _shape(settings, operation)
    _read("--sizes", lambda each: check_elements(each, dtype, backend), sizes)
    workload = Workload(
        operation,
        sizes,
        settings.ranks,
        backend=backend,
        dtype=dtype,
        emulated_nodes=emulated_nodes(settings.emulate_nodes, settings.ranks, backend),
        window=settings.shape.window or 0,
        shape=shape,
        rotate=_rotate(settings.shape.rotate, backend),
    )
    if operation is Operation.PAIRS:
        _check_pairs(workload)
    timing = _timing(settings.timing, workload, time_cap_s)
    return RunRequest(uuid.uuid4().hex, _configuration(settings.settings, flag), workload, timing)


def _time_cap_s(written: str) -> float:
    seconds = _read("--time-cap", parse_seconds, written)
    if not _LEAST_CAP_S <= seconds <= _LONGEST_CAP_S:
        raise UserError(
            f"--time-cap: {written!r} is out of range", hint="from 1us to 100000s, as in 0.2s"
        )
    return seconds


def limit_s(request: RunRequest) -> float:
    """Wall seconds that a run may take."""
    workload = request.workload
    measurements = len(workload.sizes) * workload.measured_a_size
    return max(_LIMIT_S, _LIMIT_FACTOR * measurements * request.timing.time_cap_s)


def _check_pairs(workload: Workload) -> None:
    pairs, sizes = workload.measured_a_size, len(workload.sizes)
    if pairs * sizes > _MOST_PAIRS:
        raise UserError(
            f"--sizes: {pairs:,} pairs at {sizes} sizes are more than {_MOST_PAIRS:,} times",
            hint="take fewer ranks, or fewer sizes, such as 8,1MiB",
        )


def _shape(settings: Settings, operation: Operation) -> tuple[Backend, PatternParameters]:
    """The backend and the shape that flags ask for, by the checks of campaign files."""
    flags = settings.shape
    known = [backend for backend in Backend if backend is not Backend.COMMAND]
    named = {
        name: Backend(one_of(f"--{name}", word, known)) if word else None
        for name, word in (
            ("backend", settings.backend), ("inside", flags.inside), ("between", flags.between),
            ("assemble", flags.assemble),
        )
    }  # fmt: skip
    way = flags.direction and one_of("--direction", flags.direction, list(Direction))
    for name in ("window", "group_size", "active"):
        number = getattr(flags, name)
        if number is not None and not 1 <= number <= _MOST:
            raise UserError(f"{_flag(name)}: {number} is out of range", hint=f"from 1 to {_MOST}")
    try:
        asked = PatternFields(
            operation,
            settings.ranks,
            nodes=settings.emulate_nodes or 1,
            window=flags.window,
            group_size=flags.group_size,
            active=flags.active,
            direction=Direction(way) if way else None,
            matrix=matrix_path(flags.matrix, Path()),
            **named,
        )
        return backend_of(asked), pattern_of(asked)
    except InvalidKey as refused:
        hint = _as_flags(refused.hint)
        raise UserError(f"{_flag(refused.key)}: {refused.message}", hint=hint) from refused


def _as_flags(hint: str) -> str:
    """Campaign files and the command line call the keys alike."""
    return _KEYS.sub(lambda key: f"{_flag(key[1])} ", hint)


def _flag(key: str) -> str:
    return "--op" if key == "operation" else f"--{key.replace('_', '-')}"


def _rotate(word: str, backend: Backend) -> bool:
    is_yes = _yes("--rotate", word)
    if is_yes and not backend.is_native:
        raise UserError(f"--rotate: the backend {backend} does not rotate", hint="leave it out")
    return is_yes


def _yes(flag: str, word: str) -> bool:
    return bool(word) and one_of(flag, word, ("yes", "no")) == "yes"


def _timing(flags: TimingFlags, workload: Workload, time_cap_s: float) -> Timing:
    """How flags ask for operations to be timed, by the checks of campaign files."""
    mode = one_of("--mode", flags.mode or BLOCKING, MODES)
    counted = flags.operations
    if counted is not None and not 1 <= counted <= LARGEST_BATCH:
        raise UserError(
            f"--operations: {counted} is out of range", hint=f"from 1 to {LARGEST_BATCH}"
        )
    timing = Timing(
        max_samples=_MOST_OF_PAIRS if workload.operation is Operation.PAIRS else _MOST_SAMPLES,
        time_cap_s=time_cap_s,
        mode=mode,
        operations=(counted or DEFAULT_BATCH) if mode == BATCHED else 0,
        timer=one_of("--timer", flags.timer or WALL, TIMERS),
        graph=_yes("--graph", flags.graph),
    )
    try:
        check_timing(timing, workload, is_counted=counted is not None)
    except InvalidKey as refused:
        hint = _as_flags(refused.hint)
        raise UserError(f"{_flag(refused.key)}: {refused.message}", hint=hint) from refused
    return timing


def _read(flag: str, parse: Callable[[Any], _T], written: object) -> _T:
    try:
        return parse(written)
    except QuantityError as error:
        raise UserError(f"{flag}: {error.message}", hint=error.hint) from error


def _configuration(settings: tuple[str, ...], flag: str) -> Configuration:
    values = {}
    for setting in settings:
        name, separator, value = setting.partition("=")
        if not separator or not name:
            raise UserError(f"{flag}{setting}: no value", hint=f"write {flag}NAME=VALUE")
        values[name] = value
    return Configuration(values)


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
    shape = ShapeFlags(
        group_size, active, direction, matrix, inside, between, assemble, window, rotate
    )
    settings = Settings(
        op, ranks, sizes, tuple(setting or ()), mpi, dtype, time_cap, backend or "",
        emulate_nodes, shape, TimingFlags(mode, operations, timer, graph),
    )  # fmt: skip
    run(settings, json_output=json_output)
