"""Merges campaigns of another site into a database."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from commtune.db.bundle.rows import TABLES, Row, read_campaign, to_line
from commtune.db.settings import rename_verified
from commtune.db.storage.rows import configuration_row, ensure_row
from commtune.db.tables import CAMPAIGNS, SHARED, STACKS, SYSTEMS
from commtune.errors import UserError
from commtune.model import Configuration, content_key

#: Text columns in the digest, which has all numbers too. Names in other texts may have been
#: replaced by pseudonyms.
_WORDS = ("run_id", "operation", "outcome", "verdict")
_NOT_COMPARED = ("configuration_id", "system_id", "stack_id")


class Digest:
    """A hash of a campaign's rows, which is the same for a bundle and for a database."""

    def __init__(self) -> None:
        self._sum = hashlib.sha256()

    def add(self, table: str, values: Mapping[str, Any]) -> None:
        # Systems, stacks and configurations are shared by campaigns, so their row numbers differ
        # between databases; executions are ordered by those numbers.
        if table not in (*SHARED, "executions"):
            told = {
                name: value
                for name, value in values.items()
                if name in _WORDS or isinstance(value, int | float | bytes)
                if name not in _NOT_COMPARED
            }
            self._sum.update(to_line(table, told).encode())

    def __str__(self) -> str:
        return self._sum.hexdigest()


def merge_rows(
    connection: sa.Connection, rows: Iterable[Row], digests: Mapping[str, str], site: str
) -> list[tuple[str, bool]]:
    """Stores campaigns of another site, in the caller's transaction.

    A campaign is stored as ``NAME@SITE``. The site is also appended to the name of its system and
    to the fingerprints of system and stack, so that its results never pass for this site's own.

    Args:
        rows: rows that were checked by ``RowChecker``.
        digests: the digest of each campaign, by its name in the bundle.

    Returns:
        The name of each in the database, and whether this call stored it.

    Raises:
        UserError: a campaign is stored already, with other content than in the bundle.
    """
    done: list[tuple[str, bool]] = []
    writer: _Writer | None = None
    shared: list[Row] = []
    for table, values in rows:
        if table in SHARED:
            writer = None
            shared.append((table, values))
            continue
        if table == "campaigns":
            name = f"{values['name']}@{site}"
            stored = _stored_name(connection, values, name, site, digests[values["name"]])
            done.append((stored or name, not stored))
            writer = None if stored else _Writer(connection, site)
            if writer is not None:
                for one in shared:
                    writer.add(*one)
            shared = []
        if writer is not None:
            writer.add(table, values)
    return done


def _stored_name(
    connection: sa.Connection, values: Mapping[str, Any], name: str, site: str, digest: str
) -> str:
    """Returns the name that the same campaign has here, which may be another; or empty."""
    same = (CAMPAIGNS.c.site == site, CAMPAIGNS.c.created == values["created"])
    known = (CAMPAIGNS.c.name == name) | sa.and_(*same)
    query = sa.select(CAMPAIGNS.c.id, CAMPAIGNS.c.name).where(known)
    # Two if the other site has since given this campaign the name that another one had.
    found = connection.execute(query.order_by(CAMPAIGNS.c.name == name)).all()
    if not found:
        return ""
    for one in found:
        stored = Digest()
        for row in read_campaign(connection, one.id):
            stored.add(*row)
        if str(stored) == digest:
            return str(one.name)
    stands = found[0].name
    raise UserError(
        f"campaign {stands} is already here, with other runs or results than in the bundle",
        hint=f"to take the bundle's: commtune delete {stands}, then merge again",
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
            # The key is computed again: a bundle could claim the key of another configuration.
            return configuration_row(self.connection, Configuration(values["environment"]))
        if table in ("systems", "stacks"):
            kind = SYSTEMS if table == "systems" else STACKS
            key = f"{values.pop('fingerprint')}@{self.site}"
            if table == "systems":
                values["name"] = f"{values['name']} @{self.site}"
            return ensure_row(self.connection, kind, kind.c.fingerprint, key, **values)
        if table == "campaigns":
            name = f"{values['name']}@{self.site}"
            values |= {"name": name, "site": self.site, "folder": ""}
            values["content_key"] = content_key(values["what"])
            values["settings"] = rename_verified(
                values["settings"], lambda of: f"{of}@{self.site}"
            )
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
