"""The store: all that a controller writes, and reads again when it goes on.

Laws: one controller writes a campaign (``lock``). A run is registered before it is launched and
stored once, whole, in one transaction. Nothing is stored that was not passed in. Every method may
raise DatabaseFault; where that is ``transient``, the same call may be made again later.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, false, func, select, update
from sqlalchemy.orm import InstrumentedAttribute

from commtune.db import locks
from commtune.db.checked_columns import is_number, sound_rows
from commtune.db.connection import location
from commtune.db.connection.busy_retry import BusyRetry
from commtune.db.connection.engine import Database
from commtune.db.damage import Damage
from commtune.db.locks import LockOwner
from commtune.db.records import BestGain, CampaignHandle, CampaignRecord, CampaignSummary
from commtune.db.storage.campaigns import open_campaign, update_campaign
from commtune.db.storage.results import StoredCourse, StoredJobs
from commtune.db.storage.rows import waits_for_room
from commtune.db.storage.runs import StoredRuns
from commtune.db.tables import Campaign, Job, ProfilePoint, ProfileRow, Run, Stack, System, Trial
from commtune.model import FEWEST_PAIRS, Verdict
from commtune.tuner.statistics.machine_states import ALL


class Store(StoredRuns, StoredCourse):
    """Reads and writes campaigns in one database.

    Args:
        wait_s: how long a write waits while another program holds the database, seconds; what
            ``location.wait_s`` says where ``None``.
        say: told once in every such wait, so that a person can look for that program, and what
            else a person should know.
    """

    def __init__(
        self,
        database: Database,
        *,
        wait_s: float | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(database, BusyRetry(location.wait_s() if wait_s is None else wait_s, say))
        self._say = say or (lambda _: None)

    @waits_for_room
    def begin(
        self,
        spec: CampaignRecord,
        owner: LockOwner | None = None,
        *,
        take_over: bool = False,
    ) -> tuple[CampaignHandle, str]:
        """Opens a campaign, takes its lock and stores what may change, all or nothing.

        Args:
            owner, take_over: as for ``lock``.

        Returns:
            The campaign, and why an earlier holder lost it; empty where there was none.

        Raises:
            CampaignChanged: as ``open_campaign``.
            CampaignLocked: another controller holds it; nothing was changed.
        """
        owner = owner or LockOwner.current()
        with self._write() as connection:
            handle = open_campaign(connection, spec)
            reason = owner.acquire(connection, handle.id, take_over=take_over)
            # Noted before the end, which is where an interrupt acts that came meanwhile.
            self._owners[handle.id] = owner
            update_campaign(connection, handle.id, spec)
        self._tell(handle)
        return handle, reason

    @waits_for_room
    def open_campaign(self, spec: CampaignRecord) -> CampaignHandle:
        """Creates a campaign, or finds it by name; what is stored stays as it is (see ``begin``).

        One that has no good run so far begins anew where its question has changed; what was
        stored gets another name then, and ``say`` is told.

        Raises:
            CampaignChanged: it is stored with another ``what``, system or stack; says which keys.
            CampaignLocked: it would begin anew, but a controller works on it.
        """
        with self._write() as connection:
            handle = open_campaign(connection, spec)
        self._tell(handle)
        return handle

    def _tell(self, handle: CampaignHandle) -> None:
        if not handle.earlier:
            return
        jobs = self.job_book(handle.earlier_id).open_jobs()
        end = f"; its jobs end by: commtune cancel {handle.earlier}" if jobs else ""
        self._say(
            f"note: campaign {handle.name} had no successful run so far, and starts over; "
            f"changed: {'; '.join(handle.changes)}\n"
            f"  its earlier runs are now campaign {handle.earlier}{end}"
        )

    def order_seed(self, campaign_id: int) -> str:
        """What the order of a campaign's runs is drawn from (see ``tuner.ports.Store``)."""
        with self.database.read() as connection:
            row = connection.execute(
                select(Campaign.created, Campaign.seed, Campaign.simulated).where(
                    Campaign.id == campaign_id
                )
            ).one()
        # The moment it was created: a name may change, and is the same on many machines.
        return str(row.seed if row.simulated else row.created)

    @waits_for_room
    def finish_campaign(self, campaign_id: int) -> None:
        """Notes that the campaign came to its end now, and gives the lock back: both or none."""
        owner = self._owners.get(campaign_id)
        with self._write() as connection:
            connection.execute(
                update(Campaign).where(Campaign.id == campaign_id).values(finished=time.time())
            )
            if owner is not None:
                owner.release(connection, campaign_id)

    @waits_for_room
    def lock(
        self,
        campaign_id: int,
        owner: LockOwner | None = None,
        *,
        take_over: bool = False,
    ) -> str:
        """Makes the owner the campaign's one controller; of several at once, one gets it.

        A holder that is dead loses it: its process is gone from this machine, its machine was
        restarted, or it is elsewhere and silent.

        Args:
            owner: this process where ``None``.
            take_over: take it even from a holder that may live.

        Returns:
            Why an earlier holder lost it; empty where there was none.

        Raises:
            CampaignLocked: another controller holds it; says who.
        """
        owner = owner or LockOwner.current()
        with self._write() as connection:
            reason = owner.acquire(connection, campaign_id, take_over=take_over)
            self._owners[campaign_id] = owner
        return reason

    def holder(self, campaign_id: int) -> tuple[LockOwner, float] | None:
        """Who holds the lock, dead or alive, and since when; ``None`` if nobody does."""
        with self.database.read() as connection:
            return LockOwner.holding(connection, campaign_id)

    @waits_for_room
    def touch(self, campaign_id: int, owner: LockOwner | None = None) -> None:
        """Says that the holder of the lock lives; to be called more often than it gets stale.

        Args:
            owner: who took the lock through this store where ``None``.

        Raises:
            CampaignLocked: the lock is not the owner's, another took the campaign over: stop.
        """
        with self._write() as connection:
            locks.refresh_lock(connection, campaign_id, owner or self._owners.get(campaign_id))

    @waits_for_room
    def unlock(self, campaign_id: int, owner: LockOwner | None = None) -> None:
        """Gives the lock back; does nothing if another holds it."""
        owner = owner or self._owners.get(campaign_id)
        self._owners.pop(campaign_id, None)
        if owner is not None:
            with self._write() as connection:
                owner.release(connection, campaign_id)

    def unlock_all(self) -> None:
        """Gives back what was locked through this store, also by a call that was interrupted."""
        for campaign_id in list(self._owners):
            self.unlock(campaign_id)

    def job_book(self, campaign_id: int) -> StoredJobs:
        return StoredJobs(self.database, self._patience, campaign_id)

    def campaigns(self, campaign_id: int | None = None) -> list[CampaignSummary]:
        """All campaigns, or one, with what they did so far, newest first."""
        with self.database.read() as connection:
            return _read_summaries(connection, self.database.report, campaign_id)


def _read_summaries(
    connection: Connection, tell: Callable[[Damage], None], campaign_id: int | None
) -> list[CampaignSummary]:
    totals = _run_totals(connection, tell, campaign_id)
    n_trials = _count_by_campaign(connection, Trial)
    n_profiles = _count_by_campaign(connection, ProfileRow)
    best = _best_gains(connection, tell, campaign_id)
    held = LockOwner.all_living(connection, tell)
    jobs = StoredJobs.open_by_campaign(connection, tell)
    node_hours = _node_hours(connection)
    rows = connection.execute(
        select(Campaign.__table__, System.name.label("system"), Stack.text.label("stack"))
        .join(System, System.id == Campaign.system_id)
        .join(Stack, Stack.id == Campaign.stack_id)
        .where(*_only(Campaign.id, campaign_id))
        .order_by(Campaign.created.desc(), Campaign.id.desc())
    ).all()
    taken = ("id", "name", "system", "stack", "simulated", "folder", "settings", "created", "site")
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
        for row in (sound._mapping for sound in sound_rows(rows, "campaigns", tell=tell))
    ]


def _only(
    column: InstrumentedAttribute[int], campaign_id: int | None
) -> list[ColumnElement[bool]]:
    return [] if campaign_id is None else [column == campaign_id]


def _run_totals(
    connection: Connection, tell: Callable[[Damage], None], campaign_id: int | None
) -> Mapping[int, dict[str, Any]]:
    """What runs came to, and the seconds that they took, by campaign."""
    found: dict[int, dict[str, Any]] = defaultdict(
        lambda: {"outcomes": {}, "open_runs": 0, "wall_s": 0.0, "last_run": None}
    )
    numbers = (
        (is_number(Run.wall_s) | Run.wall_s.is_(None)).label("is_timed"),
        is_number(Run.started_at).label("has_started"),
    )
    rows = connection.execute(
        select(
            Run.campaign_id,
            Run.state,
            Run.outcome,
            func.min(Run.id).label("id"),
            func.count().label("runs"),
            func.sum(Run.wall_s).label("wall_s"),
            func.max(Run.started_at).label("last_run"),
            # Of a group with text among its numbers nothing can be said; such are grouped apart.
            *numbers,
        )
        .where(*_only(Run.campaign_id, campaign_id))
        .group_by(Run.campaign_id, Run.state, Run.outcome, *numbers)
    ).all()
    for row in sound_rows(rows, "runs", tell=tell):
        if not (row.is_timed and row.has_started):
            column = "started_at" if row.is_timed else "wall_s"
            tell(Damage("runs", str(row.id), column, "not a number"))
            continue
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


def _node_hours(connection: Connection) -> Mapping[int, float]:
    """Node-hours of all jobs, for campaigns that have any."""
    rows = connection.execute(
        select(Job.campaign_id, func.sum(Job.node_hours).label("hours")).group_by(Job.campaign_id)
    )
    return {row.campaign_id: float(row.hours) for row in rows}


def _best_gains(
    connection: Connection, tell: Callable[[Damage], None], campaign_id: int | None
) -> Mapping[int, BestGain]:
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
            *_only(ProfileRow.campaign_id, campaign_id),
            ProfilePoint.is_guard == false(),
            ProfileRow.verdict == str(Verdict.FASTER),
            ProfilePoint.size.between(ProfileRow.bytes_low, ProfileRow.bytes_high),
        )
        .order_by(ProfilePoint.low, ProfileRow.id, ProfilePoint.place)
    ).all()
    sound = sound_rows(rows, "profile_points", "profile_id", tell)
    found = [row._mapping for row in sound]
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
