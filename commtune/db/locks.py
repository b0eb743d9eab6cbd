"""One controller a campaign: who holds it, whether that one still lives, and taking it over."""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    bindparam,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from commtune.db.checked_columns import sound_rows
from commtune.db.damage import Damage, refuse
from commtune.db.tables import Base, Campaign, Lock
from commtune.errors import CampaignLocked

#: Silence after which a controller on another machine is given up, seconds.
_STALE_AFTER_S = 300.0
_PROC = Path("/proc")


@dataclass(frozen=True)
class LockOwner:
    """A controller process, told apart from every other one.

    Attributes:
        boot_id: changes with every start of the kernel; empty where the system doesn't say.
        pid_start: when the process started, in clock ticks since boot: numbers are used again.
        pid_namespace: inode of the namespace that the number counts in; 0 where unknown.
    """

    host: str
    boot_id: str
    pid: int
    pid_start: int
    pid_namespace: int

    @classmethod
    def current(cls, proc: Path = _PROC) -> LockOwner:
        pid = os.getpid()
        return cls(
            host=socket.gethostname(),
            boot_id=_read(proc / "sys/kernel/random/boot_id"),
            pid=pid,
            pid_start=_start_of(pid, proc) or 0,
            pid_namespace=_inode(proc / "self/ns/pid"),
        )

    @classmethod
    def from_row(cls, row: RowMapping) -> LockOwner:
        return cls(**{name: row[name] for name in cls.__dataclass_fields__})

    @classmethod
    def holding(cls, connection: Connection, campaign_id: int) -> tuple[LockOwner, float] | None:
        """Who holds the lock, and since when, seconds since 1970; ``None`` if nobody does."""
        statement = select(Lock.__table__).where(Lock.campaign_id == campaign_id)
        row = _sound(connection, statement)
        return (cls.from_row(row), row["since"]) if row else None

    @classmethod
    def all_living(
        cls, connection: Connection, tell: Callable[[Damage], None] = refuse
    ) -> Mapping[int, str]:
        """By campaign, who works on it: not those seen to be dead; silence may be a long run."""
        us = cls.current()
        stored = connection.execute(select(Lock.__table__)).all()
        rows = [row._mapping for row in sound_rows(stored, "locks", "campaign_id", tell)]
        return {
            row["campaign_id"]: _describe_holder(row)
            for row in rows
            if not _death_of(cls.from_row(row), us, 0.0, math.inf)
        }

    def acquire(self, connection: Connection, campaign_id: int, *, take_over: bool) -> str:
        """Takes the lock inside the given transaction; of several that try, one gets it.

        Returns:
            Why an earlier holder lost it; empty if there was none, or it was ours already.

        Raises:
            CampaignLocked: another controller holds it and may live.
        """
        row = _row(connection, campaign_id)
        if row is None:
            if _insert(connection, campaign_id, self):
                return ""
            row = _row(connection, campaign_id)
        if row is None:  # given back at this moment
            raise _locked(connection, campaign_id, None)
        holder = LockOwner.from_row(row)
        if holder != self:
            reason = _death_of(holder, self, time.time() - row["heartbeat"], _STALE_AFTER_S)
            reason = reason or ("it left its lock behind" if take_over else "")
            if not (reason and _replace(connection, row, self)):
                raise _locked(connection, campaign_id, _row(connection, campaign_id) or row)
            return reason
        refresh_lock(connection, campaign_id, self)
        return ""

    def release(self, connection: Connection, campaign_id: int) -> None:
        """Gives the lock back; another's stays."""
        connection.execute(delete(Lock).where(Lock.campaign_id == campaign_id, *_is(self)))


def _start_of(pid: int, proc: Path = _PROC) -> int | None:
    """When a process started, clock ticks since boot; ``None`` if it doesn't live (zombies too).

    Where the system has no ``/proc``, a living process says 0.
    """
    if not (proc / "self").exists():
        return 0 if psutil.pid_exists(pid) else None
    # The name, second field, may hold blanks and parentheses; nothing after it does.
    state, *fields = _read(proc / str(pid) / "stat").rpartition(")")[2].split() or ["X"]
    return None if state in "ZX" else int(fields[18])


def _death_of(
    holder: LockOwner, asker: LockOwner, silent_s: float, stale_after_s: float, proc: Path = _PROC
) -> str:
    """Why the holder of a lock is taken for dead; empty if it may live.

    Args:
        silent_s: seconds since its last heartbeat.
        stale_after_s: silence after which a controller that we can't look at is given up.
    """
    same_kernel = bool(asker.boot_id) and holder.boot_id == asker.boot_id
    if same_kernel and holder.pid_namespace == asker.pid_namespace:
        if _start_of(holder.pid, proc) == holder.pid_start:
            return ""
        return f"process {holder.pid} is gone"
    if asker.boot_id and holder.host == asker.host and not same_kernel:
        return f"{holder.host} was restarted"
    return f"silent for {silent_s:.0f} s" if silent_s > stale_after_s else ""


#: Made once: building a statement takes longer than executing it.
_REFRESH = update(Base.metadata.tables[Lock.__tablename__]).where(
    Lock.campaign_id == bindparam("its_campaign"),
    *(getattr(Lock, name) == bindparam(f"its_{name}") for name in LockOwner.__dataclass_fields__),
)


def refresh_lock(connection: Connection, campaign_id: int, owner: LockOwner | None) -> None:
    """Says that the owner lives.

    Raises:
        CampaignLocked: the lock is not the owner's any more.
    """
    whose = {f"its_{name}": value for name, value in asdict(owner).items()} if owner else {}
    now = {"its_campaign": campaign_id, "heartbeat": time.time()}
    if not whose or connection.execute(_REFRESH, whose | now).rowcount != 1:
        raise _locked(connection, campaign_id, _row(connection, campaign_id))


def _describe_holder(row: RowMapping) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row["since"]))
    return f"process {row['pid']} on {row['host']}, since {when}"


def _is(owner: LockOwner) -> list[ColumnElement[bool]]:
    return [getattr(Lock, name) == value for name, value in asdict(owner).items()]


def _row(connection: Connection, campaign_id: int) -> RowMapping | None:
    # Locked for this transaction where the database can: no other one decides on the same row.
    statement = select(Lock.__table__).where(Lock.campaign_id == campaign_id).with_for_update()
    return _sound(connection, statement)


def _sound(connection: Connection, statement: Select[Any]) -> RowMapping | None:
    rows = sound_rows(connection.execute(statement).all(), "locks", "campaign_id")
    return rows[0]._mapping if rows else None


def _insert(connection: Connection, campaign_id: int, owner: LockOwner) -> bool:
    now = time.time()
    try:
        with connection.begin_nested():
            connection.execute(
                insert(Lock).values(
                    campaign_id=campaign_id, since=now, heartbeat=now, **asdict(owner)
                )
            )
    except IntegrityError:  # another controller was quicker
        return False
    return True


def _replace(connection: Connection, row: RowMapping, owner: LockOwner) -> bool:
    now = time.time()
    done = connection.execute(
        update(Lock)
        .where(Lock.campaign_id == row["campaign_id"], *_is(LockOwner.from_row(row)))
        .where(Lock.heartbeat == row["heartbeat"])
        .values(since=now, heartbeat=now, **asdict(owner))
    )
    return done.rowcount == 1


def _locked(connection: Connection, campaign_id: int, row: RowMapping | None) -> CampaignLocked:
    name = connection.execute(select(Campaign.name).where(Campaign.id == campaign_id)).scalar()
    who = _describe_holder(row) if row else "another controller"
    return CampaignLocked(
        f"campaign {name} is in use by {who}",
        hint="wait until it ends, or stop it; if you know that it is dead: --take-over",
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
