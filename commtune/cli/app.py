"""The application, and the options that several commands have."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    help="Finds the environment variables that make MPI, NCCL and RCCL fast, and proves it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
spaces_app = typer.Typer(
    help="Search spaces, and what the variables in them are.", no_args_is_help=True
)
systems_app = typer.Typer(
    help="Descriptions of machines, and what is set on them.", no_args_is_help=True
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
    typer.Option(
        help="mpi-host, python-host, or on GPUs: xccl, mpi-device, mpi-staged, ipc-put, ipc-get, "
        "python-device"
    ),
]
Emulate = Annotated[
    int, typer.Option("--emulate-nodes", help="xccl: make one machine so many nodes, by sockets")
]
Op = Annotated[str | None, typer.Option("--op", help="operation: allreduce, broadcast, ...")]


def print_json(data: Any) -> None:
    print(json.dumps(data, indent=2, default=str))


def program() -> str:
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
