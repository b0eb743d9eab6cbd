"""One PostgreSQL server for all tests that want one, whichever worker of pytest runs them."""

from __future__ import annotations

import fcntl
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from components import require_component
from waiting import PATIENCE_S

from commtune.db.connection.engine import Database, open_database
from commtune.db.tables import METADATA

_NUMBERS = itertools.count()
_WAITS = ("-w", f"--timeout={PATIENCE_S:.0f}")


def _postgresql_programs() -> Path | None:
    """The folder with initdb and pg_ctl: on PATH, or where Debian keeps them."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


def _as_user() -> tuple[list[str], int]:
    """Words before a command, and the user it runs as: PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return [], os.getuid()
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    user = names.get("postgres") or names["nobody"]
    words = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    return words, user.pw_uid


class PostgresqlServer:
    """A server with its data and its socket in a folder, which need not exist yet."""

    def __init__(self, folder: Path | None = None) -> None:
        programs = _postgresql_programs()
        require_component("PostgreSQL's server programs", programs is not None)
        assert programs is not None
        self._programs = programs
        self._prefix, self._uid = _as_user()
        # Not pytest's folder: the name of a socket must be short, and the server's user may enter
        # it.
        self.socket = folder or Path(tempfile.mkdtemp(prefix="ctpg"))

    def create(self) -> None:
        """Makes its data, and starts it."""
        os.chown(self.socket, self._uid, -1)
        self._call("initdb", "-U", "commtune", "-A", "trust", "-E", "UTF8", "--no-sync")
        self.start()

    def start(self) -> None:
        """Starts it, also again, and waits until it answers."""
        settings = f"-k {self.socket} -c listen_addresses= -c max_connections=100 -c fsync=off"
        settings += " -c autovacuum=off"  # plans must not depend on when it comes by
        self._call("pg_ctl", *_WAITS, "-l", str(self.socket / "log"), "-o", settings, "start")

    def stop(self) -> None:
        """Ends it as a crash would; what was committed is there when it starts again."""
        self._call("pg_ctl", *_WAITS, "-m", "immediate", "stop")

    def _call(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [*self._prefix, str(self._programs / program), "-D", str(self._data), *arguments],
            cwd=self.socket,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, done.stdout

    @property
    def _data(self) -> Path:
        return self.socket / "data"

    def remove(self) -> None:
        """Ends it if it runs, and deletes its folder."""
        try:
            if (self._data / "postmaster.pid").exists():
                self.stop()
        finally:
            shutil.rmtree(self.socket, ignore_errors=True)


@pytest.fixture(scope="session")
def postgresql_socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder with the socket of a PostgreSQL server that lives as long as the test run."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # of all workers
    with (folder / "postgresql.users").open("a") as users:
        with _locked(folder / "postgresql.lock") as known:
            place = known.read_text()
            server = PostgresqlServer(Path(place) if place else None)
            if not place:
                server.create()
                known.write_text(str(server.socket))
            fcntl.flock(users, fcntl.LOCK_SH)
        yield server.socket
        fcntl.flock(users, fcntl.LOCK_UN)
        with _locked(folder / "postgresql.lock") as known:
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return  # another worker uses it, and ends it
            if known.read_text():
                known.write_text("")
                server.remove()


@contextmanager
def _locked(path: Path) -> Iterator[Path]:
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield path


@pytest.fixture
def own_postgresql() -> Iterator[PostgresqlServer]:
    """A server for a test that stops it."""
    server = PostgresqlServer()
    try:
        server.create()
        yield server
    finally:
        server.remove()


def create_postgresql(socket: Path) -> str:
    """Creates an empty database on the server; returns its URL."""
    name = f"test{os.getpid()}_{next(_NUMBERS)}"
    administration = f"host={socket} user=commtune dbname=postgres"
    with psycopg.connect(administration, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return f"postgresql+psycopg://commtune@/{name}?host={socket}"


@pytest.fixture
def new_postgresql_url(postgresql_socket: Path) -> str:
    """The URL of an empty database on the server."""
    return create_postgresql(postgresql_socket)


@pytest.fixture(scope="session")
def migrated_postgresql(postgresql_socket: Path) -> Iterator[Database]:
    """A database with our schema for all tests that leave the schema alone."""
    database = open_database(create_postgresql(postgresql_socket))
    yield database
    database.close()


@pytest.fixture
def postgresql_url(migrated_postgresql: Database) -> str:
    """The URL of a database on the server with our schema and nothing in it."""
    with migrated_postgresql.write() as connection:
        for table in reversed(METADATA.sorted_tables):
            connection.execute(table.delete())
    return migrated_postgresql.engine.url.render_as_string()
