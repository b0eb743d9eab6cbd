"""Opens the database that an option names, for the duration of a ``with`` statement."""

from __future__ import annotations

from contextlib import closing

from commtune.db.connection.busy_retry import BusyRetry
from commtune.db.connection.engine import Database, open_database, open_readable
from commtune.db.connection.location import database_url


def opened_database(option: str | None, patience: BusyRetry | None = None) -> closing[Database]:
    """Opens a database for reading and writing; ``patience`` is as for ``open_database``."""
    return closing(open_database(database_url(option), patience))


def readable_database(option: str | None) -> closing[Database]:
    """Opens a database for reading only."""
    return closing(open_readable(database_url(option)))
