"""The store: all that a controller writes, and reads again when it goes on.

Laws: one controller writes a campaign (``lock``). A run is registered before it is launched and
stored once, whole, in one transaction. Nothing is stored that was not passed in. Every method may
raise DatabaseFault; where that is ``transient``, the same call may be made again later.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from sqlalchemy import select, update

from commtune.db import locks
from commtune.db.connection import location
from commtune.db.connection.busy_retry import BusyRetry
from commtune.db.connection.engine import Database
from commtune.db.lock_owner import LockOwner
from commtune.db.locks import acquire_lock, find_holder, release_lock
from commtune.db.records import CampaignHandle, CampaignRecord
from commtune.db.storage.campaigns import open_campaign, update_campaign
from commtune.db.storage.jobs import StoredJobs
from commtune.db.storage.results import StoredCourse
from commtune.db.storage.rows import waits_for_database
from commtune.db.storage.run_costs import StoredRunCosts
from commtune.db.storage.runs import StoredRuns
from commtune.db.storage.trials import StoredTrials
from commtune.db.tables import CAMPAIGNS
from commtune.errors import DatabaseFault


class Store(StoredTrials, StoredRuns, StoredRunCosts, StoredCourse):
    """Reads and writes campaigns in one database.

    Args:
        wait_s: how long a database is waited for that another program holds, whose disk is full
            or whose server is away, seconds; what ``location`` says where ``None``.
        say: told once in every such wait, so that a person can look, and what else a person
            should know.
    """

    def __init__(
        self,
        database: Database,
        *,
        wait_s: float | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        waits = (location.wait_s(), location.away_s()) if wait_s is None else (wait_s, wait_s)
        super().__init__(database, BusyRetry(waits[0], say, waits[1]))
        self._say = say or (lambda _: None)

    @waits_for_database
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
            reason = acquire_lock(connection, handle.id, owner, take_over=take_over)
            # Noted before the end, which is where an interrupt acts that came meanwhile.
            self._owners[handle.id] = owner
            is_finished = update_campaign(connection, handle.id, spec)
        self._tell(handle)
        return replace(handle, is_finished=is_finished), reason

    @waits_for_database
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

    def clock(self, clock: Callable[[], float] = time.monotonic) -> float:
        """What a clock says, without the time that the database was waited for.

        No budget pays for that.
        """
        return clock() - self._patience.waited_s

    @waits_for_database
    def order_seed(self, campaign_id: int) -> str:
        """What the order of a campaign's runs is drawn from (see ``tuner.ports.Store``)."""
        with self.database.read() as connection:
            row = connection.execute(
                select(CAMPAIGNS.c.created, CAMPAIGNS.c.seed, CAMPAIGNS.c.simulated).where(
                    CAMPAIGNS.c.id == campaign_id
                )
            ).one()
        # The moment it was created: a name may change, and is the same on many machines.
        return str(row.seed if row.simulated else row.created)

    @waits_for_database
    def finish_campaign(self, campaign_id: int) -> None:
        """Notes that the campaign came to its end now, and gives the lock back: both or none."""
        owner = self._owners.get(campaign_id)
        with self._write() as connection:
            connection.execute(
                update(CAMPAIGNS).where(CAMPAIGNS.c.id == campaign_id).values(finished=time.time())
            )
            if owner is not None:
                release_lock(connection, campaign_id, owner)

    @waits_for_database
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
            reason = acquire_lock(connection, campaign_id, owner, take_over=take_over)
            self._owners[campaign_id] = owner
        return reason

    @waits_for_database
    def holder(self, campaign_id: int) -> tuple[LockOwner, float] | None:
        """Who holds the lock, dead or alive, and since when; ``None`` if nobody does."""
        with self.database.read() as connection:
            return find_holder(connection, campaign_id)

    @waits_for_database
    def touch(self, campaign_id: int) -> None:
        """Says that the holder of the lock lives; to be called more often than it gets stale.

        Raises:
            CampaignLocked: it was not taken through this store, or another took it over: stop.
        """
        with self._write() as connection:
            locks.refresh_lock(connection, campaign_id, self._owners.get(campaign_id))

    @waits_for_database
    def unlock(self, campaign_id: int) -> None:
        """Gives a lock back that was taken through this store, unless another took it over."""
        if owner := self._owners.get(campaign_id):
            with self._write() as connection:
                release_lock(connection, campaign_id, owner)
            # Not before: where the database is away for a while, this is made again.
            del self._owners[campaign_id]

    def unlock_all(self) -> None:
        """Gives back what was locked through this store, also by a call that was interrupted.

        Where the database is away, the next controller sees that the lock is dead.
        """
        with suppress(DatabaseFault):
            for campaign_id in list(self._owners):
                self.unlock(campaign_id)

    def job_book(self, campaign_id: int) -> StoredJobs:
        return StoredJobs(self.database, self._patience, campaign_id)
