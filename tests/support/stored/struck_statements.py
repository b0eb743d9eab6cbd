"""Ctrl-C from within a statement of the database, whichever one wants."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import event

from commtune.db.connection.engine import Database


@contextmanager
def struck(database: Database, statement: int) -> Iterator[list[str]]:
    """Ctrl-C from within statement number ``statement``; yields the statements so far."""
    seen: list[str] = []

    def strike(_connection: object, _cursor: object, sql: str, *_: object) -> None:
        seen.append(sql)
        if len(seen) == statement:
            os.kill(os.getpid(), signal.SIGINT)

    event.listen(database.engine, "after_cursor_execute", strike)
    try:
        yield seen
    finally:
        event.remove(database.engine, "after_cursor_execute", strike)
