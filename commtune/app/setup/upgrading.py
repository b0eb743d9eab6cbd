"""A database's schema, brought to this version's."""

from __future__ import annotations

from contextlib import suppress

from commtune.db.connection.location import (
    SCHEMA,
    VERSION_TABLE,
    OtherSchema,
    database_url,
    shown_url,
    sqlite_path,
)
from commtune.db.connection.reader import open_for_reading
from commtune.errors import NoAnswer
from commtune.paths import exists


def upgrade_database(db: str | None = None) -> str:
    """Upgrades a database to the schema of this version; returns where it is.

    Raises:
        NoAnswer: there is no such file.
    """
    url = database_url(db)
    file = sqlite_path(url)
    if file is not None and not exists(file):
        raise NoAnswer(
            f"there is no database at {file} yet",
            hint="commtune tune makes one; another one is named with --db or COMMTUNE_DB",
        )
    if not _is_current(url):
        # Imported here: where nothing is to be done, nobody waits for SQLAlchemy.
        from commtune.db.connection import engine

        engine.upgrade_database(url)
    return str(file or shown_url(url))


def _is_current(url: str) -> bool:
    """Whether a database has this version's schema."""
    with suppress(NoAnswer, OtherSchema), open_for_reading(url) as rows:
        return bool(
            rows(f"SELECT version_num FROM {VERSION_TABLE}", {})[0]["version_num"] == SCHEMA
        )
    return False
