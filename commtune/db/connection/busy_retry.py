"""Retries transactions while a database is locked, a disk is full, or a server is unreachable."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy.exc import OperationalError

from commtune.db.connection.location import Away, NoRoom, explain_fault
from commtune.errors import DatabaseFault
from commtune.interrupts import Interrupts

_T = TypeVar("_T")
#: The pause between two attempts at a locked database, seconds. SQLite itself waits in each.
_PAUSE_S = 0.1
#: The pause between two attempts on a full disk or an unreachable server, seconds.
_FAULT_PAUSE_S = 1.0


@dataclass
class BusyRetry:
    """A policy of retries while an SQLite file is locked, a disk is full, or a server is away.

    Attributes:
        wait_s: how long to retry, seconds; one attempt is always made.
        say: called with a message once in every wait.
        away_s: like ``wait_s``, for a server that can't be reached.
        waited_s: seconds spent in waits so far.
        is_spent: whether the last wait ended without success, by its limit or by Ctrl-C.
            Transactions during the exit of the program then wait no more.
    """

    wait_s: float = 0.0
    say: Callable[[str], None] | None = None
    away_s: float = 0.0
    waited_s: float = field(default=0.0, init=False)
    is_spent: bool = field(default=False, init=False)

    def with_busy(self, attempt: Callable[[], _T], shown: str) -> _T:
        """Returns the result of an attempt, which is retried while the database is locked.

        Args:
            shown: the database's URL, for messages.

        Raises:
            DatabaseFault: it was locked for all of ``wait_s``; transient.
        """
        began = time.monotonic()
        limit_s = 0.0 if self.is_spent else self.wait_s
        is_first = True
        while True:
            try:
                done = attempt()
            except (OperationalError, sqlite3.OperationalError) as error:
                waited_s = time.monotonic() - began
                if not _is_busy(error):
                    raise
                if waited_s >= limit_s:
                    self.is_spent = True
                    raise _given_up(error, shown, waited_s) from error
            else:
                self.is_spent = False
                if not is_first:
                    self.waited_s += time.monotonic() - began
                return done
            if is_first:
                self._announce(
                    f"the database {shown} is busy: another program writes", self.wait_s
                )
            is_first = False
            _pause(_PAUSE_S)

    def with_faults(self, attempt: Callable[[], _T]) -> _T:
        """Returns the result of an attempt, retried while the disk is full or the server away.

        Without ``say`` it doesn't wait: a person would wait for an answer without knowing why.

        Args:
            attempt: stores all or nothing. It must be idempotent, because a lost connection
                doesn't tell whether the transaction was committed.

        Raises:
            NoRoom: the disk was full, or failed, for all of ``wait_s``.
            Away: the server couldn't be reached for all of ``away_s``.
        """
        before_s, began = self.waited_s, time.monotonic()
        may_wait = not self.is_spent and self.say is not None
        fault: NoRoom | Away | None = None
        while True:
            try:
                done = attempt()
            except (NoRoom, Away) as again:
                limit_s = self.away_s if isinstance(again, Away) else self.wait_s
                self.is_spent = True  # until it succeeds
                if not may_wait or time.monotonic() - began >= limit_s:
                    raise
                if fault is None:
                    self._announce(f"{again.message}: {again.hint}", limit_s)
                fault = again
            else:
                if fault is not None:
                    self.is_spent = False
                    self._tell(
                        f"note: the database works again, after {self.waited_s - before_s:.0f} s"
                    )
                return done
            _pause(_FAULT_PAUSE_S)
            self.waited_s = before_s + time.monotonic() - began

    def _announce(self, trouble: str, limit_s: float) -> None:
        self.is_spent = True  # until it succeeds
        self._tell(f"note: {trouble}; waiting for it, at most {limit_s:.0f} s")

    def _tell(self, words: str) -> None:
        if self.say:
            self.say(words)


def _pause(seconds: float) -> None:
    """Sleeps; Ctrl-C ends it at once, also where the caller defers that."""
    with Interrupts() as interrupts, interrupts.let_through():
        time.sleep(seconds)


def _is_busy(error: OperationalError | sqlite3.OperationalError) -> bool:
    code = getattr(getattr(error, "orig", error), "sqlite_errorcode", None)
    # The low byte is the primary result code, the others make it an extended one.
    return code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _given_up(error: Exception, shown: str, waited_s: float) -> DatabaseFault:
    fault = explain_fault(str(getattr(error, "orig", error)), shown, transient=True)
    return DatabaseFault(
        f"{fault.message}; waited for {waited_s:.0f} s",
        hint="end the program that holds it, a backup or an open sqlite3 shell perhaps",
        transient=True,
    )
