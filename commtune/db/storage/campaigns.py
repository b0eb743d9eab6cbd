"""Creates, updates, renames and deletes campaigns, in a transaction of the caller."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Table, delete, exists, select, text, update

from commtune.db.checked_columns import sound_rows
from commtune.db.codec import list_differences, to_json_value
from commtune.db.lock_owner import LockOwner
from commtune.db.locks import acquire_lock, release_lock
from commtune.db.records import CampaignHandle, CampaignRecord
from commtune.db.settings import rename_verified
from commtune.db.storage.jobs import list_open_jobs
from commtune.db.storage.rows import ensure_row
from commtune.db.tables import CAMPAIGNS, METADATA, RUNS, SHARED, STACKS, SYSTEMS, rows_of_campaign
from commtune.errors import CampaignChanged, UserError
from commtune.model import JobKind, Outcome, content_key


def open_campaign(connection: Connection, spec: CampaignRecord) -> CampaignHandle:
    """Creates a campaign, or finds the stored one, which it may rename but doesn't change.

    Raises:
        CampaignChanged: it is stored with another ``what``, system or stack.
        CampaignLocked: it could start over, but a controller works on it.
    """
    what, known = to_json_value(spec.what), _as_stored(connection, spec)
    campaign_id = ensure_row(
        connection,
        CAMPAIGNS,
        CAMPAIGNS.c.name,
        spec.name,
        content_key=content_key(what),
        what=what,
        seed=spec.seed,
        system_id=_described(connection, SYSTEMS, spec.system, name=spec.system.name),
        stack_id=_described(connection, STACKS, known.stack, text=known.stack.text),
        simulated=spec.simulated,
        site="",
        created=time.time(),
        finished=None,
        **_changeable(spec),
    )
    stored = _stored_campaign(connection, campaign_id)
    changes = list_differences(stored.what, what) + _list_changes(known, stored)
    if not changes:
        return CampaignHandle(campaign_id, spec.name)
    hint = "give the campaign another name, or undo the change"
    # With a wrong partition, a misspelt program or a pattern that fails, every run fails. A user
    # then corrects it and repeats the command. There are no measurements that could be mixed with
    # the new ones, but the failures must not count against configurations that are tried with the
    # corrected settings. So the stored campaign is renamed, and a new one is created.
    if _may_begin_anew(connection, campaign_id):
        # An allocation that isn't over would continue the campaign with its earlier settings.
        jobs = list_open_jobs(connection, campaign_id)
        if all(job.kind is not JobKind.ALLOCATION for job in jobs):
            earlier = _rename_stale(connection, campaign_id, spec.name)
            handle = open_campaign(connection, spec)
            return replace(handle, earlier=earlier, earlier_id=campaign_id, changes=tuple(changes))
        hint = f"no run has succeeded so far: after 'commtune cancel {spec.name}', it starts over"
    raise CampaignChanged(
        f"campaign {spec.name} was started with a different question; changed since "
        "(stored -> now):" + "".join(f"\n  {change}" for change in changes),
        hint=hint,
    )


def update_campaign(connection: Connection, campaign_id: int, spec: CampaignRecord) -> bool:
    """Stores settings, space and folder of a campaign, for the holder of its lock.

    Other settings, such as a larger budget, reopen a finished campaign.

    Returns:
        Whether the campaign is finished.
    """
    this, values = CAMPAIGNS.c.id == campaign_id, _changeable(spec)
    asked = select(CAMPAIGNS.c.id, CAMPAIGNS.c.settings, CAMPAIGNS.c.finished).where(this)
    (stored,) = sound_rows(connection, asked, "campaigns")
    has_more = bool(list_differences(stored.settings, to_json_value(spec.settings)))
    if has_more:
        values["finished"] = None
    connection.execute(update(CAMPAIGNS).where(this).values(**values))
    return stored.finished is not None and not has_more


def rename_campaign(connection: Connection, campaign_id: int, name: str) -> None:
    """Gives a campaign another name, also where verifications of its profiles have it.

    Raises:
        UserError: another campaign has it, or some of its jobs are not over.
        CampaignLocked: a controller works on it.
    """
    require_idle(connection, campaign_id, "renamed")
    if connection.execute(select(CAMPAIGNS.c.id).where(CAMPAIGNS.c.name == name)).first():
        raise UserError(f"campaign {name} already exists", hint="choose another name")
    this = CAMPAIGNS.c.id == campaign_id
    before = connection.execute(select(CAMPAIGNS.c.name).where(this)).scalar_one()
    connection.execute(update(CAMPAIGNS).where(this).values(name=name))
    asked = select(CAMPAIGNS.c.id, CAMPAIGNS.c.settings)
    for one in sound_rows(connection, asked, "campaigns", tell=lambda _: None):
        settings = rename_verified(one.settings, lambda of: name if of == before else of)
        if settings != one.settings:
            those = update(CAMPAIGNS).where(CAMPAIGNS.c.id == one.id)
            connection.execute(those.values(settings=settings))


def delete_campaign(connection: Connection, campaign_id: int) -> None:
    """Deletes a campaign with all its runs, decisions and profiles.

    Systems, software stacks and configurations stay: other campaigns share them.

    Raises:
        UserError: some of its jobs are not over.
        CampaignLocked: a controller works on it.
    """
    require_idle(connection, campaign_id, "deleted")
    delete_rows(connection, campaign_id)


def delete_rows(connection: Connection, campaign_id: int) -> None:
    """Deletes all rows of a campaign, except those that campaigns share."""
    # In reverse order of foreign keys: rows that refer to others are deleted first.
    for table in reversed(METADATA.sorted_tables):
        if table.name not in SHARED:
            mine = text(rows_of_campaign(table.name)).bindparams(campaign=campaign_id)
            connection.execute(delete(table).where(mine))


def require_idle(connection: Connection, campaign_id: int, done: str) -> None:
    """Refuses a change of a campaign that has a controller or jobs.

    Args:
        done: the change, as a participle for the message.

    Raises:
        UserError: some of its jobs are not over.
        CampaignLocked: a controller works on it.
    """
    _require_unlocked(connection, campaign_id)
    if jobs := list_open_jobs(connection, campaign_id):
        numbers = ", ".join(job.number or "not submitted yet" for job in jobs)
        raise UserError(
            f"it can't be {done}: some of its jobs are not over ({numbers})",
            hint="'commtune cancel NAME' ends them",
        )


def _changeable(spec: CampaignRecord) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in ("settings", "space", "space_key", "folder")}


def _described(connection: Connection, table: Table, known: Any, **words: str) -> int:
    """Returns the number of the row of a system or stack, which is created if missing."""
    return ensure_row(
        connection,
        table,
        table.c.fingerprint,
        known.fingerprint,
        description=known.description,
        created=time.time(),
        **words,
    )


def _as_stored(connection: Connection, spec: CampaignRecord) -> CampaignRecord:
    """Returns a campaign with its stack in the form that the stored one of its name has."""
    asked = (
        select(STACKS.c.id, STACKS.c.description)
        .join(CAMPAIGNS, CAMPAIGNS.c.stack_id == STACKS.c.id)
        .where(CAMPAIGNS.c.name == spec.name)
    )
    for stored in sound_rows(connection, asked, "stacks"):
        return replace(spec, stack=spec.stack.as_known_to(stored.description))
    return spec


def _stored_campaign(connection: Connection, campaign_id: int) -> Any:
    asked = (
        select(
            CAMPAIGNS.c.id,
            CAMPAIGNS.c.what,
            SYSTEMS.c.fingerprint.label("system"),
            STACKS.c.fingerprint.label("stack"),
            STACKS.c.description.label("stack_description"),
            CAMPAIGNS.c.simulated,
            CAMPAIGNS.c.site,
        )
        .join(SYSTEMS, SYSTEMS.c.id == CAMPAIGNS.c.system_id)
        .join(STACKS, STACKS.c.id == CAMPAIGNS.c.stack_id)
        .where(CAMPAIGNS.c.id == campaign_id)
    )
    return sound_rows(connection, asked, "campaigns")[0]


def _list_changes(spec: CampaignRecord, stored: Any) -> list[str]:
    """Returns differences in system, stack, site and simulation, as ``key: stored -> now``."""
    now = {
        "system": spec.system.fingerprint,
        "stack": spec.stack.fingerprint,
        "simulated": spec.simulated,
        "site": "",
    }
    lines = list_differences({name: getattr(stored, name) for name in now}, now)
    described = stored.stack_description, to_json_value(spec.stack.description)
    if stored.stack == spec.stack.fingerprint or not all(described):
        return lines
    # The parts, such as versions, say more than the stack's fingerprint.
    parts = list_differences(*described, "stack")
    return [line for line in lines if not (parts and line.startswith("stack: "))] + parts


def _may_begin_anew(connection: Connection, campaign_id: int) -> bool:
    good = exists().where(RUNS.c.campaign_id == campaign_id, RUNS.c.outcome == str(Outcome.OK))
    return not connection.execute(select(good)).scalar()


def _rename_stale(connection: Connection, campaign_id: int, name: str) -> str:
    """Renames a stored campaign; returns its new name, empty if another program just did so."""
    _require_unlocked(connection, campaign_id)
    taken = set(connection.execute(select(CAMPAIGNS.c.name)).scalars())
    number = 1
    while f"{name}.{number}" in taken:
        number += 1
    this = update(CAMPAIGNS).where(CAMPAIGNS.c.id == campaign_id, CAMPAIGNS.c.name == name)
    renamed = connection.execute(this.values(name=f"{name}.{number}"))
    return f"{name}.{number}" if renamed.rowcount else ""


def _require_unlocked(connection: Connection, campaign_id: int) -> None:
    """Refuses a campaign with a controller, by acquiring and releasing its lock."""
    us = LockOwner.current()
    acquire_lock(connection, campaign_id, us, take_over=False)
    release_lock(connection, campaign_id, us)
