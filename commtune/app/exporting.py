"""A stored profile as a file that shells, programs or module systems load."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path

from commtune import __version__
from commtune.db.connection.location import database_url
from commtune.db.queries.profiles import load_profile
from commtune.db.records import ProfileAnswer
from commtune.errors import UserError
from commtune.export import render_profile
from commtune.export.document import ExportDocument


def export_profile(
    profile: str, format: str = "sh", *, db: str | None = None, allow_unguarded: bool = False
) -> str:
    """The text of a file that sets a stored profile's variables.

    Args:
        profile: CAMPAIGN/PROFILE, name, or number.
        format: env, sh, csh, fish, json, lmod or tcl.
        db: database file or URL; the user's own by default.
        allow_unguarded: a module file without guard operations, with a warning in it.

    Raises:
        UnknownName, NoAnswer: there is no such profile, or no such format.
        ExportRefused: the profile claims nothing, is simulated, or does not fit the format.
    """
    answer = load_profile(database_url(db), profile)
    return render_export(answer, format, allow_unguarded=allow_unguarded)


def render_export(answer: ProfileAnswer, format: str, *, allow_unguarded: bool = False) -> str:
    """The text of the file.

    Raises:
        UnknownName: there is no such format.
        ExportRefused: the profile claims nothing, is simulated, or does not fit the format.
    """
    document = ExportDocument(
        profile=answer.profile,
        campaign=answer.campaign,
        system=answer.system.name,
        fingerprint=answer.system.fingerprint,
        stack=answer.stack.text,
        created=datetime.fromtimestamp(answer.created, UTC).isoformat(timespec="seconds"),
        commtune_version=__version__,
        pinned=answer.pinned,
        level=answer.level,
        unset=tuple(v for v in answer.variables if v not in answer.profile.configuration),
    )
    return render_profile(format, document, allow_unguarded=allow_unguarded)


def write_export(file: Path, rendered: str) -> None:
    """Writes the file.

    Raises:
        UserError: it can't be written; the hint makes a missing folder.
    """
    try:
        file.write_text(rendered, encoding="utf-8")
    except OSError as error:
        missing = not file.parent.is_dir()
        hint = f"mkdir -p {shlex.quote(str(file.parent))}" if missing else ""
        raise UserError(f"can't write {file}: {error.strerror}", hint=hint) from error
