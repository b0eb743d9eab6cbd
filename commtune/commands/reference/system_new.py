"""``commtune systems new``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from commtune.app.systems import draft_system
from commtune.commands.options import called_as
from commtune.documents.files import write_new_file
from commtune.documents.yaml_document import parse_document
from commtune.errors import UserError
from commtune.paths import exists
from commtune.systems.drafting.description import check_name
from commtune.systems.loading import build_system, list_systems


def systems_new_command(
    name: Annotated[str, typer.Argument(help="name of the new description")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="file to write [NAME.yaml]")
    ] = None,
    partition: Annotated[
        str, typer.Option(help="Slurm's partition for campaigns [Slurm's default]")
    ] = "",
) -> None:
    """Write a first description of this machine from what is detected on it."""
    program = called_as()
    check_name(name)
    if name in list_systems():
        raise UserError(
            f"{name} is the name of a description that comes with commtune",
            hint=f"choose another name; '{program} systems detect' tells whether this is {name}",
        )
    file = output or Path(f"{name}.yaml")
    if file.suffix not in (".yaml", ".yml"):
        raise UserError(f"{file}: the file's name must end in .yaml", hint=f"-o {name}.yaml")
    another = "name another file by -o, and compare the two"
    if exists(file):  # before the machine is looked at, which takes a while
        raise UserError(f"{file} exists already", hint=another)
    page = draft_system(name, partition)
    build_system(parse_document(page.text, file))
    write_new_file(file, page.text, another)
    print(f"wrote {file}")
    if page.placeholders:
        print(f"placeholders, to be corrected first: {', '.join(page.placeholders)}")
    if page.unknown:
        print("not known:")
        print("\n".join(f"  {question}" for question in page.unknown))
    print(f"edit it, then: {program} systems validate {file}; {program} systems detect {file}")
