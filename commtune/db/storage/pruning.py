"""Prunes old campaigns: deletes samples and output of runs that no profile depends on."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, exists, func, or_, select, update

from commtune.db.checked_columns import sound_rows
from commtune.db.connection import location
from commtune.db.connection.read_only import require_private
from commtune.db.storage.campaigns import require_idle
from commtune.db.tables import CAMPAIGNS, MEASUREMENTS, PROFILES, RUNS, TRIALS
from commtune.model import Phase


@dataclass(frozen=True)
class OldCampaign:
    """A campaign that may be pruned.

    Attributes:
        folder: the folder with its record files; empty if another site measured it.
        runs: number of runs that would lose samples or output.
        stored: names (``run_id``) of all its stored runs.
    """

    id: int
    name: str
    folder: str
    runs: int
    stored: frozenset[str]


def find_old_campaigns(connection: Connection, before: float) -> list[OldCampaign]:
    """Returns the campaigns that were created, finished and last run before a moment, by name.

    Args:
        before: seconds since 1970. The times of replayed runs are not of this clock.

    Raises:
        DamagedRows: a campaign's row is damaged.
    """
    ended = func.max(RUNS.c.started_at + func.coalesce(RUNS.c.wall_s, 0.0))
    last = select(ended).where(RUNS.c.campaign_id == CAMPAIGNS.c.id).scalar_subquery()
    names = ("id", "name", "folder", "site", "created", "finished")
    campaigns = select(*(CAMPAIGNS.c[name] for name in names), last.label("last"))
    found = []
    for row in sound_rows(connection, campaigns.order_by(CAMPAIGNS.c.name), "campaigns"):
        if max(row.last or 0.0, row.created, row.finished or 0.0) >= before:
            continue
        of_runs = select(func.count()).select_from(RUNS).where(*_is_prunable(row.id))
        is_stored = RUNS.c.campaign_id == row.id, RUNS.c.state == "stored"
        stored = connection.execute(select(RUNS.c.run_id).where(*is_stored)).scalars()
        runs = connection.execute(of_runs).scalar_one()
        folder = "" if row.site else row.folder
        found.append(OldCampaign(row.id, row.name, folder, runs, frozenset(stored)))
    return found


def prune_campaign(connection: Connection, campaign_id: int) -> None:
    """Deletes samples and output of search and ablation runs that no profile depends on.

    Raises:
        UserError: some of its jobs are not over.
        CampaignLocked: a controller works on it.
    """
    require_idle(connection, campaign_id, "pruned")
    pruned = _is_prunable(campaign_id)
    measured = MEASUREMENTS.c.run_id.in_(select(RUNS.c.id).where(*pruned))
    connection.execute(update(MEASUREMENTS).where(measured).values(samples=b""))
    connection.execute(update(RUNS).where(*pruned).values(output_tail=""))


def _is_prunable(campaign_id: int) -> list[ColumnElement[bool]]:
    """Returns the conditions for the runs of a campaign that can be pruned."""
    mine = RUNS.c.campaign_id == campaign_id
    # A profile that keeps the default depends on no particular block.
    default = select(TRIALS.c.configuration_id).where(
        TRIALS.c.campaign_id == campaign_id, TRIALS.c.number == 0
    )
    recommended = select(PROFILES.c.configuration_id).where(
        PROFILES.c.campaign_id == campaign_id, PROFILES.c.configuration_id.not_in(default)
    )
    kept = select(RUNS.c.block).where(mine, RUNS.c.configuration_id.in_(recommended))
    samples = exists().where(
        MEASUREMENTS.c.run_id == RUNS.c.id, func.length(MEASUREMENTS.c.samples) > 0
    )
    return [
        mine,
        RUNS.c.state == "stored",
        RUNS.c.phase.in_((Phase.SEARCH, Phase.ABLATE)),
        RUNS.c.block.not_in(kept),
        or_(RUNS.c.output_tail != "", samples),
    ]


def shrink_file(url: str) -> None:
    """Returns the space of deleted data to the disk; a server does that by itself.

    Raises:
        DatabaseFault: another program holds the file, the disk has no space for a copy, or others
            can write the file.
    """
    if (path := location.sqlite_path(url)) is None:
        return
    require_private(path)
    try:
        with closing(sqlite3.connect(path, timeout=location.wait_s())) as connection:
            connection.execute("VACUUM")
    except sqlite3.Error as error:
        raise location.explain_fault(str(error), str(path)) from error
