"""The database's URL, the check of its schema revision, and explanations of drivers' errors.

Imports only the standard library, because the start of ``commtune best`` waits for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from commtune.documents.quantities import decimal_number
from commtune.errors import DatabaseFault, NoAnswer, UserError
from commtune.private_files import require_own

#: Runs a statement with named parameters and returns its rows by column name.
Rows = Callable[[str, Mapping[str, Any]], list[dict[str, Any]]]

#: The schema that this version of commtune reads and writes: the newest migration's revision.
SCHEMA = "r0011"
#: The oldest revision that can be upgraded; those before it were never in a release.
_FIRST_SCHEMA = "r0008"

#: The table with the schema revision. Alembic's default name could belong to another program.
VERSION_TABLE = "commtune_schema"

#: The variable with the seconds that a campaign waits for a database that it can't use now.
_WAIT_VARIABLE = "COMMTUNE_DB_WAIT"
_WAIT_S = 300.0
#: ``usual_s`` for a server that is unreachable: it will be restarted, unlike a held lock.
UNREACHABLE_WAIT_S = 3600.0
#: How long a single attempt waits for a locked database, and one to open it, seconds.
ATTEMPT_S = 10.0

ELSEWHERE = "name another database with --db or COMMTUNE_DB"
_IN_FILE = "it must hold the database's URL, as COMMTUNE_DB would"

#: The most characters read from a file with a URL: a device could be endless.
_MOST_CHARACTERS = 4096

_REVISION = re.compile(r"r\d{4}")
#: URLs that lack a slash, such as ``postgresql:/user@host``.
_NEARLY_URL = re.compile(r"\s*(postgres(?:ql)?|sqlite|[a-z][a-z0-9+]*(?=:/))(?:\+\w+)?:/?", re.I)
#: A libpq connection string of keywords: ``host=db password=x dbname=y``.
_KEYWORDS = re.compile(r"\s*(?:host|hostaddr|port|dbname|user|password|passfile|service)\s*=")
#: A question mark that no name=value follows is part of a file's name.
_QUERY = re.compile(r"\?\w+=")
_TOKEN_IN_ADDRESS = re.compile(r"(https?|unix)://[^/]*@")
#: The name of a setting in a URL, and the names whose values nobody may see.
_SETTING = re.compile(r"[?&;]([^=?&;]+)=")
_SECRETS = ("options", "password", "sslpassword", "passwd", "pwd", "token")


def database_url(option: str | None) -> str:
    """Returns the SQLAlchemy URL: from the option, else COMMTUNE_DB, else the user's own file.

    COMMTUNE_DB_FILE may name a file that holds the value of COMMTUNE_DB. A text without ``://`` is
    the path of an SQLite file. ``postgresql://`` means the psycopg 3 driver.

    Raises:
        UserError: the text is malformed; or that file can't be read, is empty, or others can
            write it.
    """
    chosen = option or os.environ.get("COMMTUNE_DB") or _url_in_file()
    if not chosen:
        # Imported here, to start faster where a database is named.
        import platformdirs

        chosen = str(Path(platformdirs.user_data_dir("commtune")) / "commtune.db")
    if not chosen.isprintable():  # also refuses bytes that are not UTF-8
        raise UserError(f"the database's name {chosen[:60]!r} is no plain text", hint=ELSEWHERE)
    if chosen.startswith("unix:") and "://" not in chosen:
        return f"unix://{quote(str(_absolute(chosen.removeprefix('unix:'))), safe='/@')}"
    if "://" not in chosen:
        if _KEYWORDS.match(chosen):
            raise UserError(
                "the database's name is a list of keywords, which only libpq reads",
                hint="write postgresql://USER@HOST:PORT/NAME, with the password in ~/.pgpass",
            )
        if scheme := _NEARLY_URL.match(chosen):
            wanted = scheme[1].lower()
            rest = f"/{chosen.partition(':')[2]}" if wanted == "sqlite" else "..."
            raise UserError(
                f"the database URL begins with {scheme[0].lstrip()} and not with {wanted}://",
                hint=f"write {wanted}://{rest}, or for a file: ./{scheme[0]}...",
            )
        path = _absolute(chosen)
        if _QUERY.search(str(path)):
            raise UserError(
                f"the database's name {path} has '?' and a word with '=', as only URLs do",
                hint="give the file another name, or write sqlite:////path/commtune.db?...",
            )
        return f"sqlite:///{path}"
    driver, _, rest = chosen.partition("://")
    driver = driver.lower()
    if driver in ("postgres", "postgresql"):
        driver = "postgresql+psycopg"
    return f"{driver}://{rest}"


def _absolute(written: str) -> Path:
    # Imported here, to start faster where a URL is named.
    from commtune.documents.files import resolve_path

    return resolve_path(written, Path.cwd())


def _url_in_file() -> str:
    if not (file := os.environ.get("COMMTUNE_DB_FILE")):
        return ""
    require_own(f"COMMTUNE_DB_FILE={file} is not read", Path(file), fault=UserError)
    try:
        with Path(file).open(encoding="utf-8") as opened:
            found = opened.read(_MOST_CHARACTERS).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not text"
        raise UserError(f"COMMTUNE_DB_FILE={file} can't be read: {why}", hint=_IN_FILE) from error
    if not found:
        raise UserError(f"COMMTUNE_DB_FILE={file} is empty", hint=_IN_FILE)
    return found


def is_service(url: str) -> bool:
    """Whether a URL is that of a ``commtune serve``, and not of a database."""
    return url.startswith(("https://", "http://", "unix:"))


def refuse_token(url: str) -> None:
    """Refuses a service's address with a token, as other users see it in the process list.

    Raises:
        UserError: the URL has a token or a user.
    """
    if _TOKEN_IN_ADDRESS.match(url):
        raise UserError(
            "the service's address has a token or a user in it, which other users of this machine "
            "see in the list of processes",
            hint="change that token; write the new one to a file that only you can read, and: "
            "export COMMTUNE_TOKEN_FILE=FILE",
        )


def refuse_service(url: str) -> None:
    """Refuses a service where a database is needed.

    Raises:
        UserError: the URL is that of a service.
    """
    if is_service(url):
        raise UserError(
            f"{shown_url(url)} is a service, and this needs the database itself",
            hint="a service answers best, results, export and ct.open_store(); for all else: "
            "--db with a file or an SQLAlchemy URL",
        )


def wait_s(usual_s: float = _WAIT_S) -> float:
    """Returns how long a campaign waits for a locked database or a full disk, seconds.

    Args:
        usual_s: without COMMTUNE_DB_WAIT.

    Raises:
        UserError: COMMTUNE_DB_WAIT is no number from 0 up.
    """
    if not (written := os.environ.get(_WAIT_VARIABLE)):
        return usual_s
    seconds = decimal_number(written)
    if seconds is None or seconds < 0:
        raise UserError(
            f"{_WAIT_VARIABLE}={written} is not a number of seconds",
            hint=f"a number from 0 up; without it, {usual_s:.0f}",
        )
    return seconds


def busy_s() -> float:
    """Returns how long a single attempt waits for a locked database, seconds.

    Raises:
        UserError: as for ``wait_s``.
    """
    return min(ATTEMPT_S, wait_s())


def sqlite_path(url: str) -> Path | None:
    """Returns the file of an SQLite URL; ``None`` for other databases.

    Raises:
        UserError: the URL names no file.
    """
    scheme, _, rest = url.partition("://")
    if scheme.partition("+")[0] != "sqlite":
        return None
    name = _QUERY.split(rest, maxsplit=1)[0].removeprefix("/")
    if name in ("", ":memory:") or not rest.startswith("/"):
        raise UserError(
            f"the database URL {shown_url(url)} names no file",
            hint="write sqlite:////absolute/path/commtune.db, or just the path",
        )
    # The file that is checked must be the one that is opened: a symbolic link could change.
    return Path(os.path.realpath(name))


def shown_url(url: str) -> str:
    """Returns the URL for messages, with every password replaced by ``***``."""
    # Up to the last @: a password that is not percent-encoded may contain one.
    without = re.sub(r"(://[^:/@]*):.*@", r"\1:***@", url)
    return "***".join(_split_at_secrets(without)[::2])


def _split_at_secrets(url: str) -> list[str]:
    """Returns the parts of a URL; each second one is the value of a setting that is secret."""
    parts, at = [], 0
    for found in _SETTING.finditer(url):
        begin = found.end()
        # Drivers decode the names, too.
        if begin >= at and unquote(found[1]).lower() in _SECRETS:
            end = begin + len(url[begin:].partition("&")[0])
            parts += [url[at:begin], url[begin:end]]
            at = end
    return [*parts, url[at:]]


def hide_secrets(said: str, url: str) -> str:
    """Returns a driver's message, which may repeat parts of the URL, without its passwords."""
    values = re.findall(r"://[^:/@]*:(.*)@", url) + _split_at_secrets(url)[1::2]
    for value in map(unquote, values):
        # A server may repeat only the value of a setting in ``options``.
        parts = (word.partition("=")[2] for word in value.split())
        for secret in (value, *(part for part in parts if len(part) > 3)):
            said = said.replace(secret, "***") if secret else said
    return said


class OtherSchema(DatabaseFault):
    """The database is intact, but has the schema of an older or newer version."""


class NoRoom(DatabaseFault):
    """The disk is full or fails, or a quota was reached; the transaction was rolled back."""


class Away(DatabaseFault):
    """The server can't be reached; the transaction may or may not have been committed."""


def can_upgrade(revision: str) -> bool:
    """Whether there are migrations from a revision to that of this version."""
    return _FIRST_SCHEMA <= revision < SCHEMA


def check_revision(revision: object, tables: Collection[str], shown: str) -> None:
    """Refuses a database that this version can't read; revisions are ordered by their number.

    Args:
        revision: the stored revision; empty where there is none.
        tables: names of the tables in the database.

    Raises:
        NoAnswer: the database is empty.
        DatabaseFault: it is not commtune's, or its revision is older, newer, or unknown.
    """
    if revision == SCHEMA:
        return
    if not revision and not tables:
        raise NoAnswer(f"the database {shown} is empty", hint="commtune tune runs a campaign")
    if not revision:
        raise DatabaseFault(f"the database {shown} is not commtune's", hint=ELSEWHERE)
    if not isinstance(revision, str) or not _REVISION.fullmatch(revision):
        raise DatabaseFault(
            f"the database {shown} has the unknown schema {revision!r}",
            hint="name another database with --db or COMMTUNE_DB; if it is the right one: "
            "commtune db repair",
        )
    if revision < _FIRST_SCHEMA:
        raise OtherSchema(
            f"the database {shown} has the schema {revision} of a commtune before the first "
            f"release, which can't be upgraded; this commtune needs {SCHEMA}",
            hint="name a new one with --db or COMMTUNE_DB, or move this one away; only the "
            "commtune that made it can read it",
        )
    if revision < SCHEMA:
        raise OtherSchema(
            f"the database {shown} has the older schema {revision}; this commtune needs {SCHEMA}",
            hint="commtune db upgrade",
        )
    raise OtherSchema(
        f"the database {shown} has the newer schema {revision}; this commtune knows {SCHEMA}",
        hint="update commtune: pip install --upgrade commtune",
    )


@dataclass(frozen=True)
class _Meaning:
    """The explanation of a driver's message in which the pattern ``needle`` is found.

    Messages are matched by their text, so that errors read the same through sqlite3 and through
    SQLAlchemy. ``transient`` says whether the same call may succeed later.
    """

    needle: str
    words: str
    hint: str
    transient: bool = False
    fault: type[DatabaseFault] = DatabaseFault


_DISK = "check the disk, your quota, and the limit on the size of files (ulimit -f)"
_SERVER = "check that the server runs, and the host, port and user in the URL"
_NO_SPACE = "disk is full|no space left|could not extend file"

_MEANINGS = (
    _Meaning("unable to open database file", "can't be opened", "check the path and your rights"),
    _Meaning("readonly database|read-only transaction", "is read-only for you", ELSEWHERE),
    _Meaning("file is not a database", "is not an SQLite database", ELSEWHERE),
    _Meaning("malformed", "is damaged", "commtune db repair keeps what can be read"),
    _Meaning(_NO_SPACE, "can't grow: the disk is full", "free some space", True, NoRoom),
    # SQLite reports an exceeded quota by this message, too.
    _Meaning("disk i/o error", "can't be read or written: I/O error", _DISK, True, NoRoom),
    _Meaning("database is locked", "is busy: another program writes", "try again later", True),
    _Meaning("lock timeout", "is busy: another program writes", "try again later", True),
    _Meaning("no such table", "has tables missing", ELSEWHERE),
    _Meaning("password authentication failed", "refuses user or password", _SERVER),
    _Meaning("no password supplied", "requires a password", "put it in ~/.pgpass, or in the URL"),
    _Meaning("permission denied", "denies you permission for this", "ask its administrator"),
    _Meaning("does not exist", "lacks what was asked for", "createdb NAME, or correct the URL"),
    _Meaning("connection|server closed|terminating", "can't be reached", _SERVER, True, Away),
)


def explain_fault(text: str, shown: str, *, transient: bool = False) -> DatabaseFault:
    """Returns the fault that explains a driver's message.

    Args:
        text: the driver's message; its first line is kept.
        shown: the database's URL, without password.
        transient: whether to assume a transient fault if the message is unknown.
    """
    first = text.strip().partition("\n")[0].strip()
    for meaning in _MEANINGS:
        if re.search(meaning.needle, text, re.IGNORECASE):
            return meaning.fault(
                f"the database {shown} {meaning.words} ({first})",
                hint=meaning.hint,
                transient=meaning.transient,
            )
    kind = Away if transient and not shown.startswith("sqlite") else DatabaseFault
    return kind(f"the database {shown} failed: {first}", transient=transient)
