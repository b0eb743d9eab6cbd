"""Every measurement of campaigns, read in pages from the view ``results``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from commtune.db.checked_values import parse_json
from commtune.db.connection.location import Rows
from commtune.db.connection.reader import open_for_reading
from commtune.db.queries.description import unknown_campaign

#: Runs that are read at once: no reader holds many rows, and no writer waits for one.
_PAGE_RUNS = 200
#: What the name of a column begins with that holds the value of an environment variable.
VARIABLE = "env_"

#: The columns and what is in them; a ``datetime`` is a text (ISO 8601, UTC), a ``dict`` JSON.
#: docs/results.md says what they mean.
COLUMNS: Mapping[str, type] = {
    "campaign": str, "simulated": bool, "system": str, "stack": str,
    "run": str, "started": datetime, "phase": str, "block": int, "position": int,
    "trial": int, "origin": str, "outcome": str, "detail": str, "exit_code": int,
    "wall_s": float, "oversubscribed": bool, "other_load": float, "node_names": str,
    "distance": str, "backend": str, "ranks": int, "nodes": int, "dtype": str,
    "operation": str, "bytes": int, "median_s": float, "min_s": float, "mean_s": float,
    "p95_s": float, "max_s": float, "first_call_s": float, "algbw_bytes_per_s": float,
    "busbw_bytes_per_s": float, "samples": int, "batch": int, "wrong_elements": int,
    "canary_s": float, "canary_after_s": float, "configuration": dict,
}  # fmt: skip
_FLAGS = [place for place, kind in enumerate(COLUMNS.values()) if kind is bool]

_CAMPAIGNS = "SELECT id, name FROM campaigns ORDER BY created, id"

_NEWEST = "SELECT max(id) AS newest FROM runs"

_CONFIGURATIONS = """
SELECT environment FROM configurations WHERE id IN (
  SELECT configuration_id FROM runs WHERE campaign_id = :campaign AND id <= :newest)
"""

_LAST = f"""
SELECT max(id) AS last FROM (
  SELECT id FROM runs WHERE campaign_id = :campaign AND id > :after AND id <= :newest
  ORDER BY id LIMIT {_PAGE_RUNS}) AS page
"""

_PAGE = f"""
SELECT {", ".join(COLUMNS)} FROM results
WHERE campaign = :name AND run_number > :after AND run_number <= :last
ORDER BY run_number, bytes, operation
"""


@dataclass(frozen=True)
class Results:
    """The measurements of campaigns; each iteration reads them anew, a page of runs at a time.

    Rows are in the order of the campaigns, runs and sizes, values in that of ``columns``. A run
    that left no measurement has one row without any. Runs that begin after this was made are
    left out.

    Attributes:
        campaigns: their names by number.
        newest: the number of the last run.
        variables: those that a run of them set, sorted.
    """

    url: str
    campaigns: Mapping[int, str]
    newest: int
    variables: tuple[str, ...]

    @property
    def columns(self) -> dict[str, type]:
        """``COLUMNS``, and then one for each variable: empty where it was not set."""
        return {**COLUMNS, **{f"{VARIABLE}{name}": str for name in self.variables}}

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        ends: dict[str, tuple[Any, ...]] = {}
        with open_for_reading(self.url) as rows:
            for number, name in self.campaigns.items():
                for page in _pages(rows, {"campaign": number, "newest": self.newest}, name):
                    yield from (self._row(row, ends) for row in page)

    def _row(self, row: Any, ends: dict[str, tuple[Any, ...]]) -> tuple[Any, ...]:
        # sqlite3.Row looks a name up among all of them, for each value.
        *values, written = row.values() if isinstance(row, dict) else row
        for place in _FLAGS:
            values[place] = bool(values[place])
        if (end := ends.get(written)) is None:
            environment = json.loads(written)
            ends[written] = end = (written, *(environment.get(name) for name in self.variables))
        return (*values, *end)


def find_results(url: str, campaigns: Sequence[str] = ()) -> Results:
    """The measurements of these campaigns, or of all.

    Raises:
        UnknownName: there is no such campaign.
        NoAnswer: there is no database yet.
    """
    with open_for_reading(url) as rows:
        known = {row["name"]: row["id"] for row in rows(_CAMPAIGNS, {})}
        for name in campaigns:
            if name not in known:
                raise unknown_campaign(rows, name)
        chosen = {known[name]: name for name in dict.fromkeys(campaigns or known)}
        newest = rows(_NEWEST, {})[0]["newest"] or 0
        variables = {
            variable
            for number in chosen
            for row in rows(_CONFIGURATIONS, {"campaign": number, "newest": newest})
            for variable in parse_json(row["environment"])
        }
    return Results(url, chosen, newest, tuple(sorted(variables)))


def _pages(rows: Rows, asked: Mapping[str, int], name: str) -> Iterator[Sequence[Any]]:
    after = 0
    while True:
        last = rows(_LAST, {**asked, "after": after})[0]["last"]
        if last is None:
            return
        yield rows(_PAGE, {"name": name, "after": after, "last": last})
        after = last
