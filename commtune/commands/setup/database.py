"""``commtune db``."""

from __future__ import annotations

from commtune.commands.options import DbOption
from commtune.db.connection.location import database_url, shown_url, sqlite_path


def db_path_command(db: DbOption = None) -> None:
    """Print where the database is."""
    url = database_url(db)
    print(sqlite_path(url) or shown_url(url))


def db_upgrade_command(db: DbOption = None) -> None:
    """Upgrade the database's schema to this version of commtune."""
    from commtune.app.stored_campaigns import upgrade_database

    print(f"{upgrade_database(db)} has the schema of this version")
