"""Checks, backs up and repairs a database."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from commtune.db import repair
from commtune.db.connection import engine
from commtune.db.connection.location import database_url
from commtune.db.damage import Damage
from commtune.db.inspection import find_damage


def check_database(db: str | None = None) -> tuple[str, list[Damage]]:
    """Reads a whole database; returns its URL, and its damage."""
    url = database_url(db)
    with closing(engine.open_readable(url)) as opened:
        return opened.url, find_damage(opened)


def back_up_database(target: Path, db: str | None = None) -> None:
    """Writes a consistent copy, even while campaigns run (see ``db.repair``)."""
    repair.back_up(database_url(db), target)


def repair_database(db: str | None = None) -> repair.Repair | None:
    """Rebuilds it from the undamaged campaigns (see ``db.repair``); ``None`` without damage."""
    return repair.set_damaged_apart(database_url(db))
