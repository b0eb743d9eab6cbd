"""Databases that are served, and ways to ask: in process, and a real server."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from service_client import Client, served_at
from stored_campaigns import Made
from stores import opened_store


@pytest.fixture(scope="session")
def made_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a campaign that found something."""
    file = tmp_path_factory.mktemp("served") / "made.db"
    with opened_store(file) as store:
        Made(trials=20, blocks=12).store(store)
    return file


@pytest.fixture
def db(made_file: Path, tmp_path: Path) -> str:
    """A copy of it."""
    return str(shutil.copy(made_file, tmp_path / "commtune.db"))


@pytest.fixture
def ask() -> Iterator[Callable[..., Client]]:
    """Makes clients of a database."""
    made: list[Client] = []

    def make(db: str, prefix: str = "", **settings: Any) -> Client:
        made.append(Client(db, prefix, **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def client(db: str, ask: Callable[..., Client]) -> Client:
    """A client of the campaign that found something."""
    return ask(db)


@pytest.fixture
def served(db: str) -> Iterator[str]:
    """A real server of it; its address, with the token."""
    with served_at(db) as address:
        yield address
