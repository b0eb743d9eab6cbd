"""Checks every value of a database for damage."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import sqlalchemy as sa

from commtune.db.checked_columns import check_rows
from commtune.db.checked_values import interval_problem
from commtune.db.codec import load_model, unpack_samples
from commtune.db.connection.engine import Database, open_readable
from commtune.db.damage import Damage, name_row
from commtune.db.queries.profiles import load_details
from commtune.db.tables import (
    CAMPAIGNS,
    CONCLUSIONS,
    DECISIONS,
    METADATA,
    PROFILE_POINTS,
    PROFILES,
    RUNS,
    rows_of_campaign,
)
from commtune.errors import DatabaseFault
from commtune.model import Workload
from commtune.model.conclusion import Conclusion, Decision

_PAGE = 1000
_Step = Callable[[sa.Connection], list[Damage]]


def inspect_database(db: str | None) -> tuple[str, list[Damage]]:
    """Returns where a database is, and what is damaged in it.

    Raises:
        NoAnswer, DatabaseFault: as for ``open_readable``.
    """
    with open_readable(db) as opened:
        return opened.url, find_damage(opened)


def find_damage(database: Database) -> list[Damage]:
    """Returns all damage: of the structure of an SQLite file, then of rows, table by table.

    Reads the whole database once, in one transaction.
    """
    is_file = database.engine.dialect.name == "sqlite"
    steps: list[tuple[str, _Step]] = [("file", _damage_of_file)] if is_file else []
    steps += [(t.name, partial(_damage_of_table, t)) for t in METADATA.sorted_tables]
    found: list[Damage] = []
    with database.read() as connection:
        for name, step in steps:
            try:
                found += step(connection)
            except sa.exc.DBAPIError as error:
                found.append(Damage(name, "", "", str(error.orig)))
    return found


def campaigns_with(connection: sa.Connection, damage: Damage) -> set[int]:
    """Returns the numbers of the campaigns that use a damaged row; none for a whole file's."""
    if damage.table not in METADATA.tables:
        return set()
    table = METADATA.tables[damage.table]
    key = next(iter(table.primary_key.columns)).name
    mine = rows_of_campaign(table.name, "c.id")
    is_used = f"EXISTS (SELECT 1 FROM {table.name} WHERE {key} = :row AND {mine})"
    statement = f"SELECT c.id FROM campaigns c WHERE {is_used}"
    given = {"row": damage.row.partition(", ")[0]}
    return set(connection.execute(sa.text(statement), given).scalars())


def _damage_of_file(connection: sa.Connection) -> list[Damage]:
    said = connection.exec_driver_sql("PRAGMA integrity_check(20)").scalars()
    rows = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    return [
        *(Damage("file", "", "", line) for line in said if line != "ok"),
        *(Damage(row[0], str(row[1]), "", f"belongs to no row of {row[2]}") for row in rows),
    ]


def _damage_of_table(table: sa.Table, connection: sa.Connection) -> list[Damage]:
    keys = [column.name for column in table.primary_key.columns]
    names = [column.name for column in table.columns]
    stored = connection.execute(sa.select(table), execution_options={"yield_per": _PAGE})
    found = []
    for page in stored.partitions():
        rows, damaged = check_rows(table.columns, page)
        for place, row in enumerate(rows):
            values = dict(zip(names, row, strict=True))  # faster than _asdict
            wrong = damaged.get(place) or unreadable_columns(table.name, values)
            for column, problem in wrong:
                name = name_row(*(getattr(row, key) for key in keys))
                found.append(
                    Damage(table.name, name, column.removeprefix(f"{table.name}."), problem)
                )
    return found


def unreadable_columns(table: str, values: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """Yields the columns whose values can't be turned into objects of the model, and why."""
    if table == PROFILE_POINTS.name and (problem := interval_problem(values)):
        yield "ratio", problem
    for column, read in _READERS.get(table, {}).items():
        if values[column] is None:
            continue
        try:
            read(values[column])
        except DatabaseFault as error:
            yield column, error.message
        except (KeyError, TypeError, ValueError, struct.error, zlib.error) as error:
            yield column, f"{type(error).__name__}: {error}"


_READERS: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    CAMPAIGNS.name: {"what": lambda what: Workload.of_plain(what["workload"])},
    DECISIONS.name: {"decision": lambda stored: load_model(Decision, stored)},
    CONCLUSIONS.name: {"conclusion": lambda stored: load_model(Conclusion, stored)},
    PROFILES.name: {"details": load_details},
    RUNS.name: {"workload": Workload.of_plain},
    "measurements": {"samples": unpack_samples},
}
