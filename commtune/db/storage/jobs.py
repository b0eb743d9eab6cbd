"""Stores and reads the jobs of a campaign."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, func, insert, literal, select, update

from commtune.db.checked_columns import sound_rows
from commtune.db.connection.busy_retry import BusyRetry
from commtune.db.connection.engine import Database
from commtune.db.storage.rows import Transactions, waits_for_database
from commtune.db.tables import JOBS
from commtune.errors import DatabaseFault
from commtune.model import JobKind, JobRecord, JobStage

#: The stages in their order: a job never returns to an earlier one.
_STAGES = tuple(JobStage)
#: A literal in the statement, not a parameter: the databases must see that the partial index of
#: open jobs applies.
_OVER = literal(str(JobStage.OVER), literal_execute=True)
_IN_ORDER = select(JOBS).order_by(JOBS.c.prepared_at, JOBS.c.key)


class StoredJobs(Transactions):
    """The jobs of one campaign (``tuner.ports.JobBook``).

    Every method may raise DatabaseFault, like those of the store.
    """

    def __init__(self, database: Database, patience: BusyRetry, campaign_id: int) -> None:
        super().__init__(database, patience)
        self._campaign_id = campaign_id

    @waits_for_database
    def put_job(self, job: JobRecord) -> None:
        """Inserts a job, or replaces the stored one with its key.

        Raises:
            DatabaseFault: it would return to an earlier stage, or is another campaign's.
        """
        mine = JOBS.c.campaign_id == self._campaign_id
        up_to = [str(stage) for stage in _STAGES[: _STAGES.index(job.stage) + 1]]
        known = update(JOBS).where(JOBS.c.key == job.key, mine, JOBS.c.stage.in_(up_to))
        values = asdict(job)
        with self._write() as connection:
            if connection.execute(known.values(**values)).rowcount:
                return
            asked = select(JOBS.c.campaign_id, JOBS.c.stage).where(JOBS.c.key == job.key)
            stored = connection.execute(asked).one_or_none()
            if stored is not None:
                raise _misplaced(job, stored, self._campaign_id)
            new = insert(JOBS).values(campaign_id=self._campaign_id, **values)
            connection.execute(new)

    def open_jobs(self) -> list[JobRecord]:
        """Returns the jobs that are not over, in the order of preparation."""
        rows = self._rows(_open_jobs(self._campaign_id), "jobs", "key")
        return [_job(row._mapping) for row in rows]

    def all_jobs(self) -> list[JobRecord]:
        """Returns all jobs that the campaign ever had, in the order of preparation."""
        rows = self._rows(_IN_ORDER.where(JOBS.c.campaign_id == self._campaign_id), "jobs", "key")
        return [_job(row._mapping) for row in rows]

    def node_hours(self) -> float:
        # The index contains them, so that no row is read.
        total = func.coalesce(func.sum(JOBS.c.node_hours), 0.0)
        ((hours,),) = self._rows(select(total).where(JOBS.c.campaign_id == self._campaign_id))
        return float(hours)


def list_open_jobs(connection: Connection, campaign_id: int) -> list[JobRecord]:
    """Returns a campaign's jobs that are not over; a ``DamagedRows`` if a row is damaged."""
    rows = sound_rows(connection, _open_jobs(campaign_id), "jobs", "key")
    return [_job(row._mapping) for row in rows]


def _open_jobs(campaign_id: int) -> Select[Any]:
    return _IN_ORDER.where(JOBS.c.campaign_id == campaign_id, JOBS.c.stage != _OVER)


def _misplaced(job: JobRecord, stored: Any, campaign_id: int) -> DatabaseFault:
    if stored.campaign_id != campaign_id:
        return DatabaseFault(f"job {job.key} belongs to another campaign")
    return DatabaseFault(
        f"job {job.key} is stored as {stored.stage} and can't be {job.stage} again"
    )


def _job(row: RowMapping) -> JobRecord:
    fields = {str(name): row[name] for name in row if name != "campaign_id"}
    return JobRecord(**{**fields, "kind": JobKind(row["kind"]), "stage": JobStage(row["stage"])})
