"""The store: all that a controller writes, and reads again when it goes on.

Laws: one controller writes a campaign (``lock``). A run is registered before it is launched and
stored once, whole, in one transaction. Nothing is stored that was not passed in. Every method may
raise DatabaseFault; where that is ``transient``, the same call may be made again later.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from sqlalchemy import Connection, update

from commtune.db import locks
from commtune.db.connection import location
from commtune.db.connection.busy_retry import BusyRetry
from commtune.db.connection.engine import Database, as_rows
from commtune.db.locks import STALE_AFTER_S, LockOwner
from commtune.db.queries.profiles import list_profiles
from commtune.db.storage import costs, reading, writing
from commtune.db.storage.decisions import StoredCourse
from commtune.db.storage.jobs import StoredJobs, open_jobs
from commtune.db.storage.records import (
    CampaignHandle,
    CampaignRecord,
    CampaignSummary,
    StoredProfile,
)
from commtune.db.tables import Campaign
from commtune.model import (
    Configuration,
    Profile,
    Run,
    RunRequest,
    RunResult,
    Trial,
)
from commtune.model.run_costs import RunCost

_PAGE_RUNS = 1000


class Store(StoredCourse):
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
        self.database = database
        self._say = say or (lambda _: None)
        self._patience = BusyRetry(location.wait_s() if wait_s is None else wait_s, say)
        self._owners: dict[int, LockOwner] = {}

    def begin(
        self,
        spec: CampaignRecord,
        owner: LockOwner | None = None,
        *,
        stale_after_s: float = STALE_AFTER_S,
        take_over: bool = False,
    ) -> tuple[CampaignHandle, str]:
        """Opens a campaign, takes its lock and stores what may change, all or nothing.

        Args:
            owner, stale_after_s, take_over: as for ``lock``.

        Returns:
            The campaign, and why an earlier holder lost it; empty where there was none.

        Raises:
            CampaignChanged: as ``open_campaign``.
            CampaignLocked: another controller holds it; nothing was changed.
        """
        owner = owner or LockOwner.current()
        with self._write() as connection:
            handle = writing.open_campaign(connection, spec)
            reason = locks.acquire_lock(
                connection, handle.id, owner, stale_after_s=stale_after_s, take_over=take_over
            )
            # Noted before the end, which is where an interrupt acts that came meanwhile.
            self._owners[handle.id] = owner
            writing.update_campaign(connection, handle.id, spec)
        self._tell(handle)
        return handle, reason

    def open_campaign(self, spec: CampaignRecord) -> CampaignHandle:
        """Creates a campaign, or finds it by name; what is stored stays as it is (see ``begin``).

        One that has no good run so far begins anew where its question has changed; what was
        stored gets another name then, and ``say`` is told.

        Raises:
            CampaignChanged: it is stored with another ``what``, system or stack; says which keys.
            CampaignLocked: it would begin anew, but a controller works on it.
        """
        with self._write() as connection:
            handle = writing.open_campaign(connection, spec)
        self._tell(handle)
        return handle

    def _tell(self, handle: CampaignHandle) -> None:
        """Says that a campaign begins anew."""
        if not handle.earlier:
            return
        with self.database.read() as connection:
            jobs = open_jobs(connection, handle.earlier_id)
        end = f"; its jobs end by: commtune cancel {handle.earlier}" if jobs else ""
        self._say(
            f"note: campaign {handle.name} had no good run so far, and begins anew; changed: "
            f"{'; '.join(handle.changes)}\n  what it did before is campaign {handle.earlier} "
            f"now{end}"
        )

    def finish_campaign(self, campaign_id: int) -> None:
        """Notes that the campaign came to its end now, and gives the lock back: both or none."""
        owner = self._owners.get(campaign_id)
        with self._write() as connection:
            connection.execute(
                update(Campaign).where(Campaign.id == campaign_id).values(finished=time.time())
            )
            if owner is not None:
                locks.release_lock(connection, campaign_id, owner)

    def lock(
        self,
        campaign_id: int,
        owner: LockOwner | None = None,
        *,
        stale_after_s: float = STALE_AFTER_S,
        take_over: bool = False,
    ) -> str:
        """Makes the owner the campaign's one controller; of several at once, one gets it.

        A holder that is dead loses it: its process is gone from this machine, its machine was
        restarted, or it is elsewhere and silent.

        Args:
            owner: this process where ``None``.
            stale_after_s: silence (no ``touch``) after which a holder elsewhere is given up.
            take_over: take it even from a holder that may live.

        Returns:
            Why an earlier holder lost it; empty where there was none.

        Raises:
            CampaignLocked: another controller holds it; says who.
        """
        owner = owner or LockOwner.current()
        with self._write() as connection:
            reason = locks.acquire_lock(
                connection, campaign_id, owner, stale_after_s=stale_after_s, take_over=take_over
            )
            self._owners[campaign_id] = owner
        return reason

    def holder(self, campaign_id: int) -> tuple[LockOwner, float] | None:
        """Who holds the lock, dead or alive, and since when; ``None`` if nobody does."""
        with self.database.read() as connection:
            return locks.lock_holder(connection, campaign_id)

    def touch(self, campaign_id: int, owner: LockOwner | None = None) -> None:
        """Says that the holder of the lock lives; to be called more often than it gets stale.

        Args:
            owner: who took the lock through this store where ``None``.

        Raises:
            CampaignLocked: the lock is not the owner's, another took the campaign over: stop.
        """
        with self._write() as connection:
            locks.refresh_lock(connection, campaign_id, owner or self._owners.get(campaign_id))

    def unlock(self, campaign_id: int, owner: LockOwner | None = None) -> None:
        """Gives the lock back; does nothing if another holds it."""
        owner = owner or self._owners.get(campaign_id)
        self._owners.pop(campaign_id, None)
        if owner is not None:
            with self._write() as connection:
                locks.release_lock(connection, campaign_id, owner)

    def unlock_all(self) -> None:
        """Gives back what was locked through this store, also by a call that was interrupted."""
        for campaign_id in list(self._owners):
            self.unlock(campaign_id)

    def add_trial(
        self,
        campaign_id: int,
        number: int,
        configuration: Configuration,
        origin: str,
        label: str = "",
    ) -> None:
        """Adds a trial; a repeated call with the same configuration changes nothing.

        Args:
            origin: ``baseline``, ``user``, ``sampler``, ``random`` or ``enumerated``.
            label: the size range that it was proposed for.
        """
        with self._write() as connection:
            writing.add_trial(connection, campaign_id, number, configuration, origin, label)

    def trials(self, campaign_id: int) -> list[Trial]:
        """The campaign's trials by number."""
        with self.database.read() as connection:
            return reading.read_trials(connection, campaign_id)

    def start_run(self, campaign_id: int, request: RunRequest, session: str) -> None:
        """Registers a run as running, before it is launched; its trial must be stored."""
        with self._write() as connection:
            writing.start_run(connection, campaign_id, request, session)

    def start_runs(self, campaign_id: int, requests: Sequence[RunRequest], session: str) -> None:
        """Registers runs as running, all of them or none; as ``start_run``."""
        with self._write() as connection:
            for request in requests:
                writing.start_run(connection, campaign_id, request, session)

    def finish_run(self, campaign_id: int, result: RunResult, operation: str) -> bool:
        """Stores a run's result and measurements in one transaction.

        Returns:
            False if the run is stored already; then nothing is stored twice.

        Raises:
            DatabaseFault: transient if the database can't be reached now; the run's records stay
                in the campaign folder, and the same call can be made later.
        """
        with self._write() as connection:
            return writing.finish_run(connection, campaign_id, result, operation)

    def job_book(self, campaign_id: int) -> StoredJobs:
        """The campaign's jobs."""
        return StoredJobs(self.database, self._patience, campaign_id)

    def mark_interrupted(self, run_id: str, detail: str) -> None:
        """Closes a run that left no result; one that is stored already stays as it is."""
        with self._write() as connection:
            writing.mark_interrupted(connection, run_id, detail)

    def open_runs(self, campaign_id: int, block: int | None = None) -> list[RunRequest]:
        """Runs that were registered and neither stored nor marked, in the order started.

        Args:
            block: only those of this block.
        """
        with self.database.read() as connection:
            return reading.open_runs(connection, campaign_id, block)

    def runs(self, campaign_id: int) -> Iterator[Run]:
        """Stored runs in the order started, with measurements.

        Read in pages, so that a slow reader neither holds them all nor keeps writers waiting.
        """
        last = 0
        while True:
            with self.database.read() as connection:
                page, last = reading.runs_after(connection, campaign_id, last, _PAGE_RUNS)
            if not page:
                return
            yield from page

    def samples(self, run_id: str, bytes: int) -> tuple[float, ...]:
        """Samples of one size of one run, seconds, in the order taken.

        Raises:
            UnknownName: that run has no such size.
        """
        with self.database.read() as connection:
            return reading.read_samples(connection, run_id, bytes)

    def traffic(self, campaign_id: int) -> tuple[float, float] | None:
        """What an aggressor sent beside the runs, 10^9 bits a second: the least and the most."""
        with self.database.read() as connection:
            return reading.read_traffic(connection, campaign_id)

    def parts(self, campaign_id: int) -> dict[str, list[dict[str, Any]]]:
        """Steps of an operation that good runs measured by themselves, by run."""
        with self.database.read() as connection:
            return reading.read_parts(connection, campaign_id)

    def costs(self, campaign_id: int) -> dict[str, RunCost]:
        """What its good runs cost, part by part, as far as their records tell, by run."""
        with self.database.read() as connection:
            return costs.run_costs(connection, campaign_id)

    def save_profiles(self, campaign_id: int, profiles: Sequence[Profile]) -> None:
        """Puts these profiles in the place of the campaign's earlier ones, all or none."""
        with self._write() as connection:
            writing.replace_profiles(connection, campaign_id, profiles)

    def profiles(self, campaign: str | None = None) -> list[StoredProfile]:
        """Profiles of the campaign of this name, or of all; newest first, then by size."""
        with self.database.read() as connection:
            return list_profiles(as_rows(connection), campaign)

    def campaigns(self) -> list[CampaignSummary]:
        """All campaigns with what they did so far, newest first."""
        with self.database.read() as connection:
            return reading.read_summaries(connection)

    def _write(self) -> AbstractContextManager[Connection]:
        return self.database.write(self._patience)
