"""Column types that check what they read, for all tables."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from commtune.db.checked_values import (
    check_document,
    check_of,
    column_check_of,
    is_document,
)
from commtune.db.codec import to_json_value
from commtune.db.damage import Damage, refuse
from commtune.db.shapes import kind_of

#: Texts of a column whose meaning is kept while rows are read.
_MOST_SEEN = 1000


@dataclass(frozen=True)
class _Damaged:
    """Stands in a row for a value that is none of its column."""

    column: str
    problem: str


class _Checked(sa.types.TypeDecorator[Any]):
    """A type whose values are checked as they are read; a wrong one becomes ``_Damaged``.

    What is written becomes text, or JSON, that every database takes.

    Args:
        kind: what the values are, as ``check_of`` takes it.
        column: ``table.column``.
    """

    impl = sa.Text
    cache_ok = True

    def __init__(self, inner: sa.types.TypeEngine[Any], kind: Any, column: str) -> None:
        super().__init__()
        self.impl = inner  # type: ignore[assignment]  # of the instance, as its own __init__
        self.kind, self.column = kind, column

    def coerce_compared_value(self, op: Any, value: Any) -> Any:
        return self.impl_instance.coerce_compared_value(op, value)

    def bind_processor(self, dialect: sa.Dialect) -> Any:
        write = self.impl_instance.bind_processor(dialect)
        if not isinstance(self.impl_instance, sa.String | sa.JSON):
            return write

        def process(value: Any) -> Any:
            found = to_json_value(value)
            return found if write is None else write(found)

        return process

    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Any:
        read = self.impl_instance.result_processor(dialect, coltype)
        check, column = check_of(self.kind), self.column
        is_json = isinstance(self.impl_instance, sa.JSON)
        read_document = partial(check_document, hint=self.kind)
        # Rows have the same documents: all runs of a campaign its workload.
        seen: dict[str, Any] = {}

        def process(value: Any) -> Any:
            if value is None:
                return None
            if type(value) is str and value in seen:
                return seen[value]
            found, problem = read_document(value) if is_json else (value, check(value))
            if not problem and read is not None and not is_json:
                found = read(value)
            found = _Damaged(column, problem) if problem else found
            if type(value) is str and len(seen) < _MOST_SEEN:
                seen[value] = found
            return found

        return process


class is_json(FunctionElement[bool]):
    """Whether a column is empty or holds JSON; SQLite fails where a path goes into other text."""

    type = sa.Boolean()
    inherit_cache = True


class is_number(FunctionElement[bool]):
    """Whether a column holds a number; SQLite adds up text as 0."""

    type = sa.Boolean()
    inherit_cache = True


@compiles(is_json)
def _any_json(_element: is_json, _compiler: Any, **_: Any) -> str:
    return "true"  # servers have a type for it


@compiles(is_json, "sqlite")
def _valid_json(element: is_json, compiler: Any, **given: Any) -> str:
    return f"json_valid(coalesce({compiler.process(element.clauses, **given)}, 'null'))"


@compiles(is_number)
def _any_number(element: is_number, compiler: Any, **given: Any) -> str:
    return f"({compiler.process(element.clauses, **given)} IS NOT NULL)"


@compiles(is_number, "sqlite")
def _stored_number(element: is_number, compiler: Any, **given: Any) -> str:
    return f"(typeof({compiler.process(element.clauses, **given)}) IN ('real', 'integer'))"


def check_columns(metadata: sa.MetaData) -> None:
    """Makes every column of these tables check what it reads."""
    for table in metadata.tables.values():
        for column in table.columns:
            # SQLite has numbers only in such a column.
            if column.name == "id":
                continue
            name = f"{table.name}.{column.name}"
            kind = kind_of(table.name, column.name)
            column.type = _Checked(column.type, kind, name)


def _checked_kind(column: sa.ColumnElement[Any]) -> Any:
    """What the values of a column are, as ``check_of`` takes it."""
    return column.type.kind if isinstance(column.type, _Checked) else int


def damage_in(row: sa.Row[Any]) -> list[tuple[str, str]]:
    """The damaged columns of a row, as ``table.column``, each with what is wrong."""
    return [(one.column, one.problem) for one in row if isinstance(one, _Damaged)]


def sound_rows(
    rows: Sequence[Any],
    table: str,
    key: str = "id",
    tell: Callable[[Damage], None] = refuse,
) -> list[Any]:
    """The rows without damaged ones, of which somebody is told."""
    found = []
    for row in rows:
        if damaged := damage_in(row):
            (column, problem), *_ = damaged
            named = str(row._mapping.get(key, ""))
            tell(Damage(table, named, column.removeprefix(f"{table}."), problem))
        else:
            found.append(row)
    return found


def read_columns(
    connection: sa.Connection,
    statement: sa.Select[Any],
    table: str,
    key: str,
    tell: Callable[[Damage], None],
) -> Sequence[Sequence[Any]]:
    """The sound rows of a statement, as ``sound_rows`` has them; its columns are named apart.

    Whole columns are checked first: of millions of rows, each value by itself would take minutes.
    Documents with the same text are one object, which nobody may change.
    """
    columns = list(statement.selected_columns)
    plain = [sa.type_coerce(column, sa.types.NullType()) for column in columns]
    asked = statement.with_only_columns(*plain, maintain_column_froms=True)
    with connection.execute(asked) as found:
        # The driver's own rows: nothing is left to be made of their values.
        rows: Sequence[tuple[Any, ...]] = found.cursor.fetchall()
    kinds = [_checked_kind(column) | None for column in columns]
    read = [_read_column(*one) for one in zip(kinds, zip(*rows, strict=True), strict=False)]
    sound = [values for values in read if values is not None]
    if len(sound) < len(read):
        return sound_rows(connection.execute(statement).all(), table, key, tell)
    if not any(map(is_document, kinds)):
        return rows
    named = namedtuple("named", [column.key for column in columns])  # type: ignore[misc]  # a list
    return list(map(named, *sound))


def _read_column(kind: Any, values: Sequence[Any]) -> Sequence[Any] | None:
    """What a column's values are; ``None`` where some may be wrong."""
    if not is_document(kind):
        return values if column_check_of(kind)(values) else None
    known: dict[str, Any] = {}
    found = []
    for value in values:
        if type(value) is not str or value not in known:
            meant, problem = (None, "") if value is None else check_document(value, kind)
            if problem:
                return None
            if type(value) is not str:  # a driver that hands out what JSON means
                found.append(meant)
                continue
            known[value] = meant
        found.append(known[value])
    return found
