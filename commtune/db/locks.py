"""The lock of a campaign, which allows one controller at a time: acquire, refresh, release."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from commtune.db.checked_columns import sound_rows
from commtune.db.lock_owner import LockOwner, death_of, describe_holder
from commtune.db.tables import CAMPAIGNS, LOCKS
from commtune.errors import CampaignLocked

#: The silence after which a controller on another machine is considered dead, seconds.
_STALE_AFTER_S = 300.0


def find_holder(connection: Connection, campaign_id: int) -> tuple[LockOwner, float] | None:
    """Returns the holder of the lock, and since when (seconds since 1970); ``None`` if free."""
    row = _sound(connection, select(LOCKS).where(LOCKS.c.campaign_id == campaign_id))
    return (LockOwner.from_row(row), row["since"]) if row else None


def acquire_lock(
    connection: Connection, campaign_id: int, owner: LockOwner, *, take_over: bool
) -> str:
    """Acquires the lock in the given transaction; of several at once, one succeeds.

    Returns:
        Why an earlier holder lost it; empty if there was none, or ``owner`` has it already.

    Raises:
        CampaignLocked: another controller holds it and may live.
    """
    row = _row(connection, campaign_id)
    if row is None:
        _insert(connection, campaign_id, owner)
        row = _row(connection, campaign_id)
    if row is None:  # released at this moment
        raise _locked(connection, campaign_id, None)
    holder = LockOwner.from_row(row)
    if holder != owner:
        reason = death_of(holder, owner, time.time() - row["heartbeat"], _STALE_AFTER_S)
        reason = reason or ("it left its lock behind" if take_over else "")
        if not (reason and _replace(connection, row, owner)):
            raise _locked(connection, campaign_id, _row(connection, campaign_id) or row)
        return reason
    refresh_lock(connection, campaign_id, owner)
    return ""


def release_lock(connection: Connection, campaign_id: int, owner: LockOwner) -> None:
    """Releases the lock, unless it has another owner."""
    connection.execute(delete(LOCKS).filter_by(campaign_id=campaign_id, **asdict(owner)))


#: Built once, because building a statement takes longer than executing it.
_REFRESH = update(LOCKS).where(
    LOCKS.c.campaign_id == bindparam("its_campaign"),
    *(LOCKS.c[name] == bindparam(f"its_{name}") for name in LockOwner.__dataclass_fields__),
)


def refresh_lock(connection: Connection, campaign_id: int, owner: LockOwner | None) -> None:
    """Updates the heartbeat of the lock.

    Raises:
        CampaignLocked: the lock is no longer the owner's.
    """
    whose = {f"its_{name}": value for name, value in asdict(owner).items()} if owner else {}
    now = {"its_campaign": campaign_id, "heartbeat": time.time()}
    if not whose or connection.execute(_REFRESH, whose | now).rowcount != 1:
        raise _locked(connection, campaign_id, _row(connection, campaign_id))


def _row(connection: Connection, campaign_id: int) -> RowMapping | None:
    # A server locks the row for this transaction, so that no other one decides on it.
    statement = select(LOCKS).where(LOCKS.c.campaign_id == campaign_id).with_for_update()
    return _sound(connection, statement)


def _sound(connection: Connection, statement: Select[Any]) -> RowMapping | None:
    rows = sound_rows(connection, statement, "locks", "campaign_id")
    return rows[0]._mapping if rows else None


def _insert(connection: Connection, campaign_id: int, owner: LockOwner) -> None:
    """Inserts the lock, unless another controller was quicker."""
    now = time.time()
    with suppress(IntegrityError), connection.begin_nested():
        connection.execute(
            insert(LOCKS).values(
                campaign_id=campaign_id, since=now, heartbeat=now, **asdict(owner)
            )
        )


def _replace(connection: Connection, row: RowMapping, owner: LockOwner) -> bool:
    now = time.time()
    taken = update(LOCKS).filter_by(**row).values(since=now, heartbeat=now, **asdict(owner))
    return connection.execute(taken).rowcount == 1


def _locked(connection: Connection, campaign_id: int, row: RowMapping | None) -> CampaignLocked:
    name = connection.execute(
        select(CAMPAIGNS.c.name).where(CAMPAIGNS.c.id == campaign_id)
    ).scalar()
    who = describe_holder(row) if row else "another controller"
    return CampaignLocked(
        f"campaign {name} is in use by {who}",
        hint="wait until it ends, or stop it; if you know that it is dead: --take-over",
    )
