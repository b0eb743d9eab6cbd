"""Stores in databases of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from commtune.db.connection.engine import open_database
from commtune.db.storage.store import Store


@contextmanager
def opened_store(db: str | Path) -> Iterator[Store]:
    """The store in a database, which is a file or a URL, and made where there is none."""
    with open_database(str(db)) as database:
        yield Store(database)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of a database of a test's own."""
    return f"sqlite:///{tmp_path}/commtune.db"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """The store in that database."""
    with opened_store(url) as opened:
        yield opened
