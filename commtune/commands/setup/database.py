"""``commtune db``."""

from __future__ import annotations

from commtune.commands.options import DbOption
from commtune.db.connection.location import database_url, shown_url, sqlite_path
from commtune.errors import NoAnswer


def show_path(db: str | None) -> None:
    """Prints where the database is, without a password."""
    print(shown_url(database_url(db)))


def upgrade_schema(db: str | None) -> None:
    """Brings the schema up to date."""
    from commtune.db.connection.engine import upgrade_database as bring_up

    url = database_url(db)
    file = sqlite_path(url)
    if file is not None and not file.exists():
        raise NoAnswer(
            f"there is no database at {file} yet",
            hint="commtune tune makes one; another one is named with --db or COMMTUNE_DB",
        )
    bring_up(url)
    print(f"{shown_url(url)} has the schema of this version")


def db_path_command(db: DbOption = None) -> None:
    """Where the database is."""
    show_path(db)


def db_upgrade_command(db: DbOption = None) -> None:
    """Bring the database's schema to this version of commtune."""
    upgrade_schema(db)
