"""Opens a database for reading, without SQLAlchemy, so that ``best`` starts fast.

It also detects writes to an SQLite database, for caches of answers.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from contextvars import ContextVar
from functools import cache, partial
from pathlib import Path
from typing import Any

from commtune.db.connection import location
from commtune.db.connection.postgresql import open_postgresql, read_url
from commtune.db.connection.read_only import (
    connect_for_reading,
    connect_to_follow,
    read_only_uri,
    require_private,
)
from commtune.db.damage import Damage, read_rows
from commtune.errors import DatabaseFault

#: The visible tables of a server, in all schemas of the search path: a user's own schema may come
#: first.
_TABLES = "SELECT tablename AS name FROM pg_tables WHERE schemaname = ANY (current_schemas(FALSE))"
#: The page cache of a connection that stays open, KiB: enough for profiles, but not for all runs.
_CACHE_KIB = 16 << 10
#: The URL of ``keep_open``, and what returns its connection.
_KEPT: ContextVar[tuple[str, Callable[[], location.Rows]] | None] = ContextVar(
    "kept", default=None
)


@contextmanager
def open_for_reading(db: str | None, *, snapshot: bool = True) -> Iterator[location.Rows]:
    """Opens a database for reading only; it is neither created nor upgraded.

    Args:
        db: as for ``database_url``.
        snapshot: whether all queries see the database as it was at the first one. Not for readers
            that take minutes, as a writer may have to wait for the end of a snapshot.

    Raises:
        NoAnswer: there is no database yet.
        DatabaseFault: it can't be read, or has another schema.
    """
    kept, url = _KEPT.get(), location.database_url(db)
    if kept is not None and kept[0] == url:
        yield kept[1]()
        return
    path = location.sqlite_path(url)
    if path is not None:
        with _sqlite_reader(path, location.shown_url(url), snapshot) as rows:
            yield rows
    elif (arguments := read_url(url)) is not None:
        with open_postgresql(arguments, url, snapshot=snapshot) as rows:
            _check_schema(rows, _TABLES, location.shown_url(url))
            yield rows
    else:
        # Imported here, to start without SQLAlchemy in the other cases.
        from commtune.db.connection.engine import open_reader

        with open_reader(url) as rows:
            yield rows


def read_stored(
    db: str | None,
    statement: str,
    given: Mapping[str, Any],
    table: str,
    key: str = "id",
    *,
    tell: Callable[[Damage], None] | None = None,
) -> list[dict[str, Any]]:
    """Returns the undamaged rows of a single statement (see ``open_for_reading``, ``read_rows``).

    Args:
        given: the values of its parameters, by name.
    """
    with open_for_reading(db) as rows:
        found = rows(statement, given)
    return read_rows(found, table, key, tell=tell)


@contextmanager
def keep_open(db: str | None) -> Iterator[None]:
    """Lets all calls of ``open_for_reading`` for this database inside share one connection."""
    with open_for_reading(db) as rows, _kept(location.database_url(db), lambda: rows):
        yield


@contextmanager
def _kept(url: str, rows: Callable[[], location.Rows]) -> Iterator[None]:
    token = _KEPT.set((url, rows))
    try:
        yield
    finally:
        _KEPT.reset(token)


class OpenConnections:
    """A pool of connections to a database, for a service of many threads.

    A new one takes longer than most answers: it logs in, or reads a file's schema and pages again.
    """

    def __init__(self, url: str) -> None:
        self._url, self._path = url, location.sqlite_path(url)
        self._idle: list[tuple[Hashable, sqlite3.Connection]] = []
        self._engine = None
        if self._path is None:
            from commtune.db.connection.engine import pool_connections

            self._engine = pool_connections(url)

    @contextmanager
    def borrow(self) -> Iterator[None]:
        """Lets all queries inside use one connection, which the first of them takes."""
        with ExitStack() as inside, _kept(self._url, cache(partial(self._open, inside))):
            yield

    def close(self) -> None:
        """Closes the connections that are not borrowed."""
        while self._idle:
            self._idle.pop()[1].close()
        if self._engine is not None:
            self._engine.dispose()

    def _open(self, inside: ExitStack) -> location.Rows:
        """Takes a connection, which is given back at the end of ``inside``."""
        if self._path is None:
            from commtune.db.connection.engine import open_reader

            return inside.enter_context(open_reader(self._url, self._engine))
        shown, taken = location.shown_url(self._url), self._take(self._path)
        if taken is None:
            return inside.enter_context(_sqlite_reader(self._path, shown, snapshot=True))
        inside.callback(self._idle.append, taken)
        inside.callback(taken[1].rollback)
        return inside.enter_context(_reading(taken[1], shown))

    def _take(self, path: Path) -> tuple[Hashable, sqlite3.Connection] | None:
        """Returns the file's identity and a connection; ``None`` where none can stay open."""
        file = _look_at(path)
        if file is None:
            return None
        require_private(path)
        with suppress(IndexError):  # another thread may take the last one
            while True:
                of_file, connection = self._idle.pop()
                if of_file == file:
                    return file, connection
                connection.close()
        with suppress(sqlite3.Error):
            opened = connect_to_follow(path)
            opened.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            return file, opened
        return None


def _look_at(path: Path) -> Hashable | None:
    """Returns the identity of a file, which changes also when a copy overwrites it."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)


@contextmanager
def _sqlite_reader(path: Path, shown: str, snapshot: bool) -> Iterator[location.Rows]:
    try:
        connection = connect_for_reading(path)
    except sqlite3.Error as error:
        raise location.explain_fault(str(error), shown) from error
    with closing(connection), _reading(connection, shown, snapshot) as rows:
        yield rows


@contextmanager
def _reading(
    connection: sqlite3.Connection, shown: str, snapshot: bool = True
) -> Iterator[location.Rows]:
    try:
        if snapshot:
            connection.execute("BEGIN")
        rows = partial(_ask, connection)
        _check_schema(rows, "SELECT name FROM sqlite_master", shown)
        yield rows
    except sqlite3.Error as error:
        raise location.explain_fault(str(error), shown) from error


def _ask(
    connection: sqlite3.Connection, statement: str, given: Mapping[str, Any]
) -> list[dict[str, Any]]:
    # No sqlite3.Row, which searches the names of all columns for each value.
    found = connection.execute(statement, given)
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _check_schema(rows: location.Rows, tables: str, shown: str) -> None:
    names = {row["name"] for row in rows(tables, {})}
    asked = f"SELECT version_num FROM {location.VERSION_TABLE}"
    stored = rows(asked, {}) if location.VERSION_TABLE in names else []
    location.check_revision(stored[0]["version_num"] if stored else "", names, shown)


class Changes:
    """Detects writes to a database, by a connection that stays open and holds no lock.

    Args:
        url: from ``database_url``.
    """

    def __init__(self, url: str) -> None:
        self._path = location.sqlite_path(url)
        self._lock = threading.Lock()
        self._watched: tuple[Hashable, sqlite3.Connection] | None = None

    def version(self) -> Hashable | None:
        """Returns a value that changes with each write by anybody; ``None`` if unknown.

        It is known for SQLite files only, and not where the log's index can't be read, or others
        can write the file.
        """
        if self._path is None:
            return None
        with self._lock:
            try:
                return self._read(self._path)
            except (OSError, sqlite3.Error, DatabaseFault):
                self._forget()
                return None

    def close(self) -> None:
        """Closes the connection."""
        with self._lock:
            self._forget()

    def _read(self, path: Path) -> Hashable:
        status = path.stat()
        file = (status.st_dev, status.st_ino)
        if self._watched is None or self._watched[0] != file:
            self._forget()
            require_private(path)
            # Never as immutable, because such a connection sees no writes.
            opened = sqlite3.connect(
                read_only_uri(path), uri=True, timeout=0, check_same_thread=False
            )
            self._watched = (file, opened)
        # SQLite's counter changes with writes by other connections, and this one never writes. A
        # file that another program overwrites is detected by its modification time and size.
        (counter,) = self._watched[1].execute("PRAGMA data_version").fetchone()
        return (file, id(self._watched[1]), counter, status.st_mtime_ns, status.st_size)

    def _forget(self) -> None:
        if self._watched is not None:
            self._watched[1].close()
            self._watched = None
