"""What a database driver's words mean for a person.

Standard library only; drivers are known by their messages, so that both ways to the database
(sqlite3 alone, and SQLAlchemy) say the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from commtune.errors import DatabaseFault


@dataclass(frozen=True)
class _Meaning:
    """Attributes:
    needle: part of the driver's message, lower case.
    transient: whether the same call may succeed later with nothing changed by the user.
    """

    needle: str
    words: str
    hint: str
    transient: bool = False


_ELSEWHERE = "name another database with --db or COMMTUNE_DB"
_SERVER = "check that the server runs, and the host, port and user in the URL"

_MEANINGS = (
    _Meaning("unable to open database file", "can't be opened", "check the path and your rights"),
    _Meaning("readonly database", "is read-only for you", _ELSEWHERE),
    _Meaning("read-only transaction", "is read-only for you", _ELSEWHERE),
    _Meaning("file is not a database", "is a file, but no SQLite database", _ELSEWHERE),
    _Meaning("malformed", "is damaged", "restore it from a copy, or move it away"),
    _Meaning("disk is full", "can't grow: the disk is full", "free some space", True),
    _Meaning("no space left", "can't grow: the disk is full", "free some space", True),
    _Meaning("could not extend file", "can't grow: the disk is full", "free some space", True),
    _Meaning("disk i/o error", "can't be read or written: I/O error", "check the disk", True),
    _Meaning("database is locked", "is busy: another program writes", "try again later", True),
    _Meaning("lock timeout", "is busy: another program writes", "try again later", True),
    _Meaning("no such table", "has tables missing", _ELSEWHERE),
    _Meaning("password authentication failed", "refuses user or password", _SERVER),
    _Meaning("no password supplied", "wants a password", "put it in ~/.pgpass, or in the URL"),
    _Meaning("permission denied", "refuses you the right to do this", "ask who runs it"),
    _Meaning("does not exist", "lacks what was asked for", "createdb NAME, or correct the URL"),
    _Meaning("connection", "can't be reached", _SERVER, True),
    _Meaning("server closed", "can't be reached", _SERVER, True),
    _Meaning("terminating", "can't be reached", _SERVER, True),
)


def explain_fault(text: str, shown: str, *, transient: bool = False) -> DatabaseFault:
    """The fault that a driver's message stands for.

    Args:
        text: the driver's message; its first line is kept.
        shown: the database, without password.
        transient: what to assume where the message is not known.
    """
    first = text.strip().partition("\n")[0].strip()
    lowered = text.lower()
    for meaning in _MEANINGS:
        if meaning.needle in lowered:
            return DatabaseFault(
                f"the database {shown} {meaning.words} ({first})",
                hint=meaning.hint,
                transient=meaning.transient,
            )
    return DatabaseFault(f"the database {shown} failed: {first}", transient=transient)
