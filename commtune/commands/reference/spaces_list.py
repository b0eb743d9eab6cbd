"""``commtune spaces list``."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Annotated

import typer

from commtune.commands.options import JsonOption, print_json
from commtune.documents.nearest import quote_value, suggest_nearest
from commtune.errors import UnknownName
from commtune.formatting import format_many, format_table


def spaces_list_command(
    library: Annotated[str | None, typer.Argument(help="only those for this library")] = None,
    json_output: JsonOption = False,
) -> None:
    """List the spaces that come with commtune."""
    # To read and count all of them takes a second.
    spaces = json.loads((files("commtune.spaces") / "shipped.json").read_text(encoding="utf-8"))
    if library is not None:
        known = sorted({space["library"] for space in spaces})
        if library not in known:
            message = f"no shipped space is for a library {quote_value(library)}"
            raise UnknownName(message, hint=suggest_nearest(library, known))
        spaces = [space for space in spaces if space["library"] == library]
    if json_output:
        print_json(spaces)
        return
    header = ("space", "library", "versions", "variables", "configurations", "for")
    rows = [
        (
            *(space[key] for key in ("name", "library", "versions")),
            str(len(space["parameters"])),
            format_many(space["configurations"]),
            space["summary"],
        )
        for space in spaces
    ]
    print(format_table(header, rows, right="variables,configurations"))
    print("\nThe variables of one, with their values: commtune spaces show NAME")
