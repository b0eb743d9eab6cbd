"""Reads a PostgreSQL database with psycopg alone; importing SQLAlchemy takes longer than that."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from importlib.util import find_spec
from typing import Any
from urllib.parse import parse_qsl, unquote

from commtune.db.connection import location

#: Options of libpq. A server that doesn't accept a connection is given up after 10 seconds, one
#: whose machine or network fails during a connection about a minute after its last answer.
TIMEOUTS = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,  # milliseconds until sent data must be acknowledged
}
_PARTS = ("user", "password", "host", "port", "dbname")
_URL = re.compile(
    r"postgresql\+psycopg://(?:([^:/?@]*)(?::([^/?@]*))?@)?"  # user and password
    r"([^:/?@[%]*)(?::(\d+))?(?:/([^/?@]*))?(?:\?([^@]*))?"  # host, port, name, further options
)


def read_url(url: str) -> dict[str, str] | None:
    """Returns the arguments of ``psycopg.connect``; ``None`` where SQLAlchemy must be used.

    These are other drivers, several hosts, and passwords that are not percent-encoded. It is also
    ``None`` without psycopg, which is reported when SQLAlchemy is used.
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
    """Opens a database for queries.

    Args:
        arguments: from ``read_url``.
        snapshot: whether all queries see one state, in one transaction.

    Raises:
        DatabaseFault: it can't be reached or read.
    """
    # Imported here, because users of SQLite may not have it.
    import psycopg
    from psycopg.rows import dict_row

    given: dict[str, Any] = {**TIMEOUTS, **arguments, "autocommit": not snapshot}
    try:
        with closing(psycopg.connect(**given, row_factory=dict_row)) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            yield lambda statement, values: connection.execute(
                _write_for_psycopg(statement).encode(), values
            ).fetchall()
    except psycopg.Error as error:
        was_lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        said = location.hide_secrets(str(error), url)
        raise location.explain_fault(said, location.shown_url(url), transient=was_lost) from error


def _write_for_psycopg(statement: str) -> str:
    """Rewrites the parameters of a statement, ``:name``, in the style of psycopg."""
    return re.sub(r":(\w+)", r"%(\1)s", statement.replace("%", "%%"))
