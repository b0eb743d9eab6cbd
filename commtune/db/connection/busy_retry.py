"""Waiting for a database that another program holds (a backup, an open shell), or for room."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy.exc import OperationalError

from commtune.db.connection.location import NoRoom, explain_fault
from commtune.errors import DatabaseFault
from commtune.interrupts import Interrupts

_T = TypeVar("_T")
#: Between two attempts, each of which waits by itself, seconds.
_PAUSE_S = 0.1
#: Between two attempts on a full disk, seconds.
_ROOM_PAUSE_S = 1.0


@dataclass
class BusyRetry:
    """What a writer does while an SQLite file is held by another program, or its disk is full.

    Attributes:
        wait_s: how long it tries again, seconds; one attempt is always made.
        say: told once in every wait.
        is_spent: a wait ended without success, by its limit or by Ctrl-C: what is written on the
            way out waits no more.
    """

    wait_s: float = 0.0
    say: Callable[[str], None] | None = None
    is_spent: bool = field(default=False, init=False)

    def with_busy(
        self, attempt: Callable[[], _T], shown: str, pause: Callable[[float], None] = time.sleep
    ) -> _T:
        """What the attempt returns, made again while it fails for a busy database.

        Args:
            shown: the database, for messages.
            pause: waits so many seconds.

        Raises:
            DatabaseFault: it was busy for all the time; transient.
        """
        began = time.monotonic()
        limit_s = 0.0 if self.is_spent else self.wait_s
        is_first = True
        while True:
            try:
                done = attempt()
            except OperationalError as error:
                waited_s = time.monotonic() - began
                if not _is_busy(error):
                    raise
                if waited_s >= limit_s:
                    self.is_spent = True
                    raise _given_up(error, shown, waited_s) from error
            else:
                self.is_spent = False
                return done
            if is_first:
                self._announce(f"the database {shown} is busy: another program writes")
            is_first = False
            pause(_PAUSE_S)

    def with_room(self, attempt: Callable[[], _T]) -> _T:
        """What the attempt returns, made again while the disk is full.

        Nobody waits who can't say so: a person waits for that command's answer.

        Args:
            attempt: stores all or nothing.

        Raises:
            NoRoom: there was none for all the time.
        """
        until = time.monotonic() + (0.0 if self.is_spent or self.say is None else self.wait_s)
        is_first = True
        while True:
            try:
                done = attempt()
            except NoRoom as fault:
                self.is_spent = True  # until it succeeds
                if time.monotonic() >= until:
                    raise
                if is_first:
                    self._announce(fault.message)
            else:
                return done
            is_first = False
            with Interrupts() as interrupts, interrupts.let_through():
                time.sleep(_ROOM_PAUSE_S)

    def _announce(self, trouble: str) -> None:
        self.is_spent = True  # until it succeeds
        if self.say:
            self.say(f"note: {trouble}; waiting for it, at most {self.wait_s:.0f} s")


def _is_busy(error: OperationalError) -> bool:
    code = getattr(error.orig, "sqlite_errorcode", None)
    # The low byte is the kind of error, the others its circumstances.
    return code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _given_up(error: OperationalError, shown: str, waited_s: float) -> DatabaseFault:
    fault = explain_fault(str(error.orig), shown, transient=True)
    return DatabaseFault(
        f"{fault.message}; waited for {waited_s:.0f} s",
        hint="end the program that holds it, a backup or an open sqlite3 shell perhaps",
        transient=True,
    )
