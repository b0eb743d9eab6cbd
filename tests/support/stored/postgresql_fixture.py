"""One PostgreSQL server for all tests of a session that want one."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from components import require_component

from commtune.db.connection.engine import Database, open_database
from commtune.db.tables import METADATA

_NUMBERS = itertools.count()


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


@pytest.fixture(scope="session")
def postgresql_socket() -> Iterator[Path]:
    """The folder with the socket of a PostgreSQL server that lives as long as the session."""
    programs = _postgresql_programs()
    require_component("PostgreSQL's server programs", programs is not None)
    assert programs is not None
    prefix, uid = _as_user()
    # Not pytest's folder: the name of a socket must be short, and the server's user may enter it.
    folder = Path(tempfile.mkdtemp(prefix="ctpg"))
    os.chown(folder, uid, -1)
    data = folder / "data"
    settings = f"-k {folder} -c listen_addresses= -c max_connections=40 -c fsync=off"

    def call(program: str, *arguments: str) -> None:
        done = subprocess.run(
            [*prefix, str(programs / program), "-D", str(data), *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, done.stdout

    try:
        call("initdb", "-U", "commtune", "-A", "trust", "-E", "UTF8", "--no-sync")
        call("pg_ctl", "-w", "-l", str(folder / "log"), "-o", settings, "start")
        yield folder
        call("pg_ctl", "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _create_postgresql(socket: Path) -> str:
    """Creates an empty database on the server; returns its URL."""
    name = f"test{next(_NUMBERS)}"
    administration = f"host={socket} user=commtune dbname=postgres"
    with psycopg.connect(administration, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return f"postgresql+psycopg://commtune@/{name}?host={socket}"


@pytest.fixture
def new_postgresql_url(postgresql_socket: Path) -> str:
    """The URL of an empty database on the server."""
    return _create_postgresql(postgresql_socket)


@pytest.fixture(scope="session")
def migrated_postgresql(postgresql_socket: Path) -> Iterator[Database]:
    """A database with our schema for all tests that leave the schema alone."""
    database = open_database(_create_postgresql(postgresql_socket))
    yield database
    database.close()


@pytest.fixture
def postgresql_url(migrated_postgresql: Database) -> str:
    """The URL of a database on the server with our schema and nothing in it."""
    with migrated_postgresql.write() as connection:
        for table in reversed(METADATA.sorted_tables):
            connection.execute(table.delete())
    return migrated_postgresql.engine.url.render_as_string()
