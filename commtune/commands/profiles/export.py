"""``commtune export``, and what ``commtune run`` shares with it."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path

from commtune import __version__
from commtune.db.queries.query_results import ProfileAnswer
from commtune.errors import UserError
from commtune.export import render_profile
from commtune.export.document import ExportDocument


def run(
    reference: str, format_: str, output: Path | None, db: str | None, *, allow_unguarded: bool
) -> None:
    """Writes a profile in a format, to a file or to standard output."""
    answer = find_profile(reference, db)
    rendered = render_profile(format_, export_document(answer), allow_unguarded=allow_unguarded)
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


def export_document(answer: ProfileAnswer) -> ExportDocument:
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
