"""``commtune bench``."""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from commtune import wiring
from commtune.commands import shares, text
from commtune.errors import EnvironmentFault, UserError
from commtune.model import (
    Backend,
    Configuration,
    Operation,
    Outcome,
    RunRequest,
    RunResult,
    Timing,
    Workload,
)
from commtune.nearest import quoted, suggestion
from commtune.spaces import QuantityError, parse_seconds
from commtune.tuner.workload_part import ELEMENT_BYTES, parse_operation, parse_sizes

_LIMIT_S = 600.0
_T = TypeVar("_T")


@dataclass(frozen=True)
class Settings:
    """What to run, as written on the command line."""

    op: str
    ranks: int
    sizes: str
    settings: tuple[str, ...]
    mpi: str
    dtype: str
    time_cap: str
    backend: str = Backend.MPI_HOST
    emulate_nodes: int = 0


def run(settings: Settings, *, json_output: bool) -> None:
    """Runs the benchmark once and prints a table."""
    request = request_of(settings)
    mpi = wiring.find(settings.mpi)
    with tempfile.TemporaryDirectory(prefix="commtune-") as folder:
        benchmark = wiring.prepare_benchmark(mpi, None, request.workload, Path(folder))
        result = wiring.bench(benchmark, request, _LIMIT_S)
    if json_output:
        print(json.dumps(_plain(result), indent=2))
    else:
        print(_headline(request.workload, f"{mpi.flavour} {mpi.version}"))
        print(_table(result))
        if reached := shares.of_run(request.workload, result):
            print(reached)
    if result.outcome is not Outcome.OK:
        raise EnvironmentFault(
            f"the run ended as {result.outcome}: {result.detail}", hint=result.output_tail.strip()
        )
    if not json_output and not result.oversubscribed and _disturbed(result):
        print("the ranks did not always run at the same time: other load disturbs these times")
    if result.detail and not json_output:
        print(f"{result.detail}: these times may not come back")
    if result.oversubscribed and not json_output:
        print("more ranks than cores: these times say nothing of a machine with enough cores")


def _headline(workload: Workload, mpi: str) -> str:
    backend = [workload.backend] if workload.backend != Backend.MPI_HOST else []
    said = [workload.operation, f"{workload.ranks} ranks", *backend, mpi]
    said += [text.emulated(workload.emulated_nodes)] if workload.emulated_nodes else []
    return ", ".join(said)


def request_of(settings: Settings, flag: str = "-x ") -> RunRequest:
    """The run that the command line describes; ``flag`` stands before a setting there."""
    _read("--op", parse_operation, settings.op)
    operation = Operation(_one_of("--op", settings.op, list(Operation)))
    dtype = _one_of("--dtype", settings.dtype, list(ELEMENT_BYTES))
    written = settings.sizes if ".." in settings.sizes else settings.sizes.split(",")
    sizes = _read("--sizes", parse_sizes, written)
    time_cap_s = _read("--time-cap", parse_seconds, settings.time_cap)
    alone = operation.is_collective or operation in (Operation.RING, Operation.SELF)
    least = 1 if alone else 2
    if settings.ranks < least:
        raise UserError(f"--ranks: {settings.ranks} is out of range", hint=f"from {least}")
    backend = Backend(_one_of("--backend", settings.backend, list(Backend)))
    workload = Workload(
        operation,
        sizes,
        settings.ranks,
        backend=backend,
        dtype=dtype,
        emulated_nodes=_emulated(settings, backend),
    )
    timing = Timing(max_samples=1000, time_cap_s=time_cap_s)
    return RunRequest(uuid.uuid4().hex, _configuration(settings.settings, flag), workload, timing)


def _emulated(settings: Settings, backend: Backend) -> int:
    nodes = settings.emulate_nodes
    if nodes and backend is not Backend.XCCL:
        raise UserError("--emulate-nodes is for --backend xccl only", hint="leave it out")
    if nodes and (nodes < 2 or settings.ranks % nodes):
        raise UserError(
            f"--emulate-nodes: {settings.ranks} ranks can't be shared evenly by {nodes} nodes",
            hint="give each of two nodes or more as many ranks as the others",
        )
    return nodes


def _one_of(flag: str, word: str, known: Sequence[str]) -> str:
    if word in known:
        return word
    raise UserError(f"{flag}: {quoted(word)} is not known here", hint=suggestion(word, known))


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


def _table(result: RunResult) -> str:
    rows = [
        (
            text.size(m.bytes),
            text.duration(m.median_s),
            text.duration(m.min_s),
            text.duration(m.p95_s),
            f"{m.algbw / 1e9:.3f}",
            f"{m.busbw / 1e9:.3f}",
            str(len(m.samples_s)),
            "" if m.canary_s is None else text.duration(m.canary_s),
        )
        for m in result.measurements
    ]
    header = ("size", "median", "min", "p95", "algbw GB/s", "busbw GB/s", "samples", "canary")
    return text.columns(header, rows, right=",".join(header))


def _disturbed(result: RunResult) -> bool:
    """Whether the two ranks of the canary missed each other, though each has a core."""
    canaries = [m.canary_s for m in result.measurements]
    return None in canaries and any(canary is not None for canary in canaries)


def _plain(result: RunResult) -> dict[str, object]:
    return {**asdict(result), "header": result.header, "footer": result.footer}
