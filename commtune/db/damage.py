"""Damaged rows: named when they are read, and left out of what is answered.

Who only reads (``status``, ``best``, reports) goes on without them. Who writes is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any

from commtune.db.checked_values import (
    Check,
    check_document,
    check_of,
    column_check_of,
    interval_problem,
    is_document,
)
from commtune.errors import DatabaseFault

#: What to type about damage.
WHAT_TO_DO = "'commtune db check' lists all damage, 'commtune db repair' sets it apart"


@dataclass(frozen=True)
class Damage:
    """What is wrong with a row.

    Attributes:
        row: its key; empty where a whole table is meant.
        column: with its table in front, if it is another one's.
    """

    table: str
    row: str
    column: str
    problem: str

    def __str__(self) -> str:
        place = f"{self.table} {self.row}".strip()
        return ": ".join(filter(None, (place, self.column, self.problem)))


class DamagedRowWarning(UserWarning):
    """Rows of the database are damaged, and left out."""


def _warn(damage: Damage) -> None:
    warnings.warn(f"left out as damaged: {damage}; {WHAT_TO_DO}", DamagedRowWarning, stacklevel=4)


#: Told of each damaged row that a reader leaves out. The command line prints it.
ON_DAMAGE: ContextVar[Callable[[Damage], None]] = ContextVar("ON_DAMAGE", default=_warn)


class DamagedRows(DatabaseFault):
    """What was asked for can't be read; the rest of the database may be sound."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the database is damaged: {what}", hint=WHAT_TO_DO)


def ignore(damage: Damage) -> None:
    """For who names damage otherwise."""


def refuse(damage: Damage) -> None:
    """For who writes, and must not go on from a part of what is stored.

    Raises:
        DamagedRows: always.
    """
    raise DamagedRows(str(damage))


#: Makes a column's value from what the driver says, and tells what is wrong with it.
_Read = Callable[[Any], tuple[Any, str]]


def _kind_of(table: str, column: str) -> Any:
    # Not at the top: the command line imports this module, and most commands read no row.
    from commtune.db.shapes import kind_of

    return kind_of(table, column)


@cache
def _check(table: str, column: str, are_shared: bool) -> _Read:
    kind = _kind_of(table, column)
    read = _read_shared if are_shared else check_document
    return (
        partial(read, hint=kind) if is_document(kind) else partial(_check_scalar, check_of(kind))
    )


#: Texts and what they hold, for who asks all day: campaigns and their spaces, some kilobytes each.
_remembered = lru_cache(maxsize=2048)(check_document)


def _read_shared(stored: Any, hint: Any) -> tuple[Any, str]:
    # Drivers that hand out what JSON means leave nothing to remember.
    return (_remembered if isinstance(stored, str) else check_document)(stored, hint)


@cache
def _column_check(table: str, column: str) -> Callable[[Sequence[Any]], bool]:
    kind = _kind_of(table, column)
    return (lambda _: False) if is_document(kind) else column_check_of(kind)


def _check_scalar(check: Check, value: Any) -> tuple[Any, str]:
    return value, check(value)


def read_rows(
    rows: Iterable[Mapping[str, Any]],
    table: str,
    key: str = "id",
    *,
    are_shared: bool = False,
) -> list[dict[str, Any]]:
    """The rows that are sound, as plain values; damaged ones are told and left out.

    Args:
        table: the one that rows are named after.
        key: the column that names a row.
        are_shared: documents with the same text are one object, which nobody may change.
    """
    stored = [dict(row) for row in rows]
    checks = _checks_needed(stored, table, are_shared)
    has_interval = bool(stored) and "ratio" in stored[0]
    if not checks and not has_interval:
        return stored
    found = []
    for row in stored:
        values, damage = _read_row(row, table, checks, key)
        if damage is None and has_interval and (problem := interval_problem(values)):
            damage = Damage(table, str(row[key]), "ratio", problem)
        if damage is None:
            found.append(values)
        else:
            ON_DAMAGE.get()(damage)
    return found


def _checks_needed(
    rows: Sequence[Mapping[str, Any]], table: str, are_shared: bool
) -> dict[str, _Read]:
    """How to read the columns that a check of the whole column didn't pass."""
    return {
        name: _check(table, name, are_shared)
        for name in (rows[0] if rows else ())
        if not _column_check(table, name)([row[name] for row in rows])
    }


def _read_row(
    row: Mapping[str, Any], table: str, checks: Mapping[str, _Read], key: str
) -> tuple[dict[str, Any], Damage | None]:
    values = dict(row)
    for name, read in checks.items():
        value, problem = read(values[name])
        if problem:
            return values, Damage(table, str(row[key]), name, problem)
        values[name] = value
    return values, None
