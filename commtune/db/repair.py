"""Backs up a database, and repairs a damaged one by a copy of its intact campaigns."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from commtune.db.connection import location
from commtune.db.connection.engine import open_database, open_readable
from commtune.db.connection.read_only import connect_for_reading, require_private
from commtune.db.connection.reader import open_for_reading
from commtune.db.damage import Damage
from commtune.db.inspection import campaigns_with, find_damage
from commtune.db.lock_owner import living_holders
from commtune.db.storage.campaigns import delete_rows
from commtune.db.tables import CONFIGURED, METADATA, SHARED, rows_of_campaign
from commtune.documents.files import writing_file
from commtune.errors import CampaignLocked, DatabaseFault, UserError
from commtune.paths import exists
from commtune.private_files import FILES_BESIDE

#: Errors of SQLite that only the copy can have; of a limit on the size of files it says no more.
_OF_WRITING = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR_WRITE: errno.EIO,
    sqlite3.SQLITE_IOERR_FSYNC: errno.EIO,
}


@dataclass(frozen=True)
class Repair:
    """The result of a repair.

    Attributes:
        kept: names of the campaigns that are still in the database.
        set_apart: names of the campaigns that are only in the side file now.
        side_file: the old database.
    """

    kept: tuple[str, ...]
    set_apart: tuple[str, ...]
    damage: tuple[Damage, ...]
    side_file: Path


def back_up(url: str, target: Path) -> None:
    """Writes a consistent copy of an SQLite database, even while others write to it.

    Raises:
        UserError: the database is on a server, or the target exists or its path is wrong.
        NoAnswer: there is no database.
        DatabaseFault: it can't be read.
        EnvironmentFault: the target can't be written.
    """
    source = _sqlite_file(url, f"pg_dump --format=custom --file={target} {_for_libpq(url)}")
    if exists(target):
        raise UserError(f"{target} exists", hint="name another file, or move it away")
    try:
        with (
            closing(connect_for_reading(source)) as stored,
            writing_file(target),
            _new_file(target) as partial,
            closing(sqlite3.connect(partial)) as copy,
        ):
            try:
                stored.backup(copy)
                # Without a write-ahead log, the copy is a single file.
                copy.execute("PRAGMA journal_mode=delete")
            except sqlite3.OperationalError as error:
                if code := _OF_WRITING.get(error.sqlite_errorcode):
                    raise OSError(code, os.strerror(code)) from error
                raise
    except sqlite3.Error as error:
        raise location.explain_fault(str(error), str(source)) from error


def set_damaged_apart(url: str) -> Repair | None:
    """Replaces a database by a copy of its undamaged campaigns; the old file is kept beside it.

    Returns:
        ``None`` if nothing is damaged, and nothing was changed.

    Raises:
        UserError: the database is on a server.
        CampaignLocked: a controller works on a campaign.
        DatabaseFault: no campaign can be read, or others may have written it.
    """
    path = _sqlite_file(url, f"pg_dump {_for_libpq(url)}; then delete each campaign that "
                        "'commtune db check' names: commtune delete NAME")  # fmt: skip
    require_private(path)
    damage = _damage(url)
    if not damage:
        return None
    _require_idle(url)
    with _new_file(path.with_name(f"{path.name}.repaired"), keep=False) as new:
        names, lost = _copy_campaigns(path, new)
        while found := _damage(f"sqlite:///{new}"):
            damage += [one for one in found if one not in damage]
            if not (more := _drop_damaged(new, found)):
                raise DatabaseFault(f"the database {path} can't be repaired: {found[0]}")
            lost |= more
        kept = {number: name for number, name in names.items() if number not in lost}
        if not kept and all(one.table == "file" for one in damage):
            raise _nothing_readable(path)
        side = _free_name(path)
        _swap(path, new, side)
    return Repair(
        tuple(kept.values()),
        tuple(names[number] for number in sorted(lost)),
        tuple(damage),
        side,
    )


def _nothing_readable(path: Path) -> DatabaseFault:
    return DatabaseFault(
        f"no campaign of the database {path} can be read",
        hint="restore it from a copy; 'sqlite3 FILE .recover' may find more",
    )


def _sqlite_file(url: str, otherwise: str) -> Path:
    path = location.sqlite_path(url)
    if path is None:
        raise UserError(
            f"{location.shown_url(url)} is a server's database", hint=f"type: {otherwise}"
        )
    return path


def _for_libpq(url: str) -> str:
    """Returns the URL for PostgreSQL's own programs, without password."""
    without = location.shown_url(url).replace(":***@", "@")
    return without.replace("postgresql+psycopg://", "postgresql://")


@contextmanager
def _new_file(target: Path, *, keep: bool = True) -> Iterator[Path]:
    """Creates a private temporary file beside the target, which is renamed to it at the end."""
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        yield partial
        if keep:
            # Unlike a rename, a link never replaces another file.
            os.link(partial, target)
    finally:
        for end in ("", *FILES_BESIDE):
            Path(f"{partial}{end}").unlink(missing_ok=True)


def _damage(url: str) -> list[Damage]:
    try:
        with open_readable(url) as database:
            return find_damage(database)
    except location.OtherSchema:
        raise
    except DatabaseFault as error:
        return [Damage("file", "", "", error.message)]


def _require_idle(url: str) -> None:
    try:
        with open_for_reading(url) as rows:
            # All damage was found before, and is reported with the repair.
            holders = living_holders(rows("SELECT * FROM locks", {}), tell=lambda _: None)
    except DatabaseFault:
        return  # a controller couldn't use it, either
    if holders:
        raise CampaignLocked(
            f"campaigns are in use: {'; '.join(holders.values())}",
            hint="wait until they end, or stop them",
        )


def _copy_campaigns(path: Path, new: Path) -> tuple[dict[int, str], set[int]]:
    """Copies the campaigns that are readable; returns the names of all, and numbers of others."""
    open_database(f"sqlite:///{new}").close()
    lost = set()
    # Two connections: in one that has both attached, SQLite 3.40 can write nothing more after it
    # met a damaged page.
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as old,
        closing(sqlite3.connect(new, isolation_level=None)) as copy,
    ):
        try:
            # A write lock to the end of the copy.
            old.execute("BEGIN IMMEDIATE")
            names = {
                row[0]: row[1].decode(errors="replace")
                for row in old.execute("SELECT id, CAST(name AS BLOB) FROM campaigns")
            }
        except sqlite3.Error as error:
            raise location.explain_fault(str(error), str(path)) from error
        except UnicodeDecodeError as error:  # SQLite's own message, which quotes a damaged schema
            raise _nothing_readable(path) from error
        copy.execute("PRAGMA foreign_keys=ON")
        copy.execute("BEGIN IMMEDIATE")
        for number in names:
            copy.execute("SAVEPOINT one")
            try:
                _copy(old, copy, number)
            except sqlite3.Error:
                copy.execute("ROLLBACK TO one")
                lost.add(number)
            copy.execute("RELEASE one")
        _keep_numbers(old, copy)
        copy.execute("COMMIT")
    return names, lost


def _copy(old: sqlite3.Connection, new: sqlite3.Connection, campaign: int) -> None:
    for table in METADATA.sorted_tables:
        if table.name == "locks":
            continue
        columns = ", ".join(f'"{column.name}"' for column in table.columns)
        values = ", ".join("?" for _ in table.columns)
        insert = "INSERT OR IGNORE" if table.name in SHARED else "INSERT"
        rows = old.execute(
            f"SELECT {columns} FROM {table.name} WHERE {rows_of_campaign(table.name)}",
            {"campaign": campaign},
        )
        new.executemany(f"{insert} INTO {table.name} ({columns}) VALUES ({values})", rows)


def _keep_numbers(old: sqlite3.Connection, new: sqlite3.Connection) -> None:
    """Keeps the counter of profile numbers, so that none is reused after a repair."""
    with suppress(sqlite3.Error):
        counted = old.execute("SELECT seq FROM sqlite_sequence WHERE name = 'profiles'").fetchall()
        new.execute("DELETE FROM sqlite_sequence WHERE name = 'profiles'")
        new.executemany("INSERT INTO sqlite_sequence (name, seq) VALUES ('profiles', ?)", counted)


def _drop_damaged(new: Path, damage: list[Damage]) -> set[int]:
    """Deletes damaged campaigns from the copy; returns their numbers."""
    with open_database(f"sqlite:///{new}") as database, database.write() as connection:
        lost: set[int] = set()
        for one in damage:
            lost |= campaigns_with(connection, one)
        driver = connection.exec_driver_sql
        for number in lost:
            delete_rows(connection, number)
        for table, column in (("systems", "system_id"), ("stacks", "stack_id")):
            driver(f"DELETE FROM {table} WHERE id NOT IN (SELECT {column} FROM campaigns)")
        used = " UNION ".join(f"SELECT configuration_id FROM {name}" for name in CONFIGURED)
        driver(f"DELETE FROM configurations WHERE id NOT IN ({used})")
    return lost


def _swap(path: Path, new: Path, side: Path) -> None:
    """Renames the old file to the side file, and the new one to the database."""
    try:
        with closing(sqlite3.connect(path)) as old:
            # This moves the content of the write-ahead log into the file.
            old.execute("PRAGMA journal_mode=delete")
    except sqlite3.DatabaseError:
        pass  # the file is too damaged; the log is renamed with it
    with closing(sqlite3.connect(new)) as copy:
        copy.execute("PRAGMA journal_mode=delete")
    for end in ("", *FILES_BESIDE):
        if exists(Path(f"{path}{end}")):
            Path(f"{path}{end}").rename(f"{side}{end}")
    new.rename(path)


def _free_name(path: Path) -> Path:
    number = 1
    while exists(side := path.with_name(f"{path.name}.damaged-{number}")):
        number += 1
    return side
