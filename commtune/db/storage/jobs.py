"""Jobs of a scheduler, as a campaign keeps them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, func, insert, literal, select, update

from commtune.db.codec import clean_text
from commtune.db.connection.busy_retry import BusyRetry
from commtune.db.connection.engine import Database
from commtune.db.tables import Job
from commtune.errors import DatabaseFault
from commtune.model import JobKind, JobRecord, JobStage

#: The stages by how far they are: a job never goes back to an earlier one.
_STAGES = tuple(JobStage)
#: Written out in the statement, where the databases see that the index of open jobs will do.
_OVER = literal(str(JobStage.OVER), literal_execute=True)


@dataclass(frozen=True)
class StoredJobs:
    """The jobs of one campaign (``tuner.ports.JobBook``).

    Every method may raise DatabaseFault, as those of the store.
    """

    database: Database
    patience: BusyRetry
    campaign_id: int

    def put_job(self, job: JobRecord) -> None:
        """Stores a job, in the place of what was known of it by its key.

        Raises:
            DatabaseFault: it would go back to an earlier stage, or is another campaign's.
        """
        with self.database.write(self.patience) as connection:
            _put_job(connection, self.campaign_id, job)

    def open_jobs(self) -> list[JobRecord]:
        """Jobs that are not over, in the order they were prepared; the others are not read."""
        with self.database.read() as connection:
            return open_jobs(connection, self.campaign_id)

    def all_jobs(self) -> list[JobRecord]:
        """All jobs, in the order they were prepared; as many as the campaign ever had."""
        with self.database.read() as connection:
            return _all_jobs(connection, self.campaign_id)

    def node_hours(self) -> float:
        """Node-hours of all jobs, those under way as far as they are known."""
        with self.database.read() as connection:
            return _node_hours(connection, self.campaign_id)


def _put_job(connection: Connection, campaign_id: int, job: JobRecord) -> None:
    """Stores a job, in the place of what was known of it.

    Raises:
        DatabaseFault: it would go back to an earlier stage, or is another campaign's.
    """
    values = _values(job)
    up_to = [str(stage) for stage in _STAGES[: _STAGES.index(job.stage) + 1]]
    replaced = connection.execute(
        update(Job)
        .where(Job.key == job.key, Job.campaign_id == campaign_id, Job.stage.in_(up_to))
        .values(**values)
    )
    if replaced.rowcount:
        return
    stored = connection.execute(
        select(Job.campaign_id, Job.stage).where(Job.key == job.key)
    ).one_or_none()
    if stored is None:
        connection.execute(insert(Job).values(key=job.key, campaign_id=campaign_id, **values))
    elif stored.campaign_id != campaign_id:
        raise DatabaseFault(f"job {job.key} belongs to another campaign")
    else:
        raise DatabaseFault(
            f"job {job.key} is stored as {stored.stage} and can't be {job.stage} again"
        )


def open_jobs(connection: Connection, campaign_id: int) -> list[JobRecord]:
    """Jobs that are not over, in the order they were prepared."""
    rows = connection.execute(
        select(Job.__table__)
        .where(Job.campaign_id == campaign_id, Job.stage != _OVER)
        .order_by(Job.prepared_at, Job.key)
    ).mappings()
    return [_job(row) for row in rows]


def open_jobs_by_campaign(connection: Connection) -> Mapping[int, list[JobRecord]]:
    """Jobs of all campaigns that are not over, in the order they were prepared."""
    found: defaultdict[int, list[JobRecord]] = defaultdict(list)
    rows = connection.execute(
        select(Job.__table__).where(Job.stage != _OVER).order_by(Job.prepared_at, Job.key)
    ).mappings()
    for row in rows:
        found[row["campaign_id"]].append(_job(row))
    return found


def _all_jobs(connection: Connection, campaign_id: int) -> list[JobRecord]:
    """All jobs of a campaign, in the order they were prepared."""
    rows = connection.execute(
        select(Job.__table__)
        .where(Job.campaign_id == campaign_id)
        .order_by(Job.prepared_at, Job.key)
    ).mappings()
    return [_job(row) for row in rows]


def _node_hours(connection: Connection, campaign_id: int) -> float:
    """Node-hours of all jobs of a campaign; the index holds them, no row is read."""
    total = connection.execute(
        select(func.sum(Job.node_hours)).where(Job.campaign_id == campaign_id)
    ).scalar()
    return float(total or 0.0)


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
