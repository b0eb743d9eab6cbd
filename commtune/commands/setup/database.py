"""``commtune db``."""

from __future__ import annotations

from commtune.commands.options import DbOption
from commtune.db.connection.location import database_url, shown_url, sqlite_path
from commtune.errors import NoAnswer


def db_path_command(db: DbOption = None) -> None:
    """Print where the database is."""
    url = database_url(db)
    print(sqlite_path(url) or shown_url(url))


def db_upgrade_command(db: DbOption = None) -> None:
    """Upgrade the database's schema to this version of commtune."""
    from commtune.db.connection.engine import upgrade_database

    url = database_url(db)
    file = sqlite_path(url)
    if file is not None and not file.exists():
        raise NoAnswer(
            f"there is no database at {file} yet",
            hint="commtune tune makes one; another one is named with --db or COMMTUNE_DB",
        )
    upgrade_database(url)
    print(f"{file or shown_url(url)} has the schema of this version")
