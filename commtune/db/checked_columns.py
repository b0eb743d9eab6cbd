"""Column types of all tables, and the checks of rows that are read."""

from __future__ import annotations

from collections import defaultdict, namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress
from typing import Any

import sqlalchemy as sa

from commtune.db.codec import to_json_value
from commtune.db.damage import Damage, name_row, read_column, refuse_damage
from commtune.db.shapes import kind_of

_PART_ROWS = 300


class _Checked(sa.types.TypeDecorator[Any]):
    """A type that leaves results as the driver returns them, for ``check_rows`` to decode.

    Values that are written are converted to text or JSON that every database accepts.

    Args:
        kind: the type of the values, as for ``check_of``.
        column: ``table.column``.
    """

    impl = sa.Text
    cache_ok = True

    def __init__(self, inner: sa.types.TypeEngine[Any], kind: Any, column: str) -> None:
        super().__init__()
        self.impl = inner  # type: ignore[assignment]  # per instance, as TypeDecorator does it
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

    def result_processor(self, *_: Any) -> None:
        return None


def check_columns(metadata: sa.MetaData) -> None:
    """Replaces the type of every column of these tables by one whose values are checked."""
    for table in metadata.tables.values():
        for column in table.columns:
            # An INTEGER PRIMARY KEY is the one column in which SQLite stores only integers.
            if column.name == "id":
                continue
            name = f"{table.name}.{column.name}"
            kind = kind_of(table.name, column.name)
            column.type = _Checked(column.type, kind, name)


def check_rows(
    columns: Iterable[Any], rows: Sequence[Any]
) -> tuple[Sequence[Any], Mapping[int, list[tuple[str, str]]]]:
    """Decodes and checks rows.

    Returns:
        The rows with their documents parsed, and the problems of damaged rows by index: pairs of
        a column (``table.column``) and what is wrong. Documents with the same text are one shared
        object, which must not be changed.
    """
    stored: list[Sequence[Any]] = list(zip(*rows, strict=True))
    found, damaged = _check_columns(columns, stored)
    if any(read is not as_stored for read, as_stored in zip(found, stored, strict=True)):
        named = namedtuple("named", rows[0]._fields, rename=True)  # type: ignore[misc]
        rows = list(map(named, *found))
    return rows, damaged


def _check_columns(
    columns: Iterable[Any], stored: Sequence[Sequence[Any]]
) -> tuple[list[Sequence[Any]], Mapping[int, list[tuple[str, str]]]]:
    """Returns the decoded values by column, and damage as ``check_rows`` does."""
    damaged: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
    found = list(stored)
    for place, (column, values) in enumerate(zip(columns, stored, strict=False)):
        if isinstance(column.type, _Checked):
            found[place], wrong = read_column(values, column.type.kind)
            for row, problem in wrong.items():
                damaged[row].append((column.type.column, problem))
    return found, damaged


def sound_rows(
    connection: sa.Connection,
    statement: sa.Select[Any],
    table: str,
    key: str = "id",
    tell: Callable[[Damage], None] = refuse_damage,
) -> Sequence[Any]:
    """Returns the undamaged rows of a statement, and reports each damaged one to ``tell``."""
    stored = connection.execute(statement).all()
    rows, damaged = check_rows(statement.selected_columns, stored)
    _report(damaged, table, lambda place: getattr(rows[place], key, ""), tell)
    return [row for n, row in enumerate(rows) if n not in damaged] if damaged else rows


def sound_columns(
    connection: sa.Connection,
    statement: sa.Select[Any],
    table: str,
    key: str,
    tell: Callable[[Damage], None],
) -> list[Sequence[Any]]:
    """Returns the columns of a statement's undamaged rows, for many rows; see ``sound_rows``."""
    columns = statement.selected_columns
    stored: list[list[Any]] = [[] for _ in columns]
    # A few rows at a time, which are gone before the garbage collector looks at them.
    for part in connection.execute(statement).partitions(_PART_ROWS):
        for column, values in zip(stored, zip(*part, strict=True), strict=True):
            column.extend(values)
    found, damaged = _check_columns(columns, stored)
    if not damaged:
        return found
    keys = found[columns.keys().index(key)]
    _report(damaged, table, keys.__getitem__, tell)
    is_sound = [place not in damaged for place in range(len(keys))]
    return [list(compress(values, is_sound)) for values in found]


def _report(
    damaged: Mapping[int, list[tuple[str, str]]],
    table: str,
    key_of: Callable[[int], Any],
    tell: Callable[[Damage], None],
) -> None:
    for place in sorted(damaged):
        (column, problem), *_ = damaged[place]
        tell(Damage(table, name_row(key_of(place)), column.removeprefix(f"{table}."), problem))
