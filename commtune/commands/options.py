"""Options that several commands have, and how the user called us."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

DbOption = Annotated[
    str | None, typer.Option("--db", help="database file or SQLAlchemy URL [env: COMMTUNE_DB]")
]
JsonOption = Annotated[bool, typer.Option("--json", help="print JSON, for programs")]
BackendOption = Annotated[
    str | None,
    typer.Option(
        help="mpi-host, python-host, or on GPUs: xccl, mpi-device, mpi-staged, ipc-put, ipc-get, "
        "python-device"
    ),
]
EmulateOption = Annotated[
    int, typer.Option("--emulate-nodes", help="xccl: make one machine so many nodes, by sockets")
]
OpOption = Annotated[str | None, typer.Option("--op", help="operation: allreduce, broadcast, ...")]


def called_as() -> str:
    """How the user called us, for commands that we suggest."""
    called = sys.argv[0]
    if Path(called).name != "commtune":
        return "commtune"
    from shutil import which

    found = which("commtune")
    if found and Path(found).resolve() == Path(called).resolve():
        return "commtune"
    return os.path.relpath(called) if Path(called).is_relative_to(Path.cwd()) else called
