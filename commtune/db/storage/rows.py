"""The base class of the store's parts, and rows that are created once and then shared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache, partial, wraps
from importlib import import_module
from typing import Any, TypeVar, cast

from sqlalchemy import Column, Connection, Insert, Select, Table, bindparam, select

from commtune.db.checked_columns import sound_rows
from commtune.db.connection.busy_retry import BusyRetry
from commtune.db.connection.engine import Database
from commtune.db.lock_owner import LockOwner
from commtune.db.locks import refresh_lock
from commtune.db.tables import CONFIGURATIONS
from commtune.model import Configuration

_Method = TypeVar("_Method", bound=Callable[..., Any])


def waits_for_database(method: _Method) -> _Method:
    """Decorates a method of one transaction to retry while the disk is full or the server away.

    The method must be idempotent: a lost connection doesn't tell whether a commit succeeded.
    """

    @wraps(method)
    def waiting(self: Transactions, *args: Any, **kwargs: Any) -> Any:
        return self._patience.with_faults(partial(method, self, *args, **kwargs))

    return cast(_Method, waiting)


class Transactions:
    """The transactions of a database, which are retried as ``patience`` says."""

    def __init__(self, database: Database, patience: BusyRetry) -> None:
        self.database = database
        self._patience = patience
        self._owners: dict[int, LockOwner] = {}

    def _require_lock(self, connection: Connection, campaign_id: int) -> None:
        """Refuses to write if the campaign's lock was acquired through this store, but lost.

        Raises:
            CampaignLocked: another controller took the campaign over.
        """
        if owner := self._owners.get(campaign_id):
            refresh_lock(connection, campaign_id, owner)

    def _write(self) -> AbstractContextManager[Connection]:
        return self.database.write(self._patience)

    @waits_for_database
    def _rows(self, statement: Select[Any], table: str = "", key: str = "id") -> Sequence[Any]:
        """Returns the undamaged rows of a statement; reports name ``table`` and ``key``."""
        with self.database.read() as connection:
            return sound_rows(connection, statement, table, key, self.database.report)

    def _configured_rows(
        self, table: Table, campaign_id: int, order: Column[Any], key: str = "id"
    ) -> Sequence[Any]:
        """Returns the undamaged rows of a campaign, each with its configuration's environment."""
        chosen = (
            select(table, CONFIGURATIONS.c.environment)
            .join(CONFIGURATIONS, CONFIGURATIONS.c.id == table.c.configuration_id)
            .where(table.c.campaign_id == campaign_id)
        )
        return self._rows(chosen.order_by(order, table.c.configuration_id), table.name, key)


def add_row(connection: Connection, table: Table, **values: Any) -> int | None:
    """Inserts a row, unless there is one with its key; then it changes nothing.

    Returns:
        The first column of its primary key; ``None`` if there was such a row.
    """
    made = connection.execute(_insert_new(table, connection.dialect.name), values)
    if not made.rowcount:
        return None
    number = made.inserted_primary_key
    assert number is not None  # it is for inserts of one row
    return int(number[0])


@cache  # building a statement takes longer than executing it
def _insert_new(table: Table, dialect: str) -> Insert:
    # Both databases have this clause, but SQLAlchemy has it only in its modules for each.
    insert = import_module(f"sqlalchemy.dialects.{dialect}").insert
    made = insert(table).on_conflict_do_nothing().execution_options(preserve_rowcount=True)
    return cast(Insert, made)


def ensure_row(
    connection: Connection, table: Table, key: Column[str], value: str, **others: Any
) -> int:
    """Returns the number of the row with this key, which is created if missing."""
    made = add_row(connection, table, **{key.key: value}, **others)
    if made is not None:
        return made
    return int(connection.execute(_find(table, key), {"wanted": value}).scalar_one())


@cache
def _find(table: Table, key: Column[str]) -> Select[Any]:
    return select(table.c.id).where(key == bindparam("wanted"))


def configuration_row(connection: Connection, configuration: Configuration) -> int:
    """Returns the number of a configuration's row, which is created if missing."""
    key, environment = configuration.key, dict(configuration)
    return ensure_row(
        connection, CONFIGURATIONS, CONFIGURATIONS.c.key, key, environment=environment
    )
