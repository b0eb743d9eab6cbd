"""``commtune export``, and what ``commtune run`` shares with it."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from commtune import __version__
from commtune.commands.options import DbOption
from commtune.db.queries.query_results import ProfileAnswer
from commtune.errors import UserError
from commtune.export import render_profile
from commtune.export.document import ExportDocument


def run(
    reference: str, format_: str, output: Path | None, db: str | None, *, allow_unguarded: bool
) -> None:
    """Writes a profile in a format, to a file or to standard output."""
    answer = find_profile(reference, db)
    rendered = render_profile(format_, _export_document(answer), allow_unguarded=allow_unguarded)
    if output is None:
        print(rendered, end="")
        return
    _write(output, rendered)
    print(f"wrote {output}")


def _write(output: Path, rendered: str) -> None:
    try:
        output.write_text(rendered, encoding="utf-8")
    except OSError as error:
        missing = not output.parent.is_dir()
        hint = f"mkdir -p {shlex.quote(str(output.parent))}" if missing else ""
        raise UserError(f"can't write {output}: {error.strerror}", hint=hint) from error


def find_profile(reference: str, db: str | None) -> ProfileAnswer:
    """A stored profile by CAMPAIGN/PROFILE, name or number."""
    from commtune.db.connection.location import database_url
    from commtune.db.queries.profiles import load_profile

    return load_profile(database_url(db), reference)


def _export_document(answer: ProfileAnswer) -> ExportDocument:
    """What an export says of a profile."""
    return ExportDocument(
        profile=answer.profile,
        campaign=answer.campaign,
        system=answer.system.name,
        fingerprint=answer.system.fingerprint,
        stack=answer.stack.text,
        created=datetime.fromtimestamp(answer.created, UTC).isoformat(timespec="seconds"),
        commtune_version=__version__,
        pinned=answer.pinned,
        unset=tuple(v for v in answer.variables if v not in answer.profile.configuration),
    )


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
    run(profile, format_, output, db, allow_unguarded=allow_unguarded)
