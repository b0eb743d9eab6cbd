"""Reports damaged rows when they are read, and leaves them out of the answers.

Readers (``status``, ``best``, reports) continue without them. Writers are refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from commtune.db.checked_values import (
    check_document,
    check_of,
    column_check_of,
    interval_problem,
    is_document,
)
from commtune.errors import DatabaseFault

#: The hint of messages about damage.
WHAT_TO_DO = "'commtune db check' lists all damage, 'commtune db repair' rebuilds without it"


@dataclass(frozen=True)
class Damage:
    """A problem of a row.

    Attributes:
        row: the key of the row; empty for a whole table.
        column: the column, prefixed by its table if that is another one.
    """

    table: str
    row: str
    column: str
    problem: str

    def __str__(self) -> str:
        place = f"{self.table} {self.row}".strip()
        return ": ".join(filter(None, (place, self.column, self.problem)))


class DamagedRowWarning(UserWarning):
    """A warning that damaged rows of the database are left out."""


def _warn(damage: Damage) -> None:
    warnings.warn(f"left out as damaged: {damage}; {WHAT_TO_DO}", DamagedRowWarning, stacklevel=4)


#: Called for each damaged row that a reader leaves out. The command line prints them.
ON_DAMAGE: ContextVar[Callable[[Damage], None]] = ContextVar("ON_DAMAGE", default=_warn)


class DamagedRows(DatabaseFault):
    """The requested rows are damaged; the rest of the database may be intact."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the database is damaged: {what}", hint=WHAT_TO_DO)


def refuse_damage(damage: Damage) -> None:
    """Refuses damage, for writers, which must not continue from a part of the rows.

    Raises:
        DamagedRows: always.
    """
    raise DamagedRows(str(damage))


def name_row(*keys: Any) -> str:
    """Returns the name of a row for messages; its keys may be damaged, too."""
    return ", ".join(str(key).encode("utf-8", "backslashreplace").decode() for key in keys)


#: For a server that runs for days: the documents are some kilobytes each.
_read_shared = lru_cache(2048)(check_document)
#: The longest document that is shared, characters. Headers of runs list every rank.
_LONGEST_SHARED = 10_000


def _read_document(stored: Any, kind: Any) -> tuple[Any, str]:
    # Some drivers return parsed JSON, which can't be a key of the cache.
    is_shared = isinstance(stored, str) and len(stored) <= _LONGEST_SHARED
    return (_read_shared if is_shared else check_document)(stored, kind)


def read_column(values: Sequence[Any], kind: Any) -> tuple[Sequence[Any], Mapping[int, str]]:
    """Returns the decoded values of a column, and the problems of some by index.

    Whole columns are checked first, because single values of millions of rows take minutes.
    Documents with the same text are one object, which must not be changed.

    Args:
        kind: the type of the values, as for ``check_of``.
    """
    if is_document(kind):
        found = [_read_document(value, kind) for value in values]
        return [value for value, _ in found], _by_index(problem for _, problem in found)
    wrong = {} if column_check_of(kind)(values) else _by_index(map(check_of(kind), values))
    # SQLite stores booleans as 0 and 1.
    return list(map(bool, values)) if kind is bool else values, wrong


def _by_index(problems: Iterable[str]) -> Mapping[int, str]:
    return {place: problem for place, problem in enumerate(problems) if problem}


def read_rows(
    rows: Iterable[Mapping[str, Any]],
    table: str,
    key: str = "id",
    *,
    tell: Callable[[Damage], None] | None = None,
) -> list[dict[str, Any]]:
    """Returns the undamaged rows, decoded; damaged ones are reported and left out.

    Documents with the same text are one object, which must not be changed.

    Args:
        table: the table that reports name.
        key: the column that identifies a row in reports.
        tell: called instead of ``ON_DAMAGE``; ``refuse_damage`` for rows without which there is
            no answer.
    """
    # Imported here: the command line imports this module, and most commands read no rows.
    from commtune.db.shapes import kind_of

    stored = [dict(row) for row in rows]
    damaged: dict[int, tuple[str, str]] = {}
    for name in stored[0] if stored else ():
        values = [row[name] for row in stored]
        meant, wrong = read_column(values, kind_of(table, name))
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
