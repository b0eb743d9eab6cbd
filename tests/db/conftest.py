"""Databases for the tests: SQLite files, and a PostgreSQL server of our own."""

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

from commtune.db.engine import Database, open_database
from commtune.db.store import Store

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
    settings = f"-k {folder} -c listen_addresses= -c fsync=off -c max_connections=40"

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


@pytest.fixture
def postgresql_url(postgresql_socket: Path) -> str:
    """The URL of a new, empty database on the server."""
    name = f"test{next(_NUMBERS)}"
    administration = f"host={postgresql_socket} user=commtune dbname=postgres"
    with psycopg.connect(administration, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return f"postgresql+psycopg://commtune@/{name}?host={postgresql_socket}"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database that is empty, or not there yet; once for each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/new folder/commtune.db"
    return str(request.getfixturevalue("postgresql_url"))


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    """An open database."""
    opened = open_database(url)
    yield opened
    opened.close()


@pytest.fixture
def store(database: Database) -> Store:
    """A store in an empty database."""
    return Store(database)
