"""The store, through which a controller writes a campaign and reads it to resume.

Invariants: only one controller writes a campaign (``lock``). A run is registered before it is
launched, and stored once, in one transaction. Every method may raise DatabaseFault; if that is
``transient``, the call may be repeated later.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from sqlalchemy import exists, select, update

from commtune.db.connection import location
from commtune.db.connection.busy_retry import BusyRetry
from commtune.db.connection.engine import Database
from commtune.db.lock_owner import LockOwner
from commtune.db.locks import acquire_lock, find_holder, refresh_lock, release_lock
from commtune.db.records import CampaignHandle, CampaignRecord
from commtune.db.storage.campaigns import open_campaign, update_campaign
from commtune.db.storage.jobs import StoredJobs
from commtune.db.storage.results import StoredCourse
from commtune.db.storage.rows import waits_for_database
from commtune.db.storage.run_costs import StoredRunCosts
from commtune.db.storage.runs import StoredRuns
from commtune.db.tables import CAMPAIGNS, RUNS
from commtune.errors import DatabaseFault


class Store(StoredRuns, StoredRunCosts, StoredCourse):
    """The campaigns in a database, for reading and writing.

    Args:
        say: called with a message once in every wait for a database that another program holds,
            a full disk or a server that is away, and with other notes for the user.
    """

    def __init__(self, database: Database, *, say: Callable[[str], None] | None = None) -> None:
        away_s = location.wait_s(location.UNREACHABLE_WAIT_S)
        super().__init__(database, BusyRetry(location.wait_s(), say, away_s))
        self._say = say or (lambda _: None)

    @waits_for_database
    def begin(
        self, spec: CampaignRecord, owner: LockOwner | None = None, *, take_over: bool = False
    ) -> tuple[CampaignHandle, str]:
        """Opens a campaign, acquires its lock and updates its settings, in one transaction.

        Args:
            owner, take_over: as for ``lock``.

        Returns:
            The campaign, and why an earlier holder lost the lock; empty if there was none.

        Raises:
            CampaignChanged: as for ``open_campaign``.
            CampaignLocked: another controller holds it; nothing was changed.
        """
        owner = owner or LockOwner.current()
        with self._write() as connection:
            handle = open_campaign(connection, spec)
            reason = acquire_lock(connection, handle.id, owner, take_over=take_over)
            # Set before the end of the transaction, where a deferred Ctrl-C is raised.
            self._owners[handle.id] = owner
            is_finished = update_campaign(connection, handle.id, spec)
        self._tell(handle)
        return replace(handle, is_finished=is_finished), reason

    @waits_for_database
    def open_campaign(self, spec: CampaignRecord) -> CampaignHandle:
        """Creates a campaign, or finds it by name, without changing it (unlike ``begin``).

        A changed campaign without a successful run starts over: the stored one is renamed, and
        ``say`` is called.

        Raises:
            CampaignChanged: it is stored with another ``what``, system or stack; lists the keys.
            CampaignLocked: it would start over, but a controller works on it.
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
        """Returns the time of a clock (seconds), without waits for the database.

        These don't count against the budget.
        """
        return clock() - self._patience.waited_s

    @waits_for_database
    def order_seed(self, campaign_id: int) -> str:
        """Returns the seed for the order of a campaign's runs (see ``tuner.ports.Store``)."""
        with self.database.read() as connection:
            row = connection.execute(
                select(CAMPAIGNS.c.created, CAMPAIGNS.c.seed, CAMPAIGNS.c.simulated).where(
                    CAMPAIGNS.c.id == campaign_id
                )
            ).one()
        # The time of creation, because a name may change, and is the same on many machines.
        return str(row.seed if row.simulated else row.created)

    @waits_for_database
    def finish_campaign(self, campaign_id: int) -> None:
        """Stores that the campaign is finished, and releases its lock, in one transaction.

        The date stays if it was finished before, and no run followed.
        """
        owner = self._owners.get(campaign_id)
        this, before = CAMPAIGNS.c.id == campaign_id, CAMPAIGNS.c.finished
        later = exists().where(RUNS.c.campaign_id == campaign_id, RUNS.c.started_at > before)
        with self._write() as connection:
            connection.execute(
                update(CAMPAIGNS)
                .where(this, before.is_(None) | later)
                .values(finished=time.time())
            )
            if owner is not None:
                release_lock(connection, campaign_id, owner)

    @waits_for_database
    def lock(
        self, campaign_id: int, owner: LockOwner | None = None, *, take_over: bool = False
    ) -> str:
        """Acquires the lock of a campaign; of several controllers at once, one succeeds.

        A dead holder loses it: its process is gone from this machine, its machine was restarted,
        or it is on another machine and silent.

        Args:
            owner: the new holder; this process if ``None``.
            take_over: whether to take it even from a holder that may live.

        Returns:
            Why an earlier holder lost it; empty if there was none.

        Raises:
            CampaignLocked: another controller holds it; the message names it.
        """
        owner = owner or LockOwner.current()
        with self._write() as connection:
            reason = acquire_lock(connection, campaign_id, owner, take_over=take_over)
            self._owners[campaign_id] = owner
        return reason

    @waits_for_database
    def holder(self, campaign_id: int) -> tuple[LockOwner, float] | None:
        """Returns the lock's holder, dead or alive, and since when (seconds since 1970).

        ``None`` if the lock is free.
        """
        with self.database.read() as connection:
            return find_holder(connection, campaign_id)

    @waits_for_database
    def touch(self, campaign_id: int) -> None:
        """Updates the heartbeat of the lock; to be called at least every few minutes.

        Raises:
            CampaignLocked: it was not acquired through this store, or another controller took
                over, and this one must stop.
        """
        with self._write() as connection:
            refresh_lock(connection, campaign_id, self._owners.get(campaign_id))

    @waits_for_database
    def unlock(self, campaign_id: int) -> None:
        """Releases a lock that was acquired through this store, unless another took over."""
        if owner := self._owners.get(campaign_id):
            with self._write() as connection:
                release_lock(connection, campaign_id, owner)
            # Only now, because the method is retried while the database is away.
            del self._owners[campaign_id]

    def unlock_all(self) -> None:
        """Releases all locks that were acquired through this store, even by interrupted calls.

        If the database can't be reached, the next controller finds that the holder is dead.
        """
        with suppress(DatabaseFault):
            for campaign_id in list(self._owners):
                self.unlock(campaign_id)

    def job_book(self, campaign_id: int) -> StoredJobs:
        return StoredJobs(self.database, self._patience, campaign_id)
