"""All campaigns with what they did so far, counted by the database."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from sqlalchemy import Connection, RowMapping, func, select

from commtune.db.locks import LockOwner, death_of, describe_holder
from commtune.db.records import BestGain, CampaignSummary
from commtune.db.storage.jobs import node_hours_by_campaign, open_jobs_by_campaign
from commtune.db.tables import Campaign, Lock, ProfilePoint, ProfileRow, Run, Stack, System, Trial
from commtune.model import Verdict
from commtune.tuner.statistics.intervals import FEWEST_PAIRS
from commtune.tuner.statistics.machine_states import ALL


def read_summaries(connection: Connection) -> list[CampaignSummary]:
    """All campaigns, newest first."""
    totals = _run_totals(connection)
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
            **{name: row[name] for name in (*taken, "finished")},
            trials=n_trials.get(row["id"], 0),
            profiles=n_profiles.get(row["id"], 0),
            best=best.get(row["id"]),
            locked_by=held.get(row["id"], ""),
            jobs=tuple(jobs.get(row["id"], ())),
            node_hours=node_hours.get(row["id"], 0.0),
            aggressor=row["what"].get("aggressor"),
            **totals[row["id"]],
        )
        for row in rows
    ]


def _run_totals(connection: Connection) -> Mapping[int, dict[str, Any]]:
    """What runs came to, and the seconds that they took, by campaign."""
    found: dict[int, dict[str, Any]] = defaultdict(
        lambda: {"outcomes": {}, "open_runs": 0, "wall_s": 0.0, "last_run": None}
    )
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
    for row in rows:
        total = found[row.campaign_id]
        total["last_run"] = max(total["last_run"] or row.last_run, row.last_run)
        if row.state == "stored":
            total["outcomes"][row.outcome] = row.runs
            total["wall_s"] += row.wall_s or 0.0
        elif row.state == "running":
            total["open_runs"] += row.runs
    return found


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
        row["campaign_id"]: describe_holder(row)
        for row in rows
        if not death_of(LockOwner.from_row(row), us, 0.0, math.inf)
    }
