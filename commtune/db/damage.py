"""Damaged rows: named when they are read, and left out of what is answered.

Who only reads (``status``, ``best``, reports) goes on without them. Who writes is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from commtune.db.checked_values import (
    check_document,
    check_of,
    column_check_of,
    interval_problem,
    is_document,
)
from commtune.errors import DatabaseFault

#: What to type about damage.
WHAT_TO_DO = "'commtune db check' lists all damage, 'commtune db repair' rebuilds without it"


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


def ignore_damage(damage: Damage) -> None:
    """Ignores damage, for readers that tell of it otherwise."""


def refuse_damage(damage: Damage) -> None:
    """Refuses damage, for writers: they must not go on from a part of what is stored.

    Raises:
        DamagedRows: always.
    """
    raise DamagedRows(str(damage))


#: What a document means, and what is wrong with it, of what the driver says and its type.
Read = Callable[[Any, Any], tuple[Any, str]]
ReadColumn = Callable[[Sequence[Any]], tuple[Sequence[Any], Mapping[int, str]]]


def name_row(*keys: Any) -> str:
    """A row's name by its keys, which may be damaged themselves."""
    return ", ".join(str(key).encode("utf-8", "backslashreplace").decode() for key in keys)


def share_documents(most: int) -> Read:
    """A reader to which documents with the same text are one object, which nobody may change.

    Args:
        most: so many texts are remembered.
    """
    remembered = lru_cache(most)(check_document)
    # Drivers that hand out what JSON means leave nothing to remember.
    return lambda stored, hint: (remembered if isinstance(stored, str) else check_document)(
        stored, hint
    )


#: For who asks all day: campaigns and their spaces, some kilobytes each.
_read_shared = share_documents(2048)


def column_reader(kind: Any, read: Read = check_document) -> ReadColumn:
    """What reads the columns of a type: what values mean, and by place what is wrong with some.

    Whole columns are checked first: of millions of rows, each value by itself would take minutes.
    """
    if is_document(kind):
        return lambda values: _unzip([read(value, kind) for value in values])
    are_sound, check = column_check_of(kind), check_of(kind)

    def read_values(values: Sequence[Any]) -> tuple[Sequence[Any], Mapping[int, str]]:
        if not are_sound(values):
            return values, _named(map(check, values))
        # SQLite has no booleans of its own.
        return list(map(bool, values)) if kind is bool else values, {}

    return read_values


def _unzip(read: Sequence[tuple[Any, str]]) -> tuple[Sequence[Any], Mapping[int, str]]:
    return [meant for meant, _ in read], _named(problem for _, problem in read)


def _named(problems: Iterable[str]) -> Mapping[int, str]:
    return {place: problem for place, problem in enumerate(problems) if problem}


@cache
def _reader(table: str, column: str, are_shared: bool) -> ReadColumn:
    # Not at the top: the command line imports this module, and most commands read no row.
    from commtune.db.shapes import kind_of

    return column_reader(kind_of(table, column), _read_shared if are_shared else check_document)


def read_rows(
    rows: Iterable[Mapping[str, Any]],
    table: str,
    key: str = "id",
    *,
    are_shared: bool = False,
    tell: Callable[[Damage], None] | None = None,
) -> list[dict[str, Any]]:
    """The rows that are sound, as plain values; damaged ones are told and left out.

    Args:
        table: the one that rows are named after.
        key: the column that names a row.
        are_shared: documents with the same text are one object, which nobody may change.
        tell: in the place of ``ON_DAMAGE``; ``refuse_damage`` for rows without which there is
            no answer.
    """
    stored = [dict(row) for row in rows]
    damaged: dict[int, tuple[str, str]] = {}
    for name in stored[0] if stored else ():
        values = [row[name] for row in stored]
        meant, wrong = _reader(table, name, are_shared)(values)
        if meant is not values:
            for row, value in zip(stored, meant, strict=True):
                row[name] = value
        for place, problem in wrong.items():
            damaged.setdefault(place, (name, problem))
    if stored and "ratio" in stored[0]:
        for place, row in enumerate(stored):
            if place not in damaged and (problem := interval_problem(row)):
                damaged[place] = "ratio", problem
    for place in sorted(damaged):
        (tell or ON_DAMAGE.get())(Damage(table, name_row(stored[place][key]), *damaged[place]))
    return [row for n, row in enumerate(stored) if n not in damaged] if damaged else stored
