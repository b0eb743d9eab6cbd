"""Reads the costs of successful runs, and other data of their records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import JSON, ColumnElement, Select, case, func, literal_column, select, type_coerce

from commtune.db.storage.rows import Transactions
from commtune.db.tables import MEASUREMENTS, RUNS
from commtune.model import Outcome, Phase
from commtune.model.run_costs import RunCost

#: The most runs whose costs are read: more of them hardly change the medians.
_MOST_COSTS = 10_000


class StoredRunCosts(Transactions):
    """Figures of a campaign's successful runs; a part of ``Store``."""

    def traffic(self, campaign_id: int) -> tuple[float, float] | None:
        """Returns the least and the largest rate of an aggressor during runs, in Gbit/s.

        ``None`` without an aggressor, or without its records.
        """
        rate = RUNS.c.header[("beside", "gigabits_per_s")].as_float()
        good = (*_good_runs(campaign_id), *self._are_json(RUNS.c.header))
        asked = select(func.min(rate), func.max(rate)).where(*good)
        ((least, most),) = self._rows(asked)
        return None if least is None else (least, most)

    def parts(self, campaign_id: int) -> dict[str, list[dict[str, Any]]]:
        """Returns the parts of an operation that runs measured separately, by run."""
        rows = self._rows(
            select(RUNS.c.run_id, RUNS.c.footer).where(*_good_runs(campaign_id)), "runs", "run_id"
        )
        return {row.run_id: found for row in rows if (found := (row.footer or {}).get("parts"))}

    def costs(self, campaign_id: int, most: int = _MOST_COSTS) -> dict[str, RunCost]:
        """Returns the costs of runs by their parts, by run, as far as records have them.

        Runs of guards are left out: they measure several operations. Of more than ``most`` runs,
        about that many are taken, evenly spaced.
        """
        good = [*_good_runs(campaign_id), RUNS.c.phase != str(Phase.GUARD)]
        ((runs,),) = self._rows(select(func.count()).where(*good))
        if (step := -(-runs // most)) > 1:
            good.append(RUNS.c.id % step == 0)
        # Headers are long, because they list every rank; so only these keys are read.
        said, ended = type_coerce(RUNS.c.header, JSON), type_coerce(RUNS.c.footer, JSON)
        header = {name: said[(name,)].label(name) for name in ("init_s", "library")}
        footer = {name: ended[(name,)].label(name) for name in ("elapsed_s", "measure_s")}
        columns = (*header.values(), *footer.values())
        rows = self._rows(
            select(RUNS.c.id, RUNS.c.run_id, RUNS.c.wall_s, RUNS.c.end_s, *columns)
            .where(*good, *self._are_json(RUNS.c.header, RUNS.c.footer))
            .order_by(RUNS.c.id),
            "runs",
        )
        calls = dict(self._rows(_first_calls(good)))
        found = {
            row.run_id: RunCost.from_records(
                row.wall_s or 0.0,
                row.end_s,
                calls.get(row.id),
                {name: getattr(row, name) for name in header},
                {name: getattr(row, name) for name in footer},
            )
            for row in rows
        }
        return {run_id: cost for run_id, cost in found.items() if cost is not None}

    def _are_json(self, *columns: ColumnElement[Any]) -> list[ColumnElement[bool]]:
        """Returns the conditions for JSON: SQLite fails on a path into other text.

        A server's JSON type holds nothing else.
        """
        if self.database.engine.dialect.name != "sqlite":
            return []
        return [func.json_valid(func.coalesce(one, literal_column("'null'"))) for one in columns]


def _good_runs(campaign_id: int) -> tuple[Any, ...]:
    return RUNS.c.campaign_id == campaign_id, RUNS.c.outcome == str(Outcome.OK)


def _first_calls(runs: Sequence[Any]) -> Select[Any]:
    """Selects the total time (seconds) of the first calls, of runs that have it at every size."""
    first = MEASUREMENTS.c.first_call_s
    # In SQLite a damaged number may be text, which it sums as 0 and compares as greater.
    is_number = first < 1e300
    return (
        select(RUNS.c.id, func.sum(first))
        .join(MEASUREMENTS, MEASUREMENTS.c.run_id == RUNS.c.id)
        .where(*runs)
        .group_by(RUNS.c.id)
        .having(func.count() == func.sum(case((is_number, 1), else_=0)))
    )
