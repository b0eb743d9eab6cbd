"""Databases as earlier versions left them: schemas from their migrations, rows from files.

The first line of a file of ``tests/db/schemas`` has the digest of the schema that its revision
made when it was new, so that a migration which was changed afterwards is noticed.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import NullPool

import commtune.db

MIGRATIONS = Path(str(commtune.db.__file__)).parent / "migrations"
SCHEMAS = Path(__file__).parents[2] / "db/schemas"


@contextmanager
def alembic(url: str) -> Iterator[tuple[Config, Connection]]:
    """Alembic's settings with a connection of our own."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with create_engine(url, poolclass=NullPool).begin() as connection:
        config.attributes["connection"] = connection
        yield config, connection


def make_old_database(rows: Path, folder: Path) -> str:
    """The URL of a database with the rows of a file, and the schema that ends the file's name."""
    path = folder / "old.db"
    with alembic(f"sqlite:///{path}") as (config, _):
        command.upgrade(config, rows.stem.rpartition("-")[2])
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(rows.read_text())
    return f"sqlite:///{path}"


def schema_digest(path: Path) -> str:
    """Stands for the statements that made a database, line ends apart."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        made = sorted(" ".join(row[0].split()) for row in rows)
    return hashlib.sha256("\n".join(made).encode()).hexdigest()
