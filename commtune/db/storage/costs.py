"""What stored runs cost, part by part."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, func, select

from commtune.db.tables import MeasurementRecord, Run
from commtune.model import Outcome, Phase
from commtune.model.run_costs import RunCost, cost_from

_HEADER = {"init_s": ("init_s",), "library": ("library",)}
_FOOTER = {"elapsed_s": ("elapsed_s",), "measure_s": ("measure_s",)}


def run_costs(connection: Connection, campaign_id: int) -> dict[str, RunCost]:
    """Good runs of a campaign whose records tell what they cost, by run, in their order.

    Those of guards are left out: other operations, several in a run.
    """
    calls = _first_calls(connection, campaign_id)
    # Only what is needed of headers, which are long: they name every rank.
    header = [Run.header[path].label(name) for name, path in _HEADER.items()]
    footer = [Run.footer[path].label(name) for name, path in _FOOTER.items()]
    rows = connection.execute(
        select(Run.id, Run.run_id, Run.wall_s, Run.end_s, *header, *footer)
        .where(
            Run.campaign_id == campaign_id,
            Run.outcome == str(Outcome.OK),
            Run.phase != str(Phase.GUARD),
        )
        .order_by(Run.id)
    )
    found = {}
    for row in rows.mappings():
        said = [{name: row[name] for name in names} for names in (_HEADER, _FOOTER)]
        told = cost_from(row["wall_s"] or 0.0, row["end_s"], calls.get(row["id"]), *said)
        if told is not None:
            found[row["run_id"]] = told
    return found


def _first_calls(connection: Connection, campaign_id: int) -> Mapping[int, float]:
    """Seconds of the first calls of all sizes, by row, of runs that have them of every size."""
    first = MeasurementRecord.first_call_s
    rows = connection.execute(
        select(Run.id, func.sum(first))
        .join(MeasurementRecord, MeasurementRecord.run_id == Run.id)
        .where(Run.campaign_id == campaign_id, Run.outcome == str(Outcome.OK))
        .group_by(Run.id)
        .having(func.count() == func.count(first))
    )
    return {number: called_s for number, called_s in rows if called_s is not None}
