"""The statements that read for a controller, each inside a transaction of the caller's."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, func, select

from commtune import model
from commtune.db.codec import unpack_samples
from commtune.db.locks import LockOwner, death_of, describe_holder, owner_of
from commtune.db.storage.jobs import node_hours_by_campaign, open_jobs_by_campaign
from commtune.db.storage.records import (
    BestGain,
    CampaignSummary,
)
from commtune.db.tables import (
    Campaign,
    ConfigurationRow,
    Lock,
    MeasurementRecord,
    ProfilePoint,
    ProfileRow,
    Run,
    Stack,
    System,
    Trial,
)
from commtune.errors import UnknownName
from commtune.model import (
    Configuration,
    Measurement,
    Outcome,
    Phase,
    RunRequest,
    Timing,
    Verdict,
    Workload,
)
from commtune.tuner.statistics.intervals import FEWEST_PAIRS
from commtune.tuner.statistics.machine_states import ALL

#: What a run is compared by, by its name in ``model.Measurement``; samples are read on demand.
_MEASURED = {
    "bytes": MeasurementRecord.size,
    **{
        name: getattr(MeasurementRecord, name)
        for name in (
            "median_s", "min_s", "mean_s", "p95_s", "max_s", "algbw", "busbw", "batch",
            "canary_s", "canary_after_s", "wrong", "operation",
        )
    },
}  # fmt: skip


def read_trials(connection: Connection, campaign_id: int) -> list[model.Trial]:
    """The campaign's trials by number."""
    rows = connection.execute(
        select(
            Trial.number,
            ConfigurationRow.environment,
            Trial.origin,
            Trial.label,
            Trial.created,
        )
        .join(ConfigurationRow, ConfigurationRow.id == Trial.configuration_id)
        .where(Trial.campaign_id == campaign_id)
        .order_by(Trial.number)
    )
    return [
        model.Trial(row.number, Configuration(row.environment), row.origin, row.label, row.created)
        for row in rows
    ]


def open_runs(
    connection: Connection, campaign_id: int, block: int | None = None
) -> list[RunRequest]:
    """Runs that were registered and not stored, in the order they were started."""
    asked = _run_select(Run.workload, Run.timing).where(
        Run.campaign_id == campaign_id, Run.state == "running"
    )
    if block is not None:
        asked = asked.where(Run.block == block)
    rows = connection.execute(asked.order_by(Run.id))
    return [
        RunRequest(
            run_id=row.run_id,
            configuration=Configuration(row.environment),
            workload=Workload.of_plain(row.workload),
            timing=Timing(**row.timing),
            phase=Phase(row.phase),
            trial=row.number,
            block=row.block,
            position=row.position,
        )
        for row in rows
    ]


def runs_after(
    connection: Connection, campaign_id: int, last: int, count: int
) -> tuple[list[model.Run], int]:
    """The next stored runs behind row ``last``, and the row that they end at."""
    names = (Run.session, Run.outcome, Run.operation, Run.wall_s, Run.oversubscribed, Run.detail)
    where = (Run.nodes, Run.distance)
    then = Run.workload["then"].label("then")
    rows = connection.execute(
        _run_select(Run.id, Run.started_at, Run.other_load, *names, *where, then)
        .where(Run.campaign_id == campaign_id, Run.id > last, Run.state == "stored")
        .order_by(Run.id)
        .limit(count)
    ).all()
    if not rows:
        return [], last
    measured = _measurements(connection, campaign_id, rows[0].id, rows[-1].id)
    return [_stored_run(row, tuple(measured.get(row.id, ()))) for row in rows], rows[-1].id


def read_samples(connection: Connection, run_id: str, size: int) -> tuple[float, ...]:
    """Samples of one size of one run, seconds, in the order taken.

    Raises:
        UnknownName: that run has no such size.
    """
    blob = connection.execute(
        select(MeasurementRecord.samples)
        .join(Run, Run.id == MeasurementRecord.run_id)
        .where(
            Run.run_id == run_id,
            MeasurementRecord.size == size,
            MeasurementRecord.operation == Run.operation,
        )
        .limit(1)
    ).scalar()
    if blob is None:
        raise UnknownName(f"run {run_id} has no measurement at {size} bytes")
    return unpack_samples(blob)


def read_traffic(connection: Connection, campaign_id: int) -> tuple[float, float] | None:
    """The least and the most that an aggressor sent beside a run that counts, 10^9 bits a second.

    ``None`` where there was none, or its records were not there.
    """
    rate = Run.header[("beside", "gigabits_per_s")].as_float()
    least, most = connection.execute(
        select(func.min(rate), func.max(rate)).where(
            Run.campaign_id == campaign_id, Run.outcome == str(Outcome.OK)
        )
    ).one()
    return None if least is None else (least, most)


def read_parts(connection: Connection, campaign_id: int) -> dict[str, list[dict[str, Any]]]:
    """The parts that good runs measured by themselves, by run; see ``codec.pieces_json``."""
    rows = connection.execute(
        select(Run.run_id, Run.footer).where(
            Run.campaign_id == campaign_id, Run.outcome == str(Outcome.OK)
        )
    )
    return {row.run_id: found for row in rows if (found := (row.footer or {}).get("parts"))}


def read_summaries(connection: Connection) -> list[CampaignSummary]:
    """All campaigns, newest first."""
    counts = _run_counts(connection)
    n_trials = _count_by_campaign(connection, Trial)
    n_profiles = _count_by_campaign(connection, ProfileRow)
    best, held = _best_gains(connection), _holders(connection)
    jobs, node_hours = open_jobs_by_campaign(connection), node_hours_by_campaign(connection)
    rows = connection.execute(
        select(Campaign.__table__, System.name.label("system"), Stack.text.label("stack"))
        .join(System, System.id == Campaign.system_id)
        .join(Stack, Stack.id == Campaign.stack_id)
        .order_by(Campaign.created.desc(), Campaign.id.desc())
    ).mappings()
    taken = ("id", "name", "system", "stack", "simulated", "folder", "settings", "created")
    return [
        CampaignSummary(
            **{name: row[name] for name in taken},
            finished=row["finished"],
            trials=n_trials.get(row["id"], 0),
            profiles=n_profiles.get(row["id"], 0),
            best=best.get(row["id"]),
            locked_by=held.get(row["id"], ""),
            jobs=tuple(jobs.get(row["id"], ())),
            node_hours=node_hours.get(row["id"], 0.0),
            aggressor=row["what"].get("aggressor"),
            **_run_totals(counts.get(row["id"], [])),
        )
        for row in rows
    ]


def _run_select(*columns: Any) -> Select[Any]:
    return (
        select(
            Run.run_id,
            Run.phase,
            Run.block,
            Run.position,
            Trial.number,
            ConfigurationRow.environment,
            *columns,
        )
        .join(Trial, Trial.id == Run.trial_id)
        .join(ConfigurationRow, ConfigurationRow.id == Run.configuration_id)
    )


def _stored_run(row: Any, measured: tuple[Measurement, ...]) -> model.Run:
    return model.Run(
        run_id=row.run_id,
        trial=row.number,
        configuration=Configuration(row.environment),
        phase=Phase(row.phase),
        block=row.block,
        position=row.position,
        session=row.session,
        outcome=Outcome(row.outcome),
        operation=row.operation,
        started_at=row.started_at,
        wall_s=row.wall_s or 0.0,
        oversubscribed=row.oversubscribed,
        detail=row.detail,
        measurements=measured,
        other_load=row.other_load,
        nodes=tuple(row.nodes.split(",")) if row.nodes else (),
        distance=row.distance or "",
        then=tuple(row.then or ()),
    )


def _measurements(
    connection: Connection, campaign_id: int, first: int, last: int
) -> Mapping[int, list[Measurement]]:
    rows = connection.execute(
        select(MeasurementRecord.run_id, *_MEASURED.values())
        .join(Run, Run.id == MeasurementRecord.run_id)
        .where(Run.campaign_id == campaign_id, Run.id.between(first, last))
        .order_by(MeasurementRecord.run_id, MeasurementRecord.place)
    )
    found: dict[int, list[Measurement]] = defaultdict(list)
    for run_id, *values in rows:
        found[run_id].append(Measurement(**dict(zip(_MEASURED, values, strict=True))))
    return found


def _run_counts(connection: Connection) -> Mapping[int, list[Any]]:
    rows = connection.execute(
        select(
            Run.campaign_id,
            Run.state,
            Run.outcome,
            func.count().label("runs"),
            func.sum(Run.wall_s).label("wall_s"),
            func.max(Run.started_at).label("last_run"),
        ).group_by(Run.campaign_id, Run.state, Run.outcome)
    )
    found: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        found[row.campaign_id].append(row)
    return found


def _run_totals(rows: list[Any]) -> dict[str, Any]:
    stored = [row for row in rows if row.state == "stored"]
    return {
        "outcomes": {row.outcome: row.runs for row in stored},
        "open_runs": sum(row.runs for row in rows if row.state == "running"),
        "wall_s": sum(row.wall_s or 0.0 for row in stored),
        "last_run": max((row.last_run for row in rows), default=None),
    }


def _count_by_campaign(
    connection: Connection, table: type[Trial] | type[ProfileRow]
) -> Mapping[int, int]:
    rows = connection.execute(
        select(table.campaign_id, func.count().label("rows")).group_by(table.campaign_id)
    )
    return {row.campaign_id: row.rows for row in rows}


def _best_gains(connection: Connection) -> Mapping[int, BestGain]:
    rows = connection.execute(
        select(
            ProfileRow.campaign_id,
            ProfileRow.name,
            ProfileRow.backend,
            ProfileRow.ranks,
            ProfileRow.nodes,
            ProfilePoint.__table__,
        )
        .join(ProfilePoint, ProfilePoint.profile_id == ProfileRow.id)
        .where(
            ProfilePoint.is_guard.is_(False),
            ProfileRow.verdict == str(Verdict.FASTER),
            ProfilePoint.size.between(ProfileRow.bytes_low, ProfileRow.bytes_high),
        )
        .order_by(ProfilePoint.low)
    ).mappings()
    found = list(rows)
    overall = {_size_of(row) for row in found if _is_overall(row)}
    taken = [field.name for field in fields(BestGain) if field.name != "profile"]
    # In rising order: the last one of a campaign is its best.
    return {
        row["campaign_id"]: BestGain(row["name"], **{name: row[name] for name in taken})
        for row in found
        if row["verdict"] == str(Verdict.FASTER)
        # As `best` has it: one machine state counts only where all of them together don't.
        and (_is_overall(row) or _size_of(row) not in overall)
    }


def _size_of(row: RowMapping) -> tuple[int, int]:
    return row["profile_id"], row["bytes"]


def _is_overall(row: RowMapping) -> bool:
    return bool(row["speed"] == ALL and row["pairs"] >= FEWEST_PAIRS)


def _holders(connection: Connection) -> Mapping[int, str]:
    """Who works on what, but for those seen to be dead; silence may be a long run."""
    us = LockOwner.current()
    rows = connection.execute(select(Lock.__table__)).mappings()
    return {
        row["campaign_id"]: describe_holder(row["host"], row["pid"], row["since"])
        for row in rows
        if not death_of(owner_of(row), us, 0.0, math.inf)
    }
