"""Campaigns without a single good run, which begin anew once their question is corrected.

A wrong partition, a misspelt program or a pattern that fails makes every run fail, and whoever
corrects it types the same command again. Nothing was measured then that could be mixed with what
comes. But failures were: these must not count against configurations that are tried under the
corrected settings. So what there is gets another name, with its runs and jobs, and the campaign is
made once more.
"""

from __future__ import annotations

from sqlalchemy import Connection, exists, select, update

from commtune.db import locks
from commtune.db.locks import LockOwner
from commtune.db.storage.jobs import open_jobs
from commtune.db.tables import Campaign, Run
from commtune.model import JobKind, Outcome


def may_begin(connection: Connection, campaign_id: int) -> bool:
    """Whether a campaign whose question changed may begin anew under its name."""
    good = exists().where(Run.campaign_id == campaign_id, Run.outcome == str(Outcome.OK))
    return not connection.execute(select(good)).scalar()


def waiting_allocation(connection: Connection, campaign_id: int) -> bool:
    """Whether a job that isn't over would go on with the campaign, under its earlier settings."""
    jobs = open_jobs(connection, campaign_id)
    return any(job.kind is JobKind.ALLOCATION for job in jobs)


def rename_stale(connection: Connection, campaign_id: int, name: str, stale_after_s: float) -> str:
    """Gives a stored campaign another name; returns it, empty if another program just did so.

    Raises:
        CampaignLocked: a controller works on it.
    """
    us = LockOwner.current()
    locks.acquire_lock(connection, campaign_id, us, stale_after_s=stale_after_s, take_over=False)
    locks.release_lock(connection, campaign_id, us)
    other = _free_name(connection, name)
    renamed = connection.execute(
        update(Campaign)
        .where(Campaign.id == campaign_id, Campaign.name == name)
        .values(name=other)
    )
    return other if renamed.rowcount else ""


def _free_name(connection: Connection, name: str) -> str:
    taken = set(connection.execute(select(Campaign.name)).scalars())
    number = 1
    while f"{name}.{number}" in taken:
        number += 1
    return f"{name}.{number}"
