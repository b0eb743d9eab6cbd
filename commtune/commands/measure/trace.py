"""``commtune trace``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from commtune import formatting as text
from commtune.commands import options as flags
from commtune.errors import UserError
from commtune.model import Execution, Workload

if TYPE_CHECKING:
    from commtune.app.measure.benchmarking import TraceResult

#: What became of a variable, by ``Told``.
_WORDS = {
    "held": "holds it",
    "replaced": "holds another value",
    "absent": "has no such variable",
    "unused": "does not use it",
    "unknown": "can't be told",
}


def trace_command(
    settings: flags.SettingsOption = None,
    op: Annotated[str, typer.Option("--op", help="operation")] = "allreduce",
    ranks: Annotated[int, typer.Option(help="MPI processes")] = 2,
    sizes: Annotated[str, typer.Option(help="message sizes")] = "8,1KiB,64KiB,1MiB",
    mpi: Annotated[str, typer.Option(help="which MPI")] = "auto",
    dtype: flags.DtypeOption = "float32",
    backend: flags.BackendOption = None,
    emulate_nodes: flags.EmulateOption = None,
    json_output: flags.JsonOption = False,
) -> None:
    """Show which settings the library used, ignored or replaced; nothing is timed."""
    from commtune.app.measure.benchmarking import trace_settings  # help does without it
    from commtune.commands.measure.bench_request import request_of

    request = request_of(
        settings,
        op=op,
        ranks=ranks,
        sizes=sizes,
        dtype=dtype,
        backend=backend,
        emulate_nodes=emulate_nodes,
    )
    workload = request.workload
    if workload.operation.is_pattern:
        raise UserError(
            f"--op {workload.operation}: the benchmark makes no untimed runs of it",
            hint="trace ping-pong, or the collective that your program calls",
        )
    traced = trace_settings(request, mpi)
    execution = traced.execution
    if json_output:
        flags.print_json(_trace_data(traced))
        return
    print(f"{workload.operation}, {ranks} ranks, {traced.library}: {execution.followed}")
    _print_reasons(traced)
    _print_settings(traced)
    if traced.lines:
        print("\n".join(["", *traced.lines]))
    _print_fingerprints(execution, traced.default, workload)


def _trace_data(traced: TraceResult) -> dict[str, object]:
    execution = traced.execution
    return {
        "configuration": dict(execution.configuration),
        "operation": execution.operation,
        "followed": execution.followed,
        "why": execution.why,
        "became": execution.became,
        "settings": [asdict(setting) for setting in traced.settings.values()],
        "said": list(execution.said),
        "fingerprints": execution.fingerprints,
    }


def _print_reasons(traced: TraceResult) -> None:
    execution, default = traced.execution, traced.default
    for reason in filter(None, execution.why.split("; ")):
        print(f"  {reason}")
    if execution.became == default.configuration.key and not execution.configuration.is_default:
        print("  it behaves as the default does, as far as the library tells")
    elif execution.became is not None:
        print(f"  it behaves as {traced.effective}")


def _print_settings(traced: TraceResult) -> None:
    rows = [
        (s.name, s.asked or "", _WORDS[s.told], "" if s.held is None else s.held, s.why)
        for s in traced.settings.values()
    ]
    if rows:
        print()
        print(text.format_table(("variable", "asked for", traced.library, "value", ""), rows))


def _print_fingerprints(execution: Execution, default: Execution, workload: Workload) -> None:
    print()
    if not execution.fingerprints:
        print(_why_unseen(workload))
        return
    rows = [
        {"size": text.format_size(size), **_compared(own, default.fingerprints.get(size, ""))}
        for size, own in sorted(execution.fingerprints.items())
    ]
    print(text.format_rows(rows))


def _compared(own: str, default: str) -> dict[str, str]:
    """Both digests of a fingerprint, and what each is beside the default's."""
    from commtune.app.measure.benchmarking import split_fingerprint

    cells: dict[str, str] = {}
    pairs = zip(*map(split_fingerprint, (own, default)), strict=True)
    for what, (one, other) in zip(("order of the sum", "messages"), pairs, strict=True):
        likeness = "same" if one == other else "another"
        cells |= {what: one, f"{what}, by default": likeness if one and other else ""}
    return cells


def _why_unseen(workload: Workload) -> str:
    if workload.ranks < 3:
        return "with fewer than 3 ranks every order gives the same sum: algorithms are not seen"
    return "algorithms are not seen: only floating-point sums show them, or Open MPI's messages"
