"""Campaigns as rows that belong to no database: read from one, checked, and merged into another.

Rows come campaign by campaign, table by table in the order of ``TABLES``. Numbers of rows begin
at 1 in every campaign. Locks and jobs stay where they are, and so do runs that are not over.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import sqlalchemy as sa

from commtune.campaign.schema import check_campaign_name
from commtune.db.checked_columns import checked_kind, damage_in
from commtune.db.checked_values import check_of, shown
from commtune.db.damage import DamagedRows
from commtune.db.inspection import unreadable_columns
from commtune.db.repair import OF_CAMPAIGN
from commtune.db.storage.rows import configuration_row, ensure_row
from commtune.db.tables import Base, Campaign, Stack, System
from commtune.errors import UserError
from commtune.model import Configuration, content_key

#: A table's name, and a row of it by column.
Row = tuple[str, dict[str, Any]]

TABLES = {t.name: t for t in Base.metadata.sorted_tables if t.name not in ("locks", "jobs")}
_ORDER = list(TABLES)
#: Of which a campaign has exactly one row.
_SINGLE = ("stacks", "systems", "campaigns")
_KINDS = {
    table.name: {column.name: checked_kind(column) for column in table.columns}
    for table in TABLES.values()
}

_PAGE = 500
#: Levels of a document, samples of a size: far more than commtune writes.
_DEEPEST = 24
_MOST_SAMPLES = 10**7
#: Characters of a fingerprint: the name of its site is put behind it.
_MOST_KEY = 60

#: Of what a campaign is told from others by, the words; all numbers, too. Texts may have had
#: names replaced.
_WORDS = ("run_id", "operation", "outcome", "verdict")
_NOT_COMPARED = ("configuration_id", "system_id", "stack_id")


class BadRow(ValueError):
    """A row that commtune would not have written."""


def stored_type(column: sa.Column[Any]) -> Any:
    """How a column's values are stored, beneath the type that checks them."""
    return getattr(column.type, "impl_instance", column.type)


def read_campaign(connection: sa.Connection, campaign_id: int) -> Iterator[Row]:
    """The rows of a stored campaign, numbered from 1.

    Raises:
        DamagedRows: some can't be read.
    """
    numbers: dict[str, dict[int, int]] = defaultdict(dict)
    for table in TABLES.values():
        chosen = OF_CAMPAIGN.get(table.name, "campaign_id = :campaign").replace("old.", "")
        statement = sa.select(table).where(sa.text(chosen).bindparams(campaign=campaign_id))
        if table.name == "runs":
            statement = statement.where(table.c.state == "stored")
        if table.name == "measurements":
            over = sa.select(TABLES["runs"].c.id).where(TABLES["runs"].c.state == "stored")
            statement = statement.where(table.c.run_id.in_(over))
        rows = connection.execute(
            statement.order_by(*table.primary_key.columns), execution_options={"yield_per": _PAGE}
        )
        for row in rows:
            if damaged := damage_in(row):
                raise DamagedRows(": ".join(damaged[0]))
            values = dict(row._mapping)
            for column in table.columns:
                for key in column.foreign_keys:
                    values[column.name] = numbers[key.column.table.name][values[column.name]]
            if "id" in values:
                known = numbers[table.name]
                known[values["id"]] = values["id"] = len(known) + 1
            yield table.name, values


def to_line(table: str, values: Mapping[str, Any]) -> str:
    """A row as JSON; bytes in base 64, and null for an interval's end that is open."""
    return json.dumps([table, {name: _plain(value) for name, value in values.items()}])


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return None if value == math.inf else value


@dataclass
class RowChecker:
    """Reads lines as rows, and refuses what commtune would not have written.

    Attributes:
        counts: rows of the campaign so far, by table.
    """

    counts: Counter[str] = field(default_factory=Counter)
    _place: int = 0

    def read(self, line: Any) -> Row:
        """A row, checked as those of a database are, and against those before it.

        Args:
            line: a parsed line.

        Raises:
            BadRow: it is no row, or doesn't belong here.
        """
        match line:
            case [str(name), dict(values)] if name in TABLES:
                table = TABLES[name]
            case _:
                raise BadRow(f"{shown(line)} is no row")
        check_plain(values)
        self._follow(name)
        if unknown := values.keys() - table.c.keys():
            raise BadRow(f"{name} has no column {shown(min(unknown))}")
        try:
            found = {c.name: _value(c, values.get(c.name)) for c in table.columns}
            self._check_whole(name, found)
        except BadRow as error:
            raise BadRow(f"{name} {self.counts[name] + 1}: {error}") from None
        self.counts[name] += 1
        return name, found

    def end(self) -> None:
        """Ends a campaign.

        Raises:
            BadRow: a part of it is missing.
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
    """Refuses what databases don't hold: text that is none, deep nesting.

    Raises:
        BadRow: it has such.
    """
    if depth > _DEEPEST:
        raise BadRow("nested too deeply")
    if isinstance(value, str):
        if "\0" in value or check_of(str)(value):
            raise BadRow(f"{shown(value)} is no text")
    elif isinstance(value, dict):
        for name, one in value.items():
            check_plain(name)
            check_plain(one, depth + 1)
    elif isinstance(value, list):
        for one in value:
            check_plain(one, depth + 1)
    elif isinstance(value, int) and abs(value) >= 2**63:
        raise BadRow(f"{shown(value)} is too large")


def _value(column: sa.Column[Any], plain: Any) -> Any:
    """The value of a column.

    Raises:
        BadRow: it can't hold that.
    """
    kind = _KINDS[column.table.name][column.name]
    if plain is None:
        if column.nullable:
            return None
        if column.name == "high":
            return math.inf
        if column.server_default is None:
            raise BadRow(f"lacks {column.name}")
        written = str(cast(sa.DefaultClause, column.server_default).arg)
        return json.loads(written.strip("'") or '""')
    if kind is bytes:
        try:
            return base64.b64decode(plain, validate=True)
        except (TypeError, ValueError, binascii.Error):
            raise BadRow(f"{column.name}: {shown(plain)} is no base 64") from None
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
    try:
        # Not all of it: a small text may stand for gigabytes.
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


class Digest:
    """What tells a campaign from others, row by row: the same in a bundle and in a database."""

    def __init__(self) -> None:
        self._sum = hashlib.sha256()

    def add(self, table: str, values: Mapping[str, Any]) -> None:
        # Campaigns share these, but for executions, whose order is that of what is shared.
        if table not in ("systems", "stacks", "configurations", "executions"):
            told = {
                name: value
                for name, value in values.items()
                if name in _WORDS or isinstance(value, int | float | bytes)
                if name not in _NOT_COMPARED
            }
            self._sum.update(to_line(table, told).encode())

    def __str__(self) -> str:
        return self._sum.hexdigest()


@dataclass(frozen=True)
class Merged:
    """A campaign of a bundle in the database.

    Attributes:
        name: as it is stored.
        is_new: whether this call stored it; it was there already otherwise.
    """

    name: str
    is_new: bool


def merge_rows(
    connection: sa.Connection, rows: Iterable[Row], digests: Mapping[str, str], site: str
) -> list[Merged]:
    """Stores campaigns of another site, in the caller's transaction.

    A campaign is called ``NAME@SITE``, and so end its system's name and what systems and software
    stacks are known by: what another site measured is never taken for this one's.

    Args:
        rows: checked ones.
        digests: of each campaign, by its name.

    Raises:
        UserError: a campaign is stored already, and not as it is in the bundle.
    """
    done: list[Merged] = []
    writer: _Writer | None = None
    shared: list[Row] = []
    for table, values in rows:
        if table in ("configurations", "stacks", "systems"):
            writer = None
            shared.append((table, values))
            continue
        if table == "campaigns":
            name = f"{values['name']}@{site}"
            is_new = not _is_stored(connection, values, name, site, digests[values["name"]])
            done.append(Merged(name, is_new))
            writer = _Writer(connection, site) if is_new else None
            if writer is not None:
                for one in shared:
                    writer.add(*one)
            shared = []
        if writer is not None:
            writer.add(table, values)
    return done


def _is_stored(
    connection: sa.Connection, values: Mapping[str, Any], name: str, site: str, digest: str
) -> bool:
    same = (Campaign.site == site, Campaign.created == values["created"])
    query = sa.select(Campaign.id, Campaign.name).where((Campaign.name == name) | sa.and_(*same))
    found = connection.execute(query).first()
    if found is None:
        return False
    stored = Digest()
    for row in read_campaign(connection, found.id):
        stored.add(*row)
    if str(stored) == digest:
        return True
    raise UserError(
        f"campaign {found.name} is already here, with other runs or results than in the bundle",
        hint=f"to take the bundle's: commtune delete {found.name}, then merge again",
    )


@dataclass
class _Writer:
    """Stores the rows of one new campaign."""

    connection: sa.Connection
    site: str
    numbers: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, table: str, values: dict[str, Any]) -> None:
        values = {name: value for name, value in values.items() if name != "id"}
        for column in TABLES[table].columns:
            for key in column.foreign_keys:
                known = self.numbers[key.column.table.name]
                values[column.name] = known[values[column.name] - 1]
        number = self._insert(table, values)
        if number is not None:
            self.numbers[table].append(number)

    def _insert(self, table: str, values: dict[str, Any]) -> int | None:
        if table == "configurations":
            # By what it sets: a bundle's word for its key would do for any other.
            return configuration_row(self.connection, Configuration(values["environment"]))
        if table in ("systems", "stacks"):
            kind = System if table == "systems" else Stack
            key = f"{values.pop('fingerprint')}@{self.site}"
            if table == "systems":
                values["name"] = f"{values['name']} @{self.site}"
            return ensure_row(self.connection, kind, kind.fingerprint, key, **values)[0]
        if table == "campaigns":
            name = f"{values['name']}@{self.site}"
            values |= {"name": name, "site": self.site, "folder": ""}
            values["content_key"] = content_key(values["what"])
        try:
            done = self.connection.execute(sa.insert(TABLES[table]).values(values))
        except sa.exc.IntegrityError as error:
            raise UserError(
                f"a row of {table} in the bundle is there twice, or another campaign's",
                hint="merge a bundle of the whole campaign, from the site that measured it",
            ) from error
        if "id" not in TABLES[table].c:
            return None
        assert done.inserted_primary_key is not None  # it is for inserts of one row
        return int(done.inserted_primary_key[0])
