"""Databases for the tests: SQLite files, and those of the PostgreSQL server."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from stores import opened_store

from commtune.db.connection.engine import Database, open_database
from commtune.db.storage.store import Store


@pytest.fixture
def new_sqlite_url(tmp_path: Path) -> str:
    """The URL of an SQLite file that is not there yet, nor its folder."""
    return f"sqlite:///{tmp_path}/new folder/commtune.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def new_url(request: pytest.FixtureRequest) -> str:
    """The URL of a database without anything; once for each kind."""
    return str(request.getfixturevalue(f"new_{request.param}_url"))


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with our schema, to be copied: quicker than to make it again."""
    path = tmp_path_factory.mktemp("migrated") / "commtune.db"
    open_database(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def sqlite_url(tmp_path: Path, migrated_sqlite: Path) -> str:
    """The URL of an SQLite file with our schema."""
    path = tmp_path / "commtune.db"
    shutil.copy(migrated_sqlite, path)
    return f"sqlite:///{path}"


@pytest.fixture
def own_url(new_url: str) -> str:
    """The URL of a database with our schema, for a test that spoils the schema."""
    open_database(new_url).close()
    return new_url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """The URL of a database with our schema and nothing in it; once for each kind."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def database(store: Store) -> Database:
    """The database of the store."""
    return store.database


@pytest.fixture
def sqlite_store(sqlite_url: str) -> Iterator[Store]:
    """A store in an SQLite file."""
    with opened_store(sqlite_url) as opened:
        yield opened


@pytest.fixture
def as_nobody() -> Iterator[Path]:
    """A folder with an empty ``commtune.db``, for a test without the rights of root."""
    folder = Path(tempfile.mkdtemp(prefix="ctro"))
    user = os.geteuid()
    # While the migrations can be read: they may be in a folder of root's.
    open_database(f"sqlite:///{folder}/commtune.db").close()
    try:
        if user == 0:
            for made in (folder, *folder.iterdir()):
                os.chown(made, 65534, 65534)
            os.seteuid(65534)
        yield folder
    finally:
        os.seteuid(user)
        folder.chmod(0o700)
        shutil.rmtree(folder)
