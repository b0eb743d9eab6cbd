"""Upgrades, copies and repairs of a database."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path

from commtune.db import repair
from commtune.db.connection import engine, location
from commtune.db.connection.reader import open_for_reading
from commtune.db.damage import Damage
from commtune.db.inspection import find_damage
from commtune.errors import NoAnswer
from commtune.paths import exists


def upgrade_database(db: str | None = None) -> str:
    """Upgrades a database to the schema of this version; returns where it is.

    Raises:
        NoAnswer: there is no such file.
    """
    url = location.database_url(db)
    file = location.sqlite_path(url)
    if file is not None and not exists(file):
        raise NoAnswer(
            f"there is no database at {file} yet",
            hint="commtune tune makes one; another one is named with --db or COMMTUNE_DB",
        )
    if _schema_of(url) != location.SCHEMA:
        engine.upgrade_database(url)
    return str(file or location.shown_url(url))


def _schema_of(url: str) -> object:
    with suppress(NoAnswer, location.OtherSchema), open_for_reading(url) as rows:
        return rows(f"SELECT version_num FROM {location.VERSION_TABLE}", {})[0]["version_num"]
    return None


def check_database(db: str | None = None) -> tuple[str, list[Damage]]:
    """Reads all of a database; where it is, and what is damaged in it."""
    url = location.database_url(db)
    with closing(engine.open_readable(url)) as opened:
        return opened.url, find_damage(opened)


def back_up_database(target: Path, db: str | None = None) -> None:
    """Writes a consistent copy, while campaigns write (see ``db.repair``)."""
    repair.back_up(location.database_url(db), target)


def repair_database(db: str | None = None) -> repair.Repair | None:
    """Sets damaged campaigns apart (see ``db.repair``); ``None`` where nothing is damaged."""
    return repair.set_damaged_apart(location.database_url(db))
