"""``commtune init``."""

from __future__ import annotations

import shlex
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from commtune.app.setup.example import find_other_space
from commtune.commands.options import called_as
from commtune.documents.files import write_file
from commtune.errors import UserError
from commtune.paths import exists


def init_command(
    file: Annotated[Path, typer.Argument(help="file to write")] = Path("campaign.yaml"),
    force: Annotated[bool, typer.Option("--force", help="overwrite the file")] = False,
) -> None:
    """Write a commented campaign file to start from."""
    # Not taken for an option: one that begins with a dash.
    named = shlex.quote(f"./{file}" if str(file).startswith("-") else str(file))
    program = called_as()
    if exists(file) and not force:
        raise UserError(
            f"{file} exists already", hint=f"name another file, or: {program} init {named} --force"
        )
    example = files("commtune.commands").joinpath("campaign_example.yaml").read_text("utf-8")
    example = _fitted(example)
    write_file(file, example)
    print(f"wrote {file}; edit it, then: {program} tune {named}")


def _fitted(example: str) -> str:
    """The example with a space that fits the MPI of this machine, if it has one."""
    space = find_other_space()
    if not space:
        return example
    # The commented lines name variables of MPICH: they would be wrong here.
    kept = [line for line in example.splitlines() if "MPIR_CVAR" not in line]
    return "\n".join(kept).replace("mpich-host-allreduce", f"{space:<20}") + "\n"
