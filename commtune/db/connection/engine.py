"""Opens databases with SQLAlchemy: creates tables, checks the schema, and explains faults."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection, Engine, create_engine, event, exc, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.pool import NullPool

from commtune import filesystems
from commtune.db.connection import location
from commtune.db.connection.busy_retry import BusyRetry
from commtune.db.connection.postgresql import TIMEOUTS
from commtune.db.connection.read_only import connect_for_reading, read_text, require_private
from commtune.db.connection.schema import find_revision, make_schema, require_schema
from commtune.db.damage import ON_DAMAGE, Damage, refuse_damage
from commtune.errors import DatabaseFault, UserError, install_command
from commtune.interrupts import Interrupts
from commtune.private_files import make_private_file, make_private_folder

_WRITES = "commtune_writes"
#: The key of PostgreSQL's advisory lock under which tables are created or migrated; arbitrary.
_SCHEMA_LOCK = 0x636F6D6D


@dataclass(frozen=True)
class Database:
    """An open database with the schema of this version.

    Attributes:
        url: the URL without its password.
        warnings: messages for the user about the file system of the database.
        file: device and inode of an SQLite file when it was opened; ``None`` for a server.
        read_only: whether it was opened by ``open_readable``.
    """

    engine: Engine
    url: str
    warnings: tuple[str, ...] = ()
    file: tuple[int, int] | None = None
    read_only: bool = False

    def report(self, damage: Damage) -> None:
        """Reports a damaged row, which a reader leaves out.

        Raises:
            DamagedRows: the database is open for writing; a writer must not continue from a part
                of the rows.
        """
        (ON_DAMAGE.get() if self.read_only else refuse_damage)(damage)

    @property
    def whole_url(self) -> str:
        """The URL with its password, for subprocesses that run commtune."""
        return self.engine.url.render_as_string(hide_password=False)

    @contextmanager
    def write(self, patience: BusyRetry | None = None) -> Iterator[Connection]:
        """Opens a transaction that writes, which is committed at the end, or rolled back.

        Ctrl-C is deferred to its end, but ends a wait for another program at once.

        Args:
            patience: the retries while another program holds the database; by default as for
                ``open_database``.

        Raises:
            DatabaseFault: the database can't be reached or written.
        """
        with _faults(self.whole_url), Interrupts(), ExitStack() as stack:

            def begin() -> Connection:
                self._check_file()
                return stack.enter_context(_begin(self.engine, writes=True))

            patience = patience or BusyRetry(location.wait_s(location.ATTEMPT_S))
            yield patience.with_busy(begin, self.url)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Opens a transaction that only reads.

        Raises:
            DatabaseFault: the database can't be reached or read.
        """
        with (
            _faults(self.whole_url),
            Interrupts(),
            _begin(self.engine, writes=False) as connection,
        ):
            yield connection

    def _check_file(self) -> None:
        """Refuses a file that was deleted: SQLite would write to it, and the data be lost."""
        if self.file is not None and _file_of(self.engine.url) != self.file:
            raise DatabaseFault(
                f"the database {self.url} is gone: its file was deleted or replaced",
                hint="the record files of all runs are kept; put the database back, or name "
                "another one with --db, and start again",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes all connections; SQLite then moves its write-ahead log into the file."""
        self.engine.dispose()


# Compact, and ASCII only.
_dump_json = partial(json.dumps, separators=(",", ":"), allow_nan=False)


def _file_of(url: URL) -> tuple[int, int] | None:
    """Returns device and inode of an SQLite database's file; ``None`` where there is no file."""
    if url.get_backend_name() != "sqlite":
        return None
    try:
        status = Path(str(url.database)).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def open_database(db: str | None, patience: BusyRetry | None = None) -> Database:
    """Opens a database for reading and writing; an empty or missing one gets its tables first.

    Args:
        db: as for ``database_url``.
        patience: the retries while another program holds the database; without them it is tried
            for ten seconds, or those in COMMTUNE_DB_WAIT.

    Raises:
        UserError: the URL is not understood.
        DatabaseFault: it can't be reached or written, is not commtune's, or has another schema.
    """
    url = location.database_url(db)
    shown = location.shown_url(url)
    with _faults(url), ExitStack() as failing:
        engine = _engine(url)
        failing.callback(engine.dispose)

        def prepare() -> list[str]:
            warnings = _settle_journal(engine)
            if not _is_ready(engine, shown):
                _migrate(url, only_empty=True)
            return warnings

        # SQLite itself does not wait for another program to change a file's journal mode.
        patience = patience or BusyRetry(location.wait_s(location.ATTEMPT_S))
        warnings = patience.with_busy(prepare, shown)
        failing.pop_all()
    return Database(engine, shown, tuple(warnings), _file_of(engine.url))


def open_readable(db: str | None) -> Database:
    """Opens a database for reading only; it is neither created nor upgraded.

    Args:
        db: as for ``database_url``.

    Raises:
        NoAnswer: there is none yet, or it is empty.
        DatabaseFault: it can't be read, or has another schema.
    """
    url = location.database_url(db)
    path = location.sqlite_path(url)
    with _faults(url), ExitStack() as failing:
        engine = _engine(url) if path is None else _reading_engine(path)
        failing.callback(engine.dispose)
        with _begin(engine, writes=False) as connection:
            require_schema(connection, location.shown_url(url))
        failing.pop_all()
    return Database(engine, location.shown_url(url), read_only=True)


def _reading_engine(path: Path) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        creator=lambda: connect_for_reading(path),
        poolclass=NullPool,
    )
    _set_up_sqlite(engine, careful=False, foreign_keys=False)
    return engine


def migrate_database(url: str) -> None:
    """Migrates a database to the schema of this version; its rows are kept.

    Raises:
        DatabaseFault: it can't be reached or written, or is not commtune's.
    """
    patience = BusyRetry(location.wait_s(location.ATTEMPT_S))
    with _faults(url):
        patience.with_busy(partial(_migrate, url, only_empty=False), location.shown_url(url))


@contextmanager
def open_reader(url: str, pooled: Engine | None = None) -> Iterator[location.Rows]:
    """Opens a server's database for queries in one transaction; it is not created or upgraded.

    Args:
        pooled: from ``pool_connections``; ``None`` for a connection of its own.

    Raises:
        NoAnswer: it is empty.
        DatabaseFault: it can't be read, or has another schema.
    """
    with _faults(url):
        engine = pooled or _engine(url, lone=True)
        engine = engine.execution_options(isolation_level="REPEATABLE READ")
        # Unlike Database.read, Ctrl-C ends it at once: a query may wait for a long time.
        with _begin(engine, writes=False) as connection:
            require_schema(connection, location.shown_url(url))
            yield _as_rows(connection)


def pool_connections(url: str) -> Engine:
    """Returns an engine for ``open_reader``, whose connections all threads share."""
    with _faults(url):
        return _engine(url)


def _as_rows(connection: Connection) -> location.Rows:
    return lambda statement, given: [
        dict(row) for row in connection.execute(text(statement), given).mappings()
    ]


def _engine(url: str, *, lone: bool = False) -> Engine:
    """Returns an engine for reading and writing.

    Args:
        lone: for a single connection, without a pool and without SQLite's foreign key checks.
    """
    path = location.sqlite_path(url)
    pool: dict[str, Any] = {"poolclass": NullPool} if lone else {}
    if path is None:
        return _server_engine(url, pool)
    _make_folder(path.parent, url)
    require_private(path)
    with suppress(OSError):  # SQLite reports the error when it opens the file
        make_private_file(path)
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        json_serializer=_dump_json,
        connect_args={"timeout": location.busy_s()},
        **pool,
    )
    # Migrations rebuild tables, during which foreign keys of others refer to a missing table.
    on_network = bool(filesystems.network_type(path.parent))
    _set_up_sqlite(engine, careful=on_network, foreign_keys=not lone)
    return engine


def _server_engine(url: str, pool: dict[str, Any]) -> Engine:
    location.refuse_service(url)
    try:
        parsed = make_url(url)
    except ValueError as error:  # the port is not a number
        raise exc.ArgumentError(str(error)) from error
    is_ours = parsed.get_backend_name() == "postgresql"
    arguments = {k: v for k, v in TIMEOUTS.items() if is_ours and k not in parsed.query}
    # No column has the type hstore, so the driver needn't ask the server for its identifier.
    options = {**pool, "use_native_hstore": False} if is_ours else pool
    return create_engine(
        parsed, json_serializer=_dump_json, connect_args=arguments, pool_pre_ping=True, **options
    )


def _make_folder(folder: Path, url: str) -> None:
    try:
        make_private_folder(folder)
    except OSError as error:
        raise DatabaseFault(
            f"the database {location.shown_url(url)} can't be opened: "
            f"the folder {folder} can't be created ({error.strerror})",
            hint=location.ELSEWHERE,
        ) from error


def _set_up_sqlite(engine: Engine, *, careful: bool, foreign_keys: bool) -> None:
    synchronous = "FULL" if careful else "NORMAL"

    def on_connect(driver: sqlite3.Connection, _record: object) -> None:
        # Turns off the driver's implicit transactions; on_begin starts them.
        driver.isolation_level = None
        driver.text_factory = read_text
        driver.execute(f"PRAGMA foreign_keys={'ON' if foreign_keys else 'OFF'}")
        driver.execute(f"PRAGMA synchronous={synchronous}")

    def on_begin(connection: Connection) -> None:
        # A writer takes all locks at once: later, its snapshot could be stale, or readers could
        # block its commit. With a write-ahead log, this doesn't block readers.
        kind = "EXCLUSIVE" if connection.get_execution_options().get(_WRITES) else "DEFERRED"
        connection.exec_driver_sql(f"BEGIN {kind}")

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", on_begin)


def _settle_journal(engine: Engine) -> list[str]:
    """Sets SQLite's journal mode, which is stored in the file; returns warnings."""
    if engine.dialect.name != "sqlite":
        return []
    path = Path(str(engine.url.database))
    network = filesystems.network_type(path.parent)
    # SQLite maps the index of the write-ahead log by memory pages. With blocks smaller than a page
    # and a full disk, a part of a page has no block, and access to it is a SIGBUS.
    small = filesystems.has_small_blocks(path.parent)
    wanted = "delete" if network or small else "wal"
    with closing(engine.raw_connection()) as connection:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA journal_mode={wanted}")
        got = "".join(str(value) for value in cursor.fetchone() or ())
    if network:
        return [
            f"the database {path} is on {network}, a network file system: it is used without "
            "write-ahead log, and from one machine at a time; a local disk (--db, COMMTUNE_DB) or "
            "PostgreSQL is safer"
        ]
    if got != wanted:
        return [f"the database {path} has journal mode {got}: readers wait for writers"]
    return []


@contextmanager
def _begin(engine: Engine, *, writes: bool) -> Iterator[Connection]:
    with engine.connect() as connection:
        connection.execution_options(**{_WRITES: writes})
        with connection.begin():
            yield connection


def _is_ready(engine: Engine, shown: str) -> bool:
    """Whether the tables exist; refuses other schemas, and databases that can't be written."""
    with _begin(engine, writes=True) as connection:
        revision = find_revision(connection, shown)
    if revision:
        location.check_revision(revision, (), shown)
    return bool(revision)


def _migrate(url: str, *, only_empty: bool) -> None:
    engine = _engine(url, lone=True)
    with _begin(engine, writes=True) as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _SCHEMA_LOCK})
        revision = find_revision(connection, location.shown_url(url))
        # Checked again under the lock: two processes may open an empty database at once.
        if revision and (only_empty or not location.can_upgrade(revision)):
            location.check_revision(revision, (), location.shown_url(url))
        else:
            make_schema(connection, is_new=not revision)


@contextmanager
def _faults(url: str) -> Iterator[None]:
    """Turns errors of drivers into DatabaseFault, whose messages never show the password."""
    shown = location.shown_url(url)
    try:
        yield
    except (exc.DBAPIError, sqlite3.Error) as error:
        said = str(error.orig) if isinstance(error, exc.DBAPIError) else str(error)
        lost = isinstance(error, exc.OperationalError | exc.InterfaceError)
        said = location.hide_secrets(said, url)
        raise location.explain_fault(said, shown, transient=lost) from error
    except (exc.ArgumentError, exc.NoSuchModuleError, ModuleNotFoundError) as error:
        if isinstance(error, ModuleNotFoundError) and url.startswith("postgresql"):
            raise DatabaseFault(
                f"the database {shown} needs the Python package {error.name}",
                hint=install_command(".[postgresql]"),
            ) from error
        raise UserError(
            f"the database URL {shown} is not understood",
            hint="sqlite:////path/commtune.db or postgresql://user@host/name",
        ) from error
    except exc.SQLAlchemyError as error:
        raise location.explain_fault(location.hide_secrets(str(error), url), shown) from error
