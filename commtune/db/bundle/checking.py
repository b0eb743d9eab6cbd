"""Checks the rows of a bundle like those of a database, and against the rows before them."""

from __future__ import annotations

import base64
import math
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from commtune.campaign.campaign_name import check_campaign_name
from commtune.db.bundle.rows import TABLES, Row, stored_type
from commtune.db.checked_values import check_of, shorten_value
from commtune.db.inspection import unreadable_columns
from commtune.db.shapes import kind_of
from commtune.errors import UserError

_ORDER = list(TABLES)
#: Tables in which a campaign has exactly one row.
_SINGLE = ("stacks", "systems", "campaigns")

#: Limits on the nesting of a document and on the samples of a size, far above what is written.
_DEEPEST = 24
_MOST_SAMPLES = 10**7
#: The longest fingerprint, in characters: the column must also hold the site's name after it.
_MOST_KEY = 60


class BadRow(ValueError):
    """A row that commtune would not have written."""


@dataclass
class RowChecker:
    """Parses the lines of a bundle, and refuses rows that commtune would not have written.

    Attributes:
        counts: number of rows of the current campaign so far, by table.
    """

    counts: Counter[str] = field(default_factory=Counter)
    _place: int = 0

    def read(self, line: Any) -> Row:
        """Returns the row of a line, checked by itself and against the rows before it.

        Args:
            line: a line, parsed as JSON.

        Raises:
            BadRow: the line is no valid row, or is out of place.
        """
        match line:
            case [str(name), dict(values)] if name in TABLES:
                table = TABLES[name]
            case _:
                raise BadRow(f"{shorten_value(line)} is no row")
        check_plain(values)
        self._follow(name)
        if unknown := values.keys() - table.c.keys():
            raise BadRow(f"{name} has no column {shorten_value(min(unknown))}")
        try:
            found = {c.name: _value(c, values.get(c.name)) for c in table.columns}
            self._check_whole(name, found)
        except BadRow as error:
            raise BadRow(f"{name} {self.counts[name] + 1}: {error}") from None
        self.counts[name] += 1
        return name, found

    def end(self) -> None:
        """Ends the current campaign.

        Raises:
            BadRow: a row that every campaign has is missing.
        """
        if lacking := [name for name in _SINGLE if not self.counts[name]]:
            raise BadRow(f"a campaign has no row of {lacking[0]}")
        self.counts, self._place = Counter(), 0

    def _follow(self, name: str) -> None:
        place = _ORDER.index(name)
        if place < self._place:
            if name != _ORDER[0] and name not in _SINGLE[:2]:
                raise BadRow(f"{name} come too late")
            self.end()
        elif name in _SINGLE and self.counts[name]:
            raise BadRow(f"a campaign has two rows of {name}")
        self._place = place

    def _check_whole(self, name: str, values: dict[str, Any]) -> None:
        for column in TABLES[name].columns:
            for key in column.foreign_keys:
                if not 1 <= values[column.name] <= self.counts[key.column.table.name]:
                    raise BadRow(f"{column.name} belongs to no row")
        if values.get("id", self.counts[name] + 1) != self.counts[name] + 1:
            raise BadRow(f"its number is {values['id']}")
        if name == "measurements":
            _check_samples(values["samples"], values["n_samples"])
        if name == "campaigns":
            _check_campaign(values)
        if len(values.get("fingerprint", "")) > _MOST_KEY:
            raise BadRow(f"fingerprint: longer than {_MOST_KEY} characters")
        if name == "runs" and values["state"] != "stored":
            raise BadRow("the run is not over")
        try:
            problem = next(iter(unreadable_columns(name, values)), None)
        except (AttributeError, ArithmeticError, RecursionError) as error:
            raise BadRow(type(error).__name__) from error
        if problem:
            raise BadRow(": ".join(problem).partition("\n")[0])


def check_plain(value: Any, depth: int = 0) -> None:
    """Refuses values that not every database can store.

    Raises:
        BadRow: text with NUL or invalid Unicode, an integer beyond 64 bits, or deep nesting.
    """
    if depth > _DEEPEST:
        raise BadRow("nested too deeply")
    if isinstance(value, str):
        if "\0" in value or check_of(str)(value):
            raise BadRow(f"{shorten_value(value)} is no text")
    elif isinstance(value, dict):
        for name, one in value.items():
            check_plain(name)
            check_plain(one, depth + 1)
    elif isinstance(value, list):
        for one in value:
            check_plain(one, depth + 1)
    elif isinstance(value, int) and abs(value) >= 2**63:
        raise BadRow(f"{shorten_value(value)} is too large")


def _value(column: sa.Column[Any], plain: Any) -> Any:
    """Converts a JSON value to that of a column, or refuses it as a ``BadRow``."""
    kind = kind_of(column.table.name, column.name)
    if plain is None:
        if column.nullable:
            return None
        if column.name == "high":
            return math.inf
        raise BadRow(f"lacks {column.name}")
    if kind is bytes:
        try:
            return base64.b64decode(plain, validate=True)
        except (TypeError, ValueError):
            raise BadRow(f"{column.name}: {shorten_value(plain)} is no base 64") from None
    if problem := check_of(kind)(plain):
        raise BadRow(f"{column.name}: {problem}")
    inner = stored_type(column)
    if isinstance(inner, sa.Double):
        return float(plain)
    if isinstance(inner, sa.Boolean):
        return bool(plain)
    most = getattr(inner, "length", None)
    if most is not None and len(plain) > most:
        raise BadRow(f"{column.name}: longer than {most} characters")
    small = isinstance(inner, sa.Integer) and not isinstance(inner, sa.BigInteger)
    if small and abs(plain) >= 2**31:
        raise BadRow(f"{column.name}: {plain} is too large")
    return plain


def _check_samples(blob: bytes, count: int) -> None:
    if not 0 <= count <= _MOST_SAMPLES:
        raise BadRow(f"{count} samples")
    if not blob:
        return  # pruned
    try:
        # The output is limited, because a few compressed bytes may expand to gigabytes.
        plain = zlib.decompressobj().decompress(blob, 4 * count + 1)
    except zlib.error as error:
        raise BadRow(f"samples: {error}") from None
    if len(plain) != 4 * count:
        raise BadRow(f"its samples are not {count}")


def _check_campaign(values: Mapping[str, Any]) -> None:
    try:
        check_campaign_name(values["name"])
    except UserError as error:
        raise BadRow(error.message) from None
    if values["site"]:
        raise BadRow("another site measured it")
