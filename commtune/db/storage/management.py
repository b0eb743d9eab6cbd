"""Statements that change a whole campaign: its name, or that it is there at all."""

from __future__ import annotations

from sqlalchemy import Connection, delete, select, update

from commtune.db import locks
from commtune.db.locks import STALE_AFTER_S, LockOwner
from commtune.db.storage.jobs import open_jobs
from commtune.db.tables import Base, Campaign, MeasurementRecord, ProfilePoint, ProfileRow, Run
from commtune.errors import UserError


def rename_campaign(connection: Connection, campaign_id: int, name: str) -> None:
    """Gives a campaign another name.

    Raises:
        UserError: another campaign has it, or jobs would look for the old one.
        CampaignLocked: a controller works on it.
    """
    _require_idle(connection, campaign_id, "renamed")
    if connection.execute(select(Campaign.id).where(Campaign.name == name)).first():
        raise UserError(f"there is a campaign {name} already", hint="choose another name")
    renamed = update(Campaign).where(Campaign.id == campaign_id).values(name=name)
    connection.execute(renamed)


def delete_campaign(connection: Connection, campaign_id: int) -> None:
    """Deletes a campaign with all its runs, decisions and profiles.

    Systems, software stacks and configurations stay: other campaigns share them.

    Raises:
        UserError: jobs of it are not over.
        CampaignLocked: a controller works on it.
    """
    _require_idle(connection, campaign_id, "deleted")
    runs = select(Run.id).where(Run.campaign_id == campaign_id)
    connection.execute(delete(MeasurementRecord).where(MeasurementRecord.run_id.in_(runs)))
    profiles = select(ProfileRow.id).where(ProfileRow.campaign_id == campaign_id)
    connection.execute(delete(ProfilePoint).where(ProfilePoint.profile_id.in_(profiles)))
    # What refers to others goes before them.
    for table in reversed(Base.metadata.sorted_tables):
        if "campaign_id" in table.c:
            connection.execute(delete(table).where(table.c.campaign_id == campaign_id))
    connection.execute(delete(Campaign).where(Campaign.id == campaign_id))


def _require_idle(connection: Connection, campaign_id: int, done: str) -> None:
    """Takes the lock and gives it back, all in the caller's transaction."""
    us = LockOwner.current()
    locks.acquire_lock(connection, campaign_id, us, stale_after_s=STALE_AFTER_S, take_over=False)
    locks.release_lock(connection, campaign_id, us)
    if jobs := open_jobs(connection, campaign_id):
        numbers = ", ".join(job.number or "not submitted yet" for job in jobs)
        raise UserError(
            f"it can't be {done}: jobs of it are not over ({numbers})",
            hint="'commtune cancel NAME' ends them",
        )
