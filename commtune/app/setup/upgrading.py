"""A database's schema, brought to this version's."""

from __future__ import annotations

from commtune.db.connection import engine
from commtune.db.connection.location import database_url, shown_url, sqlite_path
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
    engine.upgrade_database(url)
    return str(file or shown_url(url))
