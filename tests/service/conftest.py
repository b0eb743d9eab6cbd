"""Databases that are served, and ways to ask: in process, and a real server."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from service_client import TOKEN, Client
from stored_campaigns import Made

from commtune.db.connection.engine import open_database
from commtune.db.storage.store import Store
from commtune.service.server import Place, serve_database


@pytest.fixture(scope="session")
def made_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a campaign that found something."""
    file = tmp_path_factory.mktemp("served") / "made.db"
    database = open_database(f"sqlite:///{file}")
    Made(trials=20, blocks=12).store(Store(database))
    database.close()
    return file


@pytest.fixture
def db(made_file: Path, tmp_path: Path) -> str:
    """A copy of it."""
    return str(shutil.copy(made_file, tmp_path / "commtune.db"))


@pytest.fixture
def ask() -> Iterator[Callable[..., Client]]:
    """Makes clients of a database."""
    made: list[Client] = []

    def make(db: str, prefix: str = "") -> Client:
        made.append(Client(db, prefix))
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
    said: list[str] = []
    ready = threading.Event()

    def say(address: str) -> None:
        said.append(address)
        ready.set()

    stop: list[Callable[[], None]] = []
    thread = threading.Thread(
        target=serve_database,
        args=(db, Place(), TOKEN),
        kwargs={"say": say, "stopping": stop.append},
        daemon=True,
    )
    thread.start()
    assert ready.wait(20)
    yield said[0]
    stop[0]()
    thread.join(20)
    assert not thread.is_alive()
