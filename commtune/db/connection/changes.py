"""Tells whether an SQLite database was written, for who keeps answers."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Hashable
from pathlib import Path
from urllib.parse import quote

from commtune.db.connection import location


class Changes:
    """Watches a database over a connection that stays open and holds no lock.

    Args:
        url: from ``database_url``.
    """

    def __init__(self, url: str) -> None:
        self._path = location.sqlite_path(url)
        self._lock = threading.Lock()
        self._watched: tuple[Hashable, sqlite3.Connection] | None = None

    def version(self) -> Hashable | None:
        """Another one after each write by anybody; ``None`` where that can't be told.

        It can be told of an SQLite file only, and not of one without its log's index.
        """
        if self._path is None:
            return None
        with self._lock:
            try:
                return self._read(self._path)
            except (OSError, sqlite3.Error):
                self._forget()
                return None

    def close(self) -> None:
        """Ends the watch."""
        with self._lock:
            self._forget()

    def _read(self, path: Path) -> Hashable:
        status = path.stat()
        file = (status.st_dev, status.st_ino)
        if self._watched is None or self._watched[0] != file:
            self._forget()
            self._watched = (file, _connect(path))
        # SQLite's own counter tells of writes by others, which all are to a connection that never
        # writes. A file that was copied over by something else shows by its times.
        (counter,) = self._watched[1].execute("PRAGMA data_version").fetchone()
        return (file, id(self._watched[1]), counter, status.st_mtime_ns, status.st_size)

    def _forget(self) -> None:
        if self._watched is not None:
            self._watched[1].close()
            self._watched = None


def _connect(path: Path) -> sqlite3.Connection:
    # Never as a still picture (immutable), in which no write can be seen.
    name = f"file:{quote(str(path))}?mode=ro"
    return sqlite3.connect(name, uri=True, timeout=0, check_same_thread=False)
