"""Reads a PostgreSQL database through psycopg alone: SQLAlchemy takes longer than the answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from importlib.util import find_spec
from typing import Any
from urllib.parse import parse_qsl, unquote

from commtune.db.connection import location

#: For libpq: seconds until a server that doesn't answer a first call is away, and one that
#: vanished without a word, with its machine or the network, a minute after it was last heard of.
TIMEOUTS = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,  # milliseconds, of what was sent
}
_PARTS = ("user", "password", "host", "port", "dbname")
_URL = re.compile(
    r"postgresql\+psycopg://(?:([^:/?@]*)(?::([^/?@]*))?@)?"  # user and password
    r"([^:/?@[%]*)(?::(\d+))?(?:/([^/?@]*))?(?:\?([^@]*))?"  # host, port, name, further options
)
#: As from SQLite's catalogue; a user may have a schema of their own before the one with ours.
TABLES = "SELECT tablename AS name FROM pg_tables WHERE schemaname = ANY (current_schemas(FALSE))"


def read_url(url: str) -> dict[str, str] | None:
    """What psycopg is called with; ``None`` where only SQLAlchemy knows what the URL means.

    That is so for other drivers, several hosts, and passwords that are not percent-encoded. Where
    psycopg is missing, SQLAlchemy's way says so.
    """
    found = _URL.fullmatch(url)
    if found is None or find_spec("psycopg") is None:
        return None
    *parts, query = found.groups(default="")
    pairs = parse_qsl(query)
    options = dict(pairs)
    if len(options) < len(pairs) or ":" in options.get("host", ""):
        return None
    named = zip(_PARTS, map(unquote, parts), strict=True)
    return {name: part for name, part in named if part} | options


@contextmanager
def open_postgresql(
    arguments: Mapping[str, str], url: str, *, snapshot: bool
) -> Iterator[location.Rows]:
    """Opens a database for questions.

    Args:
        arguments: from ``read_url``.
        snapshot: all see one state, in one transaction; else each is a transaction.

    Raises:
        DatabaseFault: it can't be reached or read.
    """
    # Imported here: SQLite users don't wait for it, and may not have it.
    import psycopg
    from psycopg.rows import dict_row

    given: dict[str, Any] = {**TIMEOUTS, **arguments, "autocommit": not snapshot}
    try:
        with closing(psycopg.connect(**given, row_factory=dict_row)) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            yield lambda statement, values: connection.execute(
                write_for_psycopg(statement).encode(), values
            ).fetchall()
    except psycopg.Error as error:
        was_lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        said = location.hide_secrets(str(error), url)
        raise location.explain_fault(said, location.shown_url(url), transient=was_lost) from error


def write_for_psycopg(statement: str) -> str:
    """A statement with its parameters, ``:name``, as psycopg writes them."""
    return re.sub(r":(\w+)", r"%(\1)s", statement.replace("%", "%%"))
