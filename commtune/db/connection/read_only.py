"""Opens read-only connections to an SQLite file, which need no permission to write."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from urllib.parse import quote

from commtune.db.connection import location
from commtune.errors import DatabaseFault, NoAnswer
from commtune.paths import exists, is_file
from commtune.private_files import FILES_BESIDE, require_own

_LOOK = "SELECT 1 FROM sqlite_master LIMIT 1"


def connect_for_reading(path: Path) -> sqlite3.Connection:
    """Opens a file read-only; as immutable where the log's index can't be created beside it.

    Raises:
        NoAnswer: there is no such file.
        DatabaseFault: other users may have written it.
        sqlite3.Error: it can't be read, or a program has been writing it for too long.
    """
    require_there(path)
    require_private(path)
    try:
        return connect_to_follow(path)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_READONLY_ROLLBACK:
            # A program was killed while it wrote. Only who may write can undo its transaction.
            with closing(sqlite3.connect(path)) as writing:
                writing.execute(_LOOK)
            return connect_to_follow(path)
        is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
        if is_busy or exists(Path(f"{path}-wal")) or not is_file(path):
            raise
        # Nobody writes (there is no log), and this user may not create files beside the database.
        connection = sqlite3.connect(f"{read_only_uri(path)}&immutable=1", uri=True)
        connection.text_factory = read_text
        return connection


def require_there(path: Path) -> None:
    """Raises NoAnswer if there is no file of a database."""
    if not exists(path):
        raise NoAnswer(
            f"there is no database at {path} yet",
            hint="commtune tune makes one; another one is named with --db or COMMTUNE_DB",
        )


def connect_to_follow(path: Path) -> sqlite3.Connection:
    """Opens a file read-only; the connection sees later writes, and may change threads.

    Raises:
        sqlite3.Error: the file can't be opened like this.
    """
    connection = sqlite3.connect(
        read_only_uri(path), uri=True, timeout=location.busy_s(), check_same_thread=False
    )
    connection.text_factory = read_text
    try:
        connection.execute(_LOOK).fetchall()
    except sqlite3.Error:
        connection.close()
        raise
    except UnicodeDecodeError as error:  # SQLite's own message, which quotes a damaged schema
        connection.close()
        raise sqlite3.DatabaseError("malformed database schema") from error
    return connection


def read_only_uri(path: Path) -> str:
    """Returns the URI by which ``sqlite3.connect`` opens a file read-only."""
    return f"file:{quote(str(path))}?mode=ro"


def require_private(path: Path) -> None:
    """Refuses a database that another user may have written, and anything but a file.

    Raises:
        DatabaseFault: it is another user's, or others can write it, or it is no regular file.
    """
    mode = stat.S_IFREG
    with suppress(OSError, ValueError):  # opening the file reports the error
        mode = path.stat().st_mode
    # SQLite would wait for the writer of a pipe, and ignore signals meanwhile.
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
        raise DatabaseFault(
            f"the database {path} is not opened: it is {kind}, not a regular file",
            hint=location.ELSEWHERE,
        )
    said = f"the database {path}, from which 'commtune run' loads settings, is not opened"
    require_own(said, path, beside=FILES_BESIDE, fault=DatabaseFault)


#: Decodes text columns. Invalid UTF-8 becomes surrogates, which the check of the row reports.
read_text = partial(str, encoding="utf-8", errors="surrogateescape")
