"""Commands that measure or look without a campaign."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from commtune.cli.app import Backend, Db, Emulate, Json, Op, app, program


@app.command()
def bench(
    op: Annotated[str, typer.Option("--op", help="operation")] = "allreduce",
    ranks: Annotated[int, typer.Option(help="MPI processes")] = 2,
    sizes: Annotated[str, typer.Option(help="message sizes")] = "8 .. 4MiB x2",
    setting: Annotated[
        list[str] | None, typer.Option("-x", help="NAME=VALUE for the run; may be repeated")
    ] = None,
    mpi: Annotated[str, typer.Option(help="which MPI")] = "auto",
    dtype: Annotated[str, typer.Option(help="float32, float64, int32 or uint8")] = "float32",
    time_cap: Annotated[str, typer.Option(help="time for each size")] = "0.2s",
    backend: Backend = None,
    emulate_nodes: Emulate = 0,
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
    json_output: Json = False,
) -> None:
    """Run the benchmark once and show what it measured."""
    from commtune.commands.measure import bench as command

    shape = command.ShapeFlags(
        group_size, active, direction, matrix, inside, between, assemble, window, rotate
    )
    settings = command.Settings(
        op, ranks, sizes, tuple(setting or ()), mpi, dtype, time_cap, backend or "",
        emulate_nodes, shape, command.TimingFlags(mode, operations, timer, graph),
    )  # fmt: skip
    command.run(settings, json_output=json_output)


@app.command()
def build(
    mpi: Annotated[str, typer.Option(help="which MPI, as for tune")] = "auto",
    gpu: Annotated[str, typer.Option(help="auto, none, cuda or hip")] = "auto",
    arch: Annotated[
        list[str] | None,
        typer.Option(help="architecture of GPUs to build for, such as 90 or gfx90a; repeatable"),
    ] = None,
    log: Annotated[Path | None, typer.Option(help="file for what CMake and compilers say")] = None,
    again: Annotated[bool, typer.Option("--again", help="build, even if it was before")] = False,
    json_output: Json = False,
) -> None:
    """Build the benchmark, and say which backends are in it and why others are not."""
    from commtune.commands.setup import build as command

    command.run(mpi, gpu, tuple(arch or ()), log, again=again, json_output=json_output)


@app.command()
def trace(
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=VALUE]...", help="what to set")
    ] = None,
    op: Annotated[str, typer.Option("--op", help="operation")] = "allreduce",
    ranks: Annotated[int, typer.Option(help="MPI processes")] = 2,
    sizes: Annotated[str, typer.Option(help="message sizes [8,1KiB,64KiB,1MiB]")] = "",
    mpi: Annotated[str, typer.Option(help="which MPI")] = "auto",
    dtype: Annotated[str, typer.Option(help="float32, float64, int32 or uint8")] = "float32",
    backend: Backend = None,
    emulate_nodes: Emulate = 0,
    json_output: Json = False,
) -> None:
    """What the library makes of settings: which it took, ignored or replaced. Times nothing."""
    from commtune.commands.measure import trace as command

    written = command.Settings(
        tuple(settings or ()), op, ranks, sizes, mpi, dtype, backend or "mpi-host", emulate_nodes
    )
    command.run(written, json_output=json_output)


@app.command()
def verify(
    profile: Annotated[str, typer.Argument(help="CAMPAIGN/PROFILE, name, or number")],
    time: Annotated[str, typer.Option(help="wall time of the runs")] = "30s",
    mpi: Annotated[str | None, typer.Option(help="which MPI [the campaign's]")] = None,
    db: Db = None,
    json_output: Json = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="take the lock from a controller that is gone")
    ] = False,
) -> None:
    """Measure a profile again: exit code 0 holds, 10 weaker, 11 gone, 12 worse, 13 undecided."""
    from commtune.commands.profiles import verify as command

    command.run(profile, time, mpi, db, json_output=json_output, take_over=take_over)


@app.command()
def compare(
    a: Annotated[
        str,
        typer.Argument(
            help="default, a profile, 'NAME=VALUE NAME=VALUE', @FILE, or baseline:NAME"
        ),
    ],
    b: Annotated[str, typer.Argument(help="the same")],
    op: Op = None,
    ranks: Annotated[int | None, typer.Option(help="MPI processes on this machine")] = None,
    sizes: Annotated[str | None, typer.Option(help="message sizes, as for tune")] = None,
    mpi: Annotated[str | None, typer.Option(help="which MPI, as for tune")] = None,
    time: Annotated[str, typer.Option(help="wall time of the runs")] = "30s",
    backend: Backend = None,
    emulate_nodes: Annotated[
        int | None,
        typer.Option("--emulate-nodes", help="xccl: make one machine so many nodes, by sockets"),
    ] = None,
    db: Db = None,
    json_output: Json = False,
) -> None:
    """Measure any two configurations against each other; nothing is stored."""
    from commtune.commands.measure import compare as command
    from commtune.commands.measure.compare_workload import Flags

    flags = Flags(op, ranks, sizes, mpi, time, backend, emulate_nodes)
    command.run(a, b, flags, db, json_output=json_output, program=program())


@app.command()
def doctor(db: Db = None, json_output: Json = False) -> None:
    """What this machine has, what is missing, and the command that mends it."""
    from commtune.commands.setup import doctor as command

    command.run(db, json_output=json_output)
