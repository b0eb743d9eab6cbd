"""A database as a whole: its schema, damage in it, copies."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from commtune.db import repair
from commtune.db.connection import engine
from commtune.db.connection.location import database_url, shown_url, sqlite_path
from commtune.db.damage import Damage
from commtune.db.inspection import find_damage
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


def check_database(db: str | None = None) -> tuple[str, list[Damage]]:
    """Reads all of a database; where it is, and what is damaged in it."""
    url = database_url(db)
    with closing(engine.open_readable(url)) as opened:
        return opened.url, find_damage(opened)


def back_up_database(target: Path, db: str | None = None) -> None:
    """Writes a consistent copy, while campaigns write (see ``db.repair``)."""
    repair.back_up(database_url(db), target)


def repair_database(db: str | None = None) -> repair.Repair | None:
    """Sets damaged campaigns apart (see ``db.repair``); ``None`` where nothing is damaged."""
    return repair.repair(database_url(db))
