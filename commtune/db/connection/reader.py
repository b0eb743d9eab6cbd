"""Opens a database for reading only, of SQLite without SQLAlchemy: ``best`` waits for it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from pathlib import Path

from commtune.db.connection import location
from commtune.db.connection.read_only import connect_for_reading

#: The URL and the connection of ``keep_open``.
_KEPT: ContextVar[tuple[str, location.Rows] | None] = ContextVar("kept", default=None)


@contextmanager
def open_for_reading(url: str) -> Iterator[location.Rows]:
    """Opens a database for reading only; it is neither created nor upgraded.

    Raises:
        NoAnswer: there is no database yet.
        DatabaseFault: it can't be read, or has another schema.
    """
    kept = _KEPT.get()
    if kept is not None and kept[0] == url:
        yield kept[1]
        return
    path = location.sqlite_path(url)
    if path is None:
        # Imported here: SQLite users don't wait for SQLAlchemy.
        from commtune.db.connection.engine import open_reader

        with open_reader(url) as rows:
            yield rows
    else:
        with _sqlite_reader(path, location.shown_url(url)) as rows:
            yield rows


@contextmanager
def keep_open(url: str) -> Iterator[None]:
    """Inside, all questions to this database go over one connection, opened once.

    Raises:
        NoAnswer: there is no database yet.
        DatabaseFault: it can't be read, or has another schema.
    """
    with open_for_reading(url) as rows:
        token = _KEPT.set((url, rows))
        try:
            yield
        finally:
            _KEPT.reset(token)


@contextmanager
def _sqlite_reader(path: Path, shown: str) -> Iterator[location.Rows]:
    try:
        with closing(connect_for_reading(path)) as connection:
            connection.row_factory = sqlite3.Row
            _check_sqlite(connection, shown)
            yield lambda statement, given: connection.execute(statement, given).fetchall()
    except sqlite3.Error as error:
        raise location.explain_fault(str(error), shown) from error


def _check_sqlite(connection: sqlite3.Connection, shown: str) -> None:
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    revision = (
        connection.execute(f"SELECT version_num FROM {location.VERSION_TABLE}").fetchone()
        if location.VERSION_TABLE in tables
        else None
    )
    location.check_revision(revision[0] if revision else "", tables, shown)
