"""Queries a database of campaigns: what it stores, and the best profile for an operation."""

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
from commtune.db.records import BestRow, CampaignSummary
from commtune.documents.quantities import parse_bytes
from commtune.errors import InvalidValue, UserError
from commtune.export.tables import in_groups
from commtune.model import Verdict
from commtune.model.operations import find_operation

if TYPE_CHECKING:
    from commtune.db.connection.engine import Database


class Measurements(Table, Iterable[Row]):
    """All measurements of campaigns, read again in each iteration, few at a time."""

    def __init__(self, found: results.Results) -> None:
        self._found = found

    def __iter__(self) -> Iterator[Row]:
        names = list(self._found.columns)
        return (dict(zip(names, row, strict=True)) for row in self._found)

    def rows(self) -> list[Row]:
        """Returns all measurements as rows, in memory at once."""
        return list(self)

    def to_frame(self) -> Any:
        """Returns all measurements as a pandas DataFrame with typed columns.

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

        # In parts, so that the rows as Python objects are not all in memory.
        parts = [frame(group) for group in in_groups(self._found)]
        return pandas.concat(parts, ignore_index=True) if parts else frame([])


class Store:
    """A database of campaigns and their profiles; a context manager.

    Args:
        where: a file, an SQLAlchemy URL, the address of ``commtune serve``, or ``None`` for the
            user's default database.
        token: token of the service; ``None`` for that in COMMTUNE_TOKEN_FILE or COMMTUNE_TOKEN.
    """

    def __init__(self, where: str | Path | None = None, *, token: str | None = None) -> None:
        self.url = database_url(None if where is None else str(where))
        self._database: Database | None = None
        if is_service(self.url):
            from commtune.db.connection import service

            self.url = self.url if token is None else service.with_token(self.url, token)
            service.ask_service(self.url, "/openapi.json")  # raises if it is not available
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
        """Closes the database, as the end of ``with`` does."""
        if self._database is not None:
            self._database.close()

    @property
    def database(self) -> Database:
        """The database itself, for functions that measure.

        Raises:
            UserError: it is only accessible by a service.
        """
        from commtune.db.connection.engine import open_database

        return self._database or open_database(self.url)

    def campaigns(self) -> list[CampaignSummary]:
        """Returns summaries of all campaigns, newest first: trials, runs, active controllers."""
        if self._database is None:
            from commtune.db import remote

            return remote.list_campaigns(self.url)
        return list_summaries(self.url)

    def profiles(
        self,
        campaign: str | None = None,
        *,
        min_pairs: int | None = None,
        min_days: int | None = None,
        min_sessions: int | None = None,
        min_nodes: int | None = None,
    ) -> Profiles:
        """Returns all profiles, or those of one campaign: newest first, then by size.

        Args:
            min_pairs, min_days, min_sessions, min_nodes: as for ``best``.
        """
        found = find_profiles(
            self.url,
            campaign,
            min_pairs=min_pairs,
            min_days=min_days,
            min_sessions=min_sessions,
            min_nodes=min_nodes,
        )
        return Profiles(self.profile(line.id) for line in found)

    def profile(self, reference: str | int) -> Profile:
        """Returns a profile by ``CAMPAIGN/PROFILE``, name or number.

        Raises:
            UnknownName: no profile, or more than one, has this name.
        """
        return stored_profile(load_profile(self.url, str(reference)))

    def results(self, *campaigns: str) -> Measurements:
        """Returns all measurements of these or all campaigns, as ``commtune results`` has them.

        Iterate over the result if it may not fit into memory.

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
        accept_likely: bool = False,
    ) -> Profile:
        """Returns the best known profile for an operation and a message size.

        Its configuration is empty if the default is best, or if it was withdrawn. For a size that
        was not measured, it is the best at the nearest measured size, and its ``neighbours`` are
        set. If ``support`` says that they disagree, it is unknown which of them is best.

        Args:
            operation: as for ``commtune best``: ``broadcast``, ``bcast``, ...
            bytes: 1048576, or ``"1MiB"``.
            system: part of a system's name, or its fingerprint.
            min_pairs: fewest pairs of runs for the speedup at each of the profile's sizes.
            min_days, min_sessions, min_nodes: fewest different days (UTC), sessions and nodes of
                the runs that it rests on.
            accept_likely: return a profile with verdict ``likely``, which is not proven, if there
                is one and the default would stay only for lack of evidence.

        Raises:
            NoAnswer: nothing suitable was measured; the hint says what was.
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
        likely = found.accept_likely().accepted if accept_likely else None
        return replace(
            self.profile(likely.profile) if likely else self._build_profile(found.row),
            support=str(found.support),
            neighbours={one.bytes: self._build_profile(one.row) for one in found.neighbours},
        )

    def _build_profile(self, row: BestRow) -> Profile:
        answer = load_profile(self.url, str(row.id))
        if row.verdict == Verdict.WITHDRAWN:
            # Maybe at this size alone, by what was found of another profile.
            withdrawn = replace(
                answer.profile,
                configuration=row.configuration,
                verdict=Verdict.WITHDRAWN,
                note=row.note,
            )
            answer = replace(answer, profile=withdrawn)
        return stored_profile(answer)

    def cancel(self, campaign: str, *, control_token: str | None = None) -> str:
        """Ends a campaign like ``commtune cancel``; returns what was ended, in words.

        Args:
            control_token: the token that ``commtune serve --control`` prints; only for a service.

        Raises:
            UnknownName: there is no such campaign.
            NotCancellable: it has ended, or the user can't end it from here.
        """
        if self._database is None:
            from commtune.db.connection import service

            return service.ask_to_cancel(self.url, campaign, control_token or "")
        from commtune.app.campaigns.cancelling import end_campaign

        return end_campaign(campaign, self.url)


def _bytes(size: int | str) -> int:
    try:
        return size if isinstance(size, int) else parse_bytes(size)
    except InvalidValue as error:
        raise UserError(f"bytes={size!r}: {error}", hint="write 8, '64KiB' or '1MiB'") from error


def open_store(where: str | Path | None = None, *, token: str | None = None) -> Store:
    """Opens a database of campaigns; makes a new file.

    Args:
        where, token: as for ``Store``.

    Raises:
        DatabaseFault: it can't be opened, has another schema, or belongs to another program.
        UserError: the service's address or token is wrong.
    """
    return Store(where, token=token)


def best(operation: str, bytes: int | str, *, store: Store, **where: Any) -> Profile:
    """Returns the best known profile for an operation and a size (see ``Store.best``)."""
    return store.best(operation, bytes, **where)
