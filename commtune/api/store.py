"""A database of campaigns: what is stored, and what is best by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from commtune.api.profiles import Profile, Profiles, Row, Table, import_pandas, stored_profile
from commtune.db.connection.location import database_url, is_service, shown_url
from commtune.db.queries import results
from commtune.db.queries.profiles import find_profiles, load_profile
from commtune.db.queries.summaries import list_summaries
from commtune.db.records import CampaignSummary
from commtune.documents.quantities import QuantityError, parse_bytes
from commtune.errors import UserError
from commtune.export.tables import in_groups
from commtune.model.operations import find_operation

if TYPE_CHECKING:
    from commtune.db.connection.engine import Database


class Measurements(Table, Iterable[Row]):
    """Every measurement of campaigns; each iteration reads them anew and holds few at a time."""

    def __init__(self, found: results.Results) -> None:
        self._found = found

    def __iter__(self) -> Iterator[Row]:
        names = list(self._found.columns)
        return (dict(zip(names, row, strict=True)) for row in self._found)

    def rows(self) -> list[Row]:
        """All of them at once, a row a measurement."""
        return list(self)

    def to_frame(self) -> Any:
        """All of them as a pandas DataFrame with the same columns, typed.

        Raises:
            MissingComponent: pandas is not installed.
        """
        pandas, columns = import_pandas(), self._found.columns
        kinds = {int: "Int64", float: "float64", bool: "bool"}
        types = {name: kinds.get(kind, "string") for name, kind in columns.items()}

        def frame(rows: Sequence[Sequence[Any]]) -> Any:
            made = pandas.DataFrame(rows, columns=list(columns)).astype(types)
            for name in (name for name, kind in columns.items() if kind is datetime):
                made[name] = pandas.to_datetime(made[name], format="ISO8601", utc=True)
            return made

        # In parts, so that what pandas makes of them is all that is held.
        parts = [frame(group) for group in in_groups(self._found)]
        return pandas.concat(parts, ignore_index=True) if parts else frame([])


class Store:
    """A database of campaigns and their profiles; a context manager.

    Args:
        where: a file, an SQLAlchemy URL, the address of ``commtune serve``, or ``None`` for the
            user's own database.
        token: of the service; ``None`` for that of COMMTUNE_TOKEN_FILE or COMMTUNE_TOKEN.
    """

    def __init__(self, where: str | Path | None = None, *, token: str | None = None) -> None:
        self.url = database_url(None if where is None else str(where))
        self._database: Database | None = None
        if is_service(self.url):
            from commtune.db.connection import service

            self.url = self.url if token is None else service.with_token(self.url, token)
            service.ask_service(self.url, "/openapi.json")  # says at once what is wrong
        elif token is not None:
            raise UserError(
                f"{shown_url(self.url)} is a database, and token= is for a service",
                hint="ct.open_store('https://host/path', token=...)",
            )
        else:
            from commtune.db.connection.engine import open_database

            self._database = open_database(self.url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Store({shown_url(self.url)!r})"

    def close(self) -> None:
        """Closes it; also done at the end of ``with``."""
        if self._database is not None:
            self._database.close()

    @property
    def database(self) -> Database:
        """The database itself, for what measures.

        Raises:
            UserError: it is behind a service.
        """
        from commtune.db.connection.engine import open_database

        return self._database or open_database(self.url)

    def campaigns(self) -> list[CampaignSummary]:
        """All campaigns, newest first: their counts of trials and runs, who works on them."""
        if self._database is None:
            from commtune.db import remote

            return remote.list_campaigns(self.url)
        return list_summaries(self.url)

    def profiles(self, campaign: str | None = None) -> Profiles:
        """All profiles, or those of one campaign: newest first, then by size."""
        found = find_profiles(self.url, campaign)
        return Profiles(self.profile(line.id) for line in found)

    def profile(self, reference: str | int) -> Profile:
        """One profile by ``CAMPAIGN/PROFILE``, name or number.

        Raises:
            UnknownName: none, or several, are called so.
        """
        return stored_profile(load_profile(self.url, str(reference), with_details=True))

    def results(self, *campaigns: str) -> Measurements:
        """Every measurement of these campaigns, or of all, as ``commtune results`` has them.

        Iterate over it where there are more than memory holds.

        Raises:
            UnknownName: there is no such campaign.
        """
        return Measurements(results.find_results(self.url, campaigns))

    def best(
        self,
        operation: str,
        bytes: int | str,
        *,
        ranks: int | None = None,
        nodes: int | None = None,
        system: str | None = None,
        backend: str | None = None,
        campaign: str | None = None,
        min_pairs: int | None = None,
        min_days: int | None = None,
        min_sessions: int | None = None,
        min_nodes: int | None = None,
    ) -> Profile:
        """The best that is known for an operation and a message size.

        Its configuration is empty where the default is to be kept. Of a size that was not
        measured, it is the best at the nearest one, and its ``neighbours`` are set: where
        ``support`` says that they disagree, nobody knows which of them is best.

        Args:
            operation: as for ``commtune best``: ``broadcast``, ``bcast``, ...
            bytes: 1048576, or ``"1MiB"``.
            system: part of a system's name, or its fingerprint.
            min_pairs: at least so many behind the speedup at each of the profile's sizes.
            min_days, min_sessions, min_nodes: its configuration was confirmed on, or in, at least
                so many different ones; a day is one of UTC.

        Raises:
            NoAnswer: nothing was measured there; the hint says what was.
        """
        from commtune.app.profiles.answers import best_answers

        filters = {
            "ranks": ranks, "nodes": nodes, "system": system, "backend": backend,
            "campaign": campaign, "min_pairs": min_pairs, "min_days": min_days,
            "min_sessions": min_sessions, "min_nodes": min_nodes,
        }  # fmt: skip
        size = _bytes(bytes)
        known = find_operation(operation) or operation
        (found,), _ = best_answers(known, size, filters, self.url)
        return replace(
            self.profile(found.row.id),
            support=str(found.support),
            neighbours={one.bytes: self.profile(one.row.id) for one in found.neighbours},
        )

    def cancel(self, campaign: str, *, control_token: str | None = None) -> str:
        """Ends a campaign as ``commtune cancel`` does; returns what was ended, in words.

        Args:
            control_token: what ``commtune serve --control`` prints; of a service only.

        Raises:
            UnknownName: there is no such campaign.
            NotCancellable: it has ended, or it is not the user's to end from there.
        """
        if self._database is None:
            from commtune.db.connection import service

            return service.end_campaign(self.url, campaign, control_token or "")
        from commtune.app.campaigns.cancelling import end_campaign

        return end_campaign(campaign, self.url)


def _bytes(size: int | str) -> int:
    try:
        return size if isinstance(size, int) else parse_bytes(size)
    except QuantityError as error:
        raise UserError(f"bytes={size!r}: {error}", hint="write 8, '64KiB' or '1MiB'") from error


def open_store(where: str | Path | None = None, *, token: str | None = None) -> Store:
    """Opens a database of campaigns; a new file is made, an older one brought up to date.

    Args:
        where: a file, an SQLAlchemy URL, or the address of ``commtune serve``.
        token: of the service; ``None`` for that of COMMTUNE_TOKEN_FILE or COMMTUNE_TOKEN.

    Raises:
        DatabaseFault: it can't be had, or is another program's.
        UserError: the service's address or token is wrong.
    """
    return Store(where, token=token)


def best(operation: str, bytes: int | str, *, store: Store, **where: Any) -> Profile:
    """The best that is known for an operation and a size; see ``Store.best``."""
    return store.best(operation, bytes, **where)
