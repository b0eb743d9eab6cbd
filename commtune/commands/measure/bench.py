"""``commtune bench``."""

from __future__ import annotations

from typing import Annotated

import typer

from commtune.commands import options as flags
from commtune.commands.options import BackendOption, DtypeOption, EmulateOption, JsonOption
from commtune.errors import EnvironmentFault
from commtune.model import Outcome


def bench_command(
    op: Annotated[str, typer.Option("--op", help="operation")] = "allreduce",
    ranks: Annotated[int, typer.Option(help="MPI processes")] = 2,
    sizes: Annotated[str, typer.Option(help="message sizes")] = "8 .. 4MiB x2",
    settings: flags.SettingsOption = None,
    mpi: Annotated[str, typer.Option(help="which MPI")] = "auto",
    dtype: DtypeOption = "float32",
    time_cap: Annotated[str, typer.Option(help="time for each size")] = "0.2s",
    backend: BackendOption = None,
    emulate_nodes: EmulateOption = None,
    group_size: Annotated[
        int | None,
        typer.Option(help="rail, asymmetric, symmetric: ranks in a group; striping: in a node"),
    ] = None,
    active: Annotated[
        int | None, typer.Option(help="rail, asymmetric, symmetric: ranks of a group that send")
    ] = None,
    direction: Annotated[
        str,
        typer.Option(
            help="rail, asymmetric, symmetric: outbound (default), bidirectional, omnidirectional"
        ),
    ] = "",
    matrix: Annotated[str, typer.Option(help="matrix: file with lines FROM TO BYTES")] = "",
    inside: Annotated[str, typer.Option(help="matrix, striping: backend within a node")] = "",
    between: Annotated[str, typer.Option(help="matrix, striping: backend between nodes")] = "",
    assemble: Annotated[str, typer.Option(help="striping: backend of the last step")] = "",
    window: Annotated[int | None, typer.Option(help="stream: messages in flight [64]")] = None,
    rotate: Annotated[
        str, typer.Option(help="yes: use another place in the buffers for each operation")
    ] = "",
    mode: Annotated[
        str, typer.Option(help="blocking (default); xccl: batched, many enqueued together")
    ] = "",
    operations: Annotated[int | None, typer.Option(help="batched: size of a batch [20]")] = None,
    timer: Annotated[
        str, typer.Option(help="wall (default); xccl: device, by events on the GPU")
    ] = "",
    graph: Annotated[
        str, typer.Option(help="yes: launch each batch as one graph (batched only)")
    ] = "",
    json_output: JsonOption = False,
) -> None:
    """Run the benchmark once and show what it measured."""
    # First of all, while there are no other names than those of the options.
    given = dict(locals())
    # Help does without them.
    from commtune.app.measure.benchmarking import run_benchmark
    from commtune.commands.measure import bench_remarks, bench_results
    from commtune.commands.measure.bench_request import request_of

    request = request_of(**{name: given[name] for name in given.keys() - {"mpi", "json_output"}})
    result, installed = run_benchmark(request, mpi)
    said = bench_remarks.list_remarks(request, installed, result)
    if json_output:
        flags.print_json(bench_results.run_data(request, result, said))
    else:
        if result.measurements or result.pieces:
            print(bench_results.describe_results(request, installed, result))
        for line in said:
            print(line)
    if result.outcome is not Outcome.OK:
        raise EnvironmentFault(
            f"the run ended as {result.outcome}: {result.detail}", hint=result.output_tail.strip()
        )
