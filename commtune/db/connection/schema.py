"""Reads the schema revision of a database, and creates or migrates its tables."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from commtune.db.connection import location
from commtune.errors import DatabaseFault


def require_schema(connection: Connection, shown: str) -> None:
    """Refuses a database with another schema (DatabaseFault), or an empty one (NoAnswer)."""
    names = set(inspect(connection).get_table_names())
    location.check_revision(_stored_revision(connection, names), names, shown)


def find_revision(connection: Connection, shown: str) -> str:
    """Returns the schema revision, empty for a database without tables.

    Raises:
        DatabaseFault: there are other tables, but no revision.
    """
    names = set(inspect(connection).get_table_names())
    revision = _stored_revision(connection, names)
    if not revision and names - {location.VERSION_TABLE}:
        raise DatabaseFault(
            f"the database {shown} holds other tables ({', '.join(sorted(names)[:3])} ...) "
            "and is not commtune's",
            hint="name an empty one with --db or COMMTUNE_DB; on a server: createdb commtune",
        )
    return revision


def _stored_revision(connection: Connection, names: set[str]) -> str:
    if location.VERSION_TABLE not in names:
        return ""
    query = text(f"SELECT version_num FROM {location.VERSION_TABLE}")
    return str(connection.execute(query).scalar() or "")


def make_schema(connection: Connection, *, is_new: bool) -> None:
    """Creates the tables of this version in an empty database, or migrates older ones."""
    # Imported here, because Alembic is not needed to open a database that is up to date.
    from alembic import command
    from alembic.config import Config

    from commtune.db.tables import METADATA
    from commtune.db.views import drop_views, make_views

    config = Config()
    folder = Path(__file__).parents[1] / "migrations"
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.attributes["connection"] = connection
    if is_new:
        METADATA.create_all(connection)
        command.stamp(config, "head")
    else:
        drop_views(connection)
        command.upgrade(config, "head")
    make_views(connection)
