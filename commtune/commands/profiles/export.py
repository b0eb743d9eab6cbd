"""``commtune export``, and what ``commtune run`` shares with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from commtune.app.exporting import render_export, write_export
from commtune.commands.options import DbOption
from commtune.db.queries.query_results import ProfileAnswer


def find_profile(reference: str, db: str | None) -> ProfileAnswer:
    """A stored profile by CAMPAIGN/PROFILE, name or number."""
    from commtune.db.connection.location import database_url
    from commtune.db.queries.profiles import load_profile

    return load_profile(database_url(db), reference)


def export_command(
    profile: Annotated[str, typer.Argument(help="CAMPAIGN/PROFILE, name, or number")],
    format_: Annotated[
        str, typer.Option("--format", help="env, sh, csh, fish, json, lmod or tcl")
    ] = "sh",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="file [stdout]")] = None,
    allow_unguarded: Annotated[
        bool,
        typer.Option("--allow-unguarded", help="a module file without guards"),
    ] = False,
    db: DbOption = None,
) -> None:
    """Write a profile as a file that shells, programs or module systems load."""
    rendered = render_export(find_profile(profile, db), format_, allow_unguarded=allow_unguarded)
    if output is None:
        print(rendered, end="")
        return
    write_export(output, rendered)
    print(f"wrote {output}")
