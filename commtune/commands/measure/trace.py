"""``commtune trace``."""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from commtune import wiring
from commtune.commands import text
from commtune.commands.measure import bench
from commtune.commands.options import BackendOption, EmulateOption, JsonOption
from commtune.errors import EnvironmentFault, UserError
from commtune.model import DEFAULT, Backend, Configuration, Execution, RunRequest, Workload
from commtune.tuner.effective.settings import (
    DID,
    NOTE,
    Told,
    effective_configuration,
    group_executions,
    settings_of,
)
from commtune.tuner.ports import Benchmark

_LIMIT_S = 120.0
_SIZES = "8,1KiB,64KiB,1MiB"
_WORDS = {
    Told.HELD: "holds it",
    Told.REPLACED: "holds another value",
    Told.ABSENT: "has no such variable",
    Told.UNUSED: "makes no use of it",
    Told.UNKNOWN: "can't be told",
}


@dataclass(frozen=True)
class Settings:
    """What to trace, as written on the command line; empty sizes stand for a few."""

    settings: tuple[str, ...]
    op: str
    ranks: int
    sizes: str
    mpi: str
    dtype: str
    backend: str = Backend.MPI_HOST
    emulate_nodes: int = 0


def run(settings: Settings, *, json_output: bool) -> None:
    """Traces a configuration and the default, and prints what became of the first."""
    written = bench.Settings(
        settings.op,
        settings.ranks,
        settings.sizes or _SIZES,
        settings.settings,
        settings.mpi,
        settings.dtype,
        "1s",
        settings.backend,
        settings.emulate_nodes,
    )
    request = bench.request_of(written, flag="")
    if request.workload.operation.is_pattern:
        raise UserError(
            f"--op {settings.op}: the benchmark makes no untimed runs of it",
            hint="trace ping-pong, or the collective that your program calls",
        )
    mpi = wiring.find_named_mpi(settings.mpi)
    with tempfile.TemporaryDirectory(prefix="commtune-") as folder:
        prepared = wiring.prepare_benchmark(mpi, None, request.workload, Path(folder))
        benchmark = wiring.watch_variables(prepared, tuple(request.configuration))
        traces = [_traced(benchmark, request, c) for c in _both(request.configuration)]
    default, execution = group_executions(traces)[0], group_executions(traces)[-1]
    if json_output:
        print(json.dumps(_plain(execution), indent=2))
        return
    library = wiring.library_words(request.workload.backend, mpi)
    print(f"{request.workload.operation}, {settings.ranks} ranks, {library}: {execution.followed}")
    _print_reasons(execution, default)
    _print_settings(execution, library)
    _print_lines(execution)
    _print_sums(execution, default, request.workload)


def _both(configuration: Configuration) -> list[Configuration]:
    return [DEFAULT] if configuration.is_default else [DEFAULT, configuration]


def _traced(benchmark: Benchmark, request: RunRequest, configuration: Configuration) -> Execution:
    own = RunRequest(uuid.uuid4().hex, configuration, request.workload, request.timing)
    if (execution := benchmark.trace(own, _LIMIT_S)) is not None:
        return execution
    flags = " ".join(f"-x {name}={value}" for name, value in configuration.items())
    raise EnvironmentFault(
        f"the run did not come to its end under {configuration}",
        hint=f"see why: commtune bench --op {request.workload.operation} "
        f"--ranks {request.workload.ranks} {flags}".rstrip(),
    )


def _plain(execution: Execution) -> dict[str, object]:
    return {
        "configuration": dict(execution.configuration),
        "operation": execution.operation,
        "followed": str(execution.followed),
        "why": execution.why,
        "became": execution.became,
        "settings": [asdict(setting) for setting in settings_of(execution).values()],
        "said": list(execution.said),
        "fingerprints": {str(size): digest for size, digest in execution.fingerprints.items()},
    }


def _print_reasons(execution: Execution, default: Execution) -> None:
    for reason in filter(None, execution.why.split("; ")):
        print(f"  {reason}")
    if execution.became == default.configuration.key and not execution.configuration.is_default:
        print("  it behaves as the default does, as far as the library tells")
    elif execution.became is not None:
        print(f"  it behaves as {effective_configuration(execution)}")


def _print_settings(execution: Execution, library: str) -> None:
    rows = [
        (s.name, s.asked or "", _WORDS[s.told], "" if s.held is None else s.held, s.why)
        for s in settings_of(execution).values()
    ]
    if rows:
        print()
        print(text.format_table(("variable", "asked for", library, "value", ""), rows))


def _print_lines(execution: Execution) -> None:
    lines = [line for line in execution.said if line.startswith((DID, NOTE))]
    if lines:
        print()
    for line in lines:
        print(line)


def _print_sums(execution: Execution, default: Execution, workload: Workload) -> None:
    print()
    if not execution.fingerprints:
        print(_why_no_sums(workload))
        return
    rows = [
        (text.format_size(size), digest, _compared(digest, default.fingerprints, size))
        for size, digest in sorted(execution.fingerprints.items())
    ]
    print(text.format_table(("size", "order of the sum", "the default's"), rows))


def _compared(digest: str, others: Mapping[int, str], size: int) -> str:
    return "same" if others.get(size) == digest else "another"


def _why_no_sums(workload: Workload) -> str:
    if workload.ranks < 3:
        return "with fewer than 3 ranks every order gives the same sum: none can be told apart"
    return "only floating-point sums (allreduce, reduce-scatter) tell the order of their terms"


def trace_command(
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=VALUE]...", help="what to set")
    ] = None,
    op: Annotated[str, typer.Option("--op", help="operation")] = "allreduce",
    ranks: Annotated[int, typer.Option(help="MPI processes")] = 2,
    sizes: Annotated[str, typer.Option(help="message sizes [8,1KiB,64KiB,1MiB]")] = "",
    mpi: Annotated[str, typer.Option(help="which MPI")] = "auto",
    dtype: Annotated[str, typer.Option(help="float32, float64, int32 or uint8")] = "float32",
    backend: BackendOption = None,
    emulate_nodes: EmulateOption = 0,
    json_output: JsonOption = False,
) -> None:
    """What the library makes of settings: which it took, ignored or replaced. Times nothing."""
    written = Settings(
        tuple(settings or ()), op, ranks, sizes, mpi, dtype, backend or "mpi-host", emulate_nodes
    )
    run(written, json_output=json_output)
