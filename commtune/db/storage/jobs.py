"""Jobs of a scheduler, as a campaign keeps them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, RowMapping, func, insert, literal, select, update

from commtune.db.codec import clean_text
from commtune.db.connection.busy_retry import BusyRetry
from commtune.db.connection.engine import Database
from commtune.db.storage.rows import Transactions
from commtune.db.tables import Job
from commtune.errors import DatabaseFault
from commtune.model import JobKind, JobRecord, JobStage

#: The stages by how far they are: a job never goes back to an earlier one.
_STAGES = tuple(JobStage)
#: Written out in the statement, where the databases see that the index of open jobs will do.
_OVER = literal(str(JobStage.OVER), literal_execute=True)
_IN_ORDER = select(Job.__table__).order_by(Job.prepared_at, Job.key)


class StoredJobs(Transactions):
    """The jobs of one campaign (``tuner.ports.JobBook``).

    Every method may raise DatabaseFault, as those of the store.
    """

    def __init__(self, database: Database, patience: BusyRetry, campaign_id: int) -> None:
        super().__init__(database, patience)
        self._campaign_id = campaign_id

    def put_job(self, job: JobRecord) -> None:
        """Stores a job, in the place of what was known of it by its key.

        Raises:
            DatabaseFault: it would go back to an earlier stage, or is another campaign's.
        """
        mine = Job.campaign_id == self._campaign_id
        up_to = [str(stage) for stage in _STAGES[: _STAGES.index(job.stage) + 1]]
        known = update(Job).where(Job.key == job.key, mine, Job.stage.in_(up_to))
        values = _values(job)
        with self._write() as connection:
            if connection.execute(known.values(**values)).rowcount:
                return
            asked = select(Job.campaign_id, Job.stage).where(Job.key == job.key)
            stored = connection.execute(asked).one_or_none()
            if stored is not None:
                raise _misplaced(job, stored, self._campaign_id)
            new = insert(Job).values(key=job.key, campaign_id=self._campaign_id, **values)
            connection.execute(new)

    def open_jobs(self) -> list[JobRecord]:
        """Jobs that are not over, in the order they were prepared; the others are not read."""
        with self.database.read() as connection:
            return open_jobs(connection, self._campaign_id)

    def all_jobs(self) -> list[JobRecord]:
        """All jobs, in the order they were prepared; as many as the campaign ever had."""
        rows = self._rows(_IN_ORDER.where(Job.campaign_id == self._campaign_id))
        return [_job(row._mapping) for row in rows]

    def node_hours(self) -> float:
        """Node-hours of all jobs, those under way as far as they are known."""
        # The index holds them, no row is read.
        total = select(func.sum(Job.node_hours)).where(Job.campaign_id == self._campaign_id)
        return float(self._rows(total)[0][0] or 0.0)


def _misplaced(job: JobRecord, stored: Any, campaign_id: int) -> DatabaseFault:
    if stored.campaign_id != campaign_id:
        return DatabaseFault(f"job {job.key} belongs to another campaign")
    return DatabaseFault(
        f"job {job.key} is stored as {stored.stage} and can't be {job.stage} again"
    )


def open_jobs(connection: Connection, campaign_id: int) -> list[JobRecord]:
    """Jobs that are not over, in the order they were prepared."""
    is_mine = Job.campaign_id == campaign_id
    rows = connection.execute(_IN_ORDER.where(is_mine, Job.stage != _OVER)).mappings()
    return [_job(row) for row in rows]


def open_jobs_by_campaign(connection: Connection) -> Mapping[int, list[JobRecord]]:
    """Jobs of all campaigns that are not over, in the order they were prepared."""
    found: defaultdict[int, list[JobRecord]] = defaultdict(list)
    for row in connection.execute(_IN_ORDER.where(Job.stage != _OVER)).mappings():
        found[row["campaign_id"]].append(_job(row))
    return found


def node_hours_by_campaign(connection: Connection) -> Mapping[int, float]:
    """Node-hours of all jobs, for campaigns that have any."""
    rows = connection.execute(
        select(Job.campaign_id, func.sum(Job.node_hours).label("hours")).group_by(Job.campaign_id)
    )
    return {row.campaign_id: float(row.hours) for row in rows}


def _values(job: JobRecord) -> dict[str, Any]:
    names = ("block", "node_count", "prepared_at", "started_at", "ended_at", "node_hours")
    texts = ("folder", "number", "word", "reason", "nodes", "detail")
    return {
        **{name: getattr(job, name) for name in names},
        **{name: clean_text(getattr(job, name)) for name in texts},
        "kind": str(job.kind),
        "stage": str(job.stage),
    }


def _job(row: RowMapping) -> JobRecord:
    fields = {str(name): row[name] for name in row if name != "campaign_id"}
    return JobRecord(**{**fields, "kind": JobKind(row["kind"]), "stage": JobStage(row["stage"])})
