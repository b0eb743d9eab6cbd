"""Reads the rows of a stored campaign in the form that a bundle has.

Rows are ordered by campaign, and then by table as in ``TABLES``. Primary keys are renumbered from
1 in every campaign. Locks, jobs and unfinished runs are left out.
"""

from __future__ import annotations

import base64
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from commtune.db.checked_columns import check_rows
from commtune.db.damage import DamagedRows
from commtune.db.tables import METADATA, rows_of_campaign

#: A table's name, and a row of it by column.
Row = tuple[str, dict[str, Any]]

TABLES = {t.name: t for t in METADATA.sorted_tables if t.name not in ("locks", "jobs")}

_PAGE = 500


def stored_type(column: sa.Column[Any]) -> Any:
    """Returns the SQL type of a column, without the decorator that marks checked columns."""
    return getattr(column.type, "impl_instance", column.type)


def read_campaign(connection: sa.Connection, campaign_id: int) -> Iterator[Row]:
    """Yields the rows of a stored campaign, renumbered from 1.

    Raises:
        DamagedRows: a row is damaged.
    """
    numbers: dict[str, dict[int, int]] = defaultdict(dict)
    for table in TABLES.values():
        chosen = sa.text(rows_of_campaign(table.name)).bindparams(campaign=campaign_id)
        statement = sa.select(table).where(chosen)
        if table.name == "runs":
            statement = statement.where(table.c.state == "stored")
        if table.name == "measurements":
            over = sa.select(TABLES["runs"].c.id).where(TABLES["runs"].c.state == "stored")
            statement = statement.where(table.c.run_id.in_(over))
        stored = connection.execute(
            statement.order_by(*table.primary_key.columns), execution_options={"yield_per": _PAGE}
        )
        for page in stored.partitions():
            rows, damaged = check_rows(table.columns, page)
            if damaged:
                raise DamagedRows(": ".join(damaged[min(damaged)][0]))
            for row in rows:
                values = row._asdict()
                for column in table.columns:
                    for key in column.foreign_keys:
                        values[column.name] = numbers[key.column.table.name][values[column.name]]
                if "id" in values:
                    known = numbers[table.name]
                    known[values["id"]] = values["id"] = len(known) + 1
                yield table.name, values


def to_line(table: str, values: Mapping[str, Any]) -> str:
    """Returns a row as JSON, with bytes in base 64 and null for infinity."""
    return json.dumps([table, {name: _plain(value) for name, value in values.items()}])


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return None if value == math.inf else value
