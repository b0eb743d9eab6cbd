"""Upgrades a database; without SQLAlchemy if it is up to date, to start fast."""

from __future__ import annotations

from contextlib import suppress

from commtune.db.connection import location
from commtune.db.connection.read_only import require_there
from commtune.db.connection.reader import open_for_reading
from commtune.errors import NoAnswer


def upgrade_database(db: str | None = None) -> str:
    """Upgrades a database to the schema of this version; returns its path or URL.

    Raises:
        NoAnswer: there is no such file.
    """
    url = location.database_url(db)
    file = location.sqlite_path(url)
    if file is not None:
        require_there(file)
    if _schema_of(url) != location.SCHEMA:
        from commtune.db.connection import engine  # slow to import

        engine.migrate_database(url)
    return str(file or location.shown_url(url))


def _schema_of(url: str) -> object:
    with suppress(NoAnswer, location.OtherSchema), open_for_reading(url) as rows:
        return rows(f"SELECT version_num FROM {location.VERSION_TABLE}", {})[0]["version_num"]
    return None
