"""Reads all measurements of campaigns, page by page, from the view ``results``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from commtune.db.connection.location import Rows, database_url, is_service
from commtune.db.connection.reader import keep_open, open_for_reading
from commtune.db.damage import read_rows
from commtune.db.queries.description import unknown_campaign
from commtune.db.records import ResultsPage

#: Runs in a page: it bounds the memory of a reader, and the time that a writer waits for it.
_PAGE_RUNS = 200
#: The prefix of columns that hold the value of an environment variable.
_VARIABLE = "env_"

#: The columns and their types; a ``datetime`` is stored as text (ISO 8601, UTC), a ``dict`` as
#: JSON. docs/results.md describes them.
COLUMNS: Mapping[str, type] = {
    "campaign": str, "simulated": bool, "site": str, "system": str, "stack": str,
    "run": str, "started": datetime, "phase": str, "block": int, "position": int,
    "trial": int, "origin": str, "outcome": str, "detail": str, "exit_code": int,
    "wall_s": float, "oversubscribed": bool, "other_load": float, "node_names": str,
    "distance": str, "backend": str, "ranks": int, "nodes": int, "dtype": str,
    "operation": str, "bytes": int, "median_s": float, "min_s": float, "mean_s": float,
    "p95_s": float, "max_s": float, "first_call_s": float, "algbw_bytes_per_s": float,
    "busbw_bytes_per_s": float, "samples": int, "batch": int, "wrong_elements": int,
    "canary_s": float, "canary_after_s": float, "configuration": dict,
}  # fmt: skip
_RUN = list(COLUMNS).index("run")

_CAMPAIGNS = "SELECT id, name FROM campaigns ORDER BY created, id"

_NEWEST = "SELECT max(id) AS newest FROM runs"

_CONFIGURATIONS = """
SELECT id, environment FROM configurations WHERE id IN (
  SELECT configuration_id FROM runs WHERE campaign_id = :campaign AND id <= :newest)
"""

_LAST = """
SELECT max(id) AS last FROM (
  SELECT id FROM runs WHERE campaign_id = :campaign AND id > :after AND id <= :newest
  ORDER BY id LIMIT :limit) AS page
"""

_PAGE = f"""
SELECT {", ".join(COLUMNS)} FROM results
WHERE campaign = :name AND run_number > :after AND run_number <= :last
ORDER BY run_number, bytes, operation
"""


@dataclass(frozen=True)
class Results:
    """The measurements of campaigns; each iteration reads them again, page by page.

    Rows are ordered by campaign, run and size, values as in ``columns``. A run without
    measurements has one row, in which they are empty. Later runs than ``newest`` are left out.

    Attributes:
        campaigns: names of the campaigns by number.
        newest: number of the last run.
        variables: all variables that a run of the campaigns set, sorted.
    """

    url: str
    campaigns: Mapping[int, str]
    newest: int
    variables: tuple[str, ...]

    @property
    def columns(self) -> dict[str, type]:
        """``COLUMNS``, followed by a column for each variable, empty where it was not set."""
        return {**COLUMNS, **{f"{_VARIABLE}{name}": str for name in self.variables}}

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        ends: dict[str, tuple[Any, ...]] = {}
        pages = self._asked_pages if is_service(self.url) else self._stored_pages
        for page in pages():
            yield from filter(None, (self._row(row, ends) for row in page))

    def _stored_pages(self) -> Iterator[Iterable[Sequence[Any]]]:
        with open_for_reading(self.url, snapshot=False) as rows:
            for number, name in self.campaigns.items():
                asked = {"campaign": number, "newest": self.newest, "limit": _PAGE_RUNS}
                after: int | None = 0
                while after is not None:
                    page, after = _read_rows(rows, name, {**asked, "after": after})
                    yield page

    def _asked_pages(self) -> Iterator[Iterable[Sequence[Any]]]:
        from commtune.db import remote

        for name in self.campaigns.values():
            for page in remote.results_pages(self.url, name, newest=self.newest):
                yield remote.read_answer(self.url, partial(_in_our_order, page))

    def _row(self, row: Sequence[Any], ends: dict[str, tuple[Any, ...]]) -> tuple[Any, ...]:
        """Returns the values of a row; an empty tuple if its configuration is damaged."""
        *values, written = row
        if (end := ends.get(written)) is None:
            read = {"run_id": row[_RUN], "environment": written}
            sound = read_rows([read], "configuration of run", "run_id")
            ends[written] = end = (
                (written, *(sound[0]["environment"].get(name) for name in self.variables))
                if sound
                else ()
            )
        return (*values, *end) if end else ()


def _in_our_order(page: ResultsPage) -> list[list[Any]]:
    # A newer service may have more columns, and an older one less.
    places = [page.columns.index(column) for column in COLUMNS]
    return [[row[place] for place in places] for row in page.rows]


def find_results(db: str | None, campaigns: Sequence[str] = ()) -> Results:
    """Returns the measurements of these campaigns, or of all if there are no names.

    Raises:
        UnknownName: there is no such campaign.
        NoAnswer: there is no database yet.
    """
    if is_service(url := database_url(db)):
        return _ask_for_results(url, campaigns)
    with open_for_reading(url) as rows:
        stored = read_rows(rows(_CAMPAIGNS, {}), "campaigns")
        known = {row["name"]: row["id"] for row in stored}
        for name in campaigns:
            if name not in known:
                raise unknown_campaign(rows, name)
        chosen = {known[name]: name for name in dict.fromkeys(campaigns or known)}
        newest = rows(_NEWEST, {})[0]["newest"] or 0
        variables = {one for number in chosen for one in _variables(rows, number, newest)}
    return Results(url, chosen, newest, tuple(sorted(variables)))


def _ask_for_results(url: str, campaigns: Sequence[str]) -> Results:
    from commtune.db import remote  # imported here, to start faster without a service

    names = dict.fromkeys(campaigns or [one.name for one in remote.list_campaigns(url)][::-1])
    heads = {name: next(remote.results_pages(url, name, limit=1)) for name in names}
    return Results(
        url,
        {head.campaign_id: name for name, head in heads.items()},
        max((head.newest for head in heads.values()), default=0),
        tuple(sorted({one for head in heads.values() for one in head.variables})),
    )


def read_results_page(
    db: str | None,
    campaign: str,
    *,
    after: int = 0,
    newest: int | None = None,
    limit: int = _PAGE_RUNS,
) -> ResultsPage:
    """Returns a page of a campaign's measurements.

    Args:
        after: number of the last run on the page before; 0 for the first page.
        newest: ``ResultsPage.newest`` of the first page; ``None`` for that page.

    Raises:
        UnknownName: there is no such campaign.
        NoAnswer: there is no database yet.
    """
    with keep_open(db), open_for_reading(db) as rows:
        found = find_results(db, [campaign])
        (number,) = found.campaigns
        newest = found.newest if newest is None else newest
        asked = {"campaign": number, "newest": newest, "limit": limit, "after": after}
        page, following = _read_rows(rows, campaign, asked)
    variables, columns = found.variables, tuple(COLUMNS)
    return ResultsPage(number, newest, variables, columns, tuple(map(tuple, page)), following)


def _variables(rows: Rows, campaign: int, newest: int) -> set[str]:
    stored = rows(_CONFIGURATIONS, {"campaign": campaign, "newest": newest})
    sound = read_rows(stored, "configurations")
    return {variable for row in sound for variable in row["environment"]}


def _read_rows(
    rows: Rows, name: str, asked: Mapping[str, int]
) -> tuple[Iterable[list[Any]], int | None]:
    """Returns a page of rows and the number of its last run; ``None`` after the last page."""
    last = rows(_LAST, asked)[0]["last"]
    if last is None:
        return (), None
    page = rows(_PAGE, {"name": name, "after": asked["after"], "last": last})
    sound = read_rows(page, "results of run", "run")
    return [list(row.values()) for row in sound], last
