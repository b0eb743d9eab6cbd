"""A database of a test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from commtune.db.connection.engine import open_database
from commtune.db.storage.store import Store


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of a database of a test's own."""
    return f"sqlite:///{tmp_path}/commtune.db"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """The store in that database."""
    database = open_database(url)
    yield Store(database)
    database.close()
