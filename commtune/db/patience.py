"""Waiting for a database that another program holds: a backup, or an open shell."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy.exc import OperationalError

from commtune.db.faults import explain
from commtune.errors import DatabaseFault

_T = TypeVar("_T")
#: Between two attempts, each of which waits by itself, seconds.
_PAUSE_S = 0.1


@dataclass(frozen=True)
class Patience:
    """What a writer does while an SQLite file is held by another program.

    Attributes:
        wait_s: how long it tries again, seconds; one attempt is always made.
        say: told once in every wait.
    """

    wait_s: float = 0.0
    say: Callable[[str], None] | None = None

    def with_busy(self, attempt: Callable[[], _T], shown: str) -> _T:
        """What the attempt returns, made again while it fails for a busy database.

        Args:
            shown: the database, for messages.

        Raises:
            DatabaseFault: it was busy for all the time; transient.
        """
        began = time.monotonic()
        said = False
        while True:
            try:
                return attempt()
            except OperationalError as error:
                if not _is_busy(error):
                    raise
                waited_s = time.monotonic() - began
                if waited_s >= self.wait_s:
                    raise _given_up(error, shown, waited_s) from error
            if self.say and not said:
                self.say(f"note: {_busy(shown)}; waiting for it, at most {self.wait_s:.0f} s")
                said = True
            time.sleep(_PAUSE_S)


#: For commands that a person waits for: they fail at once, and can be typed again.
NONE = Patience()


def _is_busy(error: OperationalError) -> bool:
    code = getattr(error.orig, "sqlite_errorcode", None)
    # The low byte is the kind of error, the others its circumstances.
    return code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _busy(shown: str) -> str:
    return f"the database {shown} is busy: another program writes"


def _given_up(error: OperationalError, shown: str, waited_s: float) -> DatabaseFault:
    fault = explain(str(error.orig), shown, transient=True)
    return DatabaseFault(
        f"{fault.message}; waited for {waited_s:.0f} s",
        hint="end the program that holds it (a backup, an open sqlite3 shell), and try again: "
        "a campaign goes on where it was",
        transient=True,
    )
