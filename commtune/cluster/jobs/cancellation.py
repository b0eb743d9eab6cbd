"""Cancels the jobs of a campaign, and no others: all of them, or those that nobody waits for.

Jobs are identified by the key in their names, since schedulers reuse numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from commtune.cluster.jobs.node_hours import NodeHourAccount
from commtune.cluster.jobs.submission import Submitter, TrackedJob, key_in
from commtune.cluster.scheduler import QueuedJob, Scheduler
from commtune.errors import DatabaseFault, EnvironmentFault
from commtune.model import JobKind, JobRecord, JobStage
from commtune.paths import is_folder
from commtune.tuner.ports import JobBook

#: Number of polls until the jobs must be gone, and seconds between two: Slurm gives them half a
#: minute to clean up (KillWait).
_LOOKS, _PAUSE_S = 90, 1.0
#: Number of these that also wait for a controller, which may be dead on another machine.
_LOOKS_FOR_CONTROLLER = 20
_DETAIL = "ended by 'commtune cancel'"


#: The most job numbers that a message lists.
_MOST_NUMBERS = 12


@dataclass(frozen=True)
class Cancelled:
    """The outcome of cancelling a campaign."""

    numbers: tuple[str, ...] = ()  # the scheduler's numbers of the cancelled jobs
    scheduler: str = ""  # its name
    problem: str = ""  # why the job book, or the request to stop, could not be written
    controller: str = ""  # the controller that was told to stop

    def describe(self) -> str:
        """Describes what was cancelled, for people."""
        if not self.numbers:
            told = f"{self.controller} was told to stop; what was measured is kept"
            return told if self.controller else f"it has no jobs in {self.scheduler}"
        listed = ", ".join(self.numbers[:_MOST_NUMBERS])
        if (more := len(self.numbers) - _MOST_NUMBERS) > 0:
            listed += f" and {more} more"
        jobs = "job" if len(self.numbers) == 1 else "jobs"
        return f"{jobs} {listed} ended; what was measured is kept"

    def require_written(self, campaign: str) -> None:
        """Raises an ``EnvironmentFault`` if job book or controller could not be told."""
        if self.problem:
            raise EnvironmentFault(
                f"that {campaign} was cancelled could not be written down: {self.problem}",
                hint="free some space, then repeat the command: a controller that still lives, "
                "and was not told, may submit further jobs",
            )


@dataclass(frozen=True)
class FolderBook:
    """A stand-in for the job book, from the jobs' folders, where the database can't be read."""

    folder: Path
    fault: DatabaseFault

    def open_jobs(self) -> list[JobRecord]:
        found = sorted(self.folder.iterdir()) if is_folder(self.folder) else []
        return [JobRecord(one.name, JobKind.ALLOCATION, str(one), 0.0, 0) for one in found]

    def put_job(self, job: JobRecord) -> None:
        del job  # nothing can be written
        raise self.fault


class _OpenJobs(Protocol):
    def open_jobs(self) -> Sequence[JobRecord]: ...
    def put_job(self, job: JobRecord) -> None: ...


def cancel_all(
    book: _OpenJobs, scheduler: Scheduler, has_controller: Callable[[], bool] = lambda: False
) -> Cancelled:
    """Cancels the campaign's jobs that are in the queue, and waits until they are gone.

    Reads the job book again with each poll, as a controller that still lives may submit another
    job. Blocks stay open in it: their results are read when the campaign is continued.

    Args:
        has_controller: whether a controller that was told to stop may still submit a job.

    Raises:
        SchedulerFault: the scheduler gives no answer.
    """
    keys = {job.key for job in book.open_jobs()}
    queued: dict[str, QueuedJob] = {}
    ended: dict[str, QueuedJob] = {}
    for look in range(_LOOKS):
        # Asked before the poll, so that this one sees the last job that the controller submitted.
        submits = look < _LOOKS_FOR_CONTROLLER and has_controller()
        queued = {key: job for key, job in _own_jobs(scheduler).items() if key in keys}
        alive = {key: job for key, job in queued.items() if not job.observed.state.is_over}
        scheduler.cancel([alive[key].number for key in alive.keys() - ended.keys()])
        ended |= alive
        more = {job.key for job in book.open_jobs()} - keys
        keys |= more
        if not alive and not more and not submits:
            break
        time.sleep(_PAUSE_S)
    problem = ""
    try:
        for job in book.open_jobs():
            if job.key in ended or job.kind is not JobKind.BLOCK:
                book.put_job(_closed(job, queued.get(job.key), time.time(), job.key in ended))
    except DatabaseFault as fault:
        problem = fault.message
    numbers = sorted({job.number for job in ended.values()}, key=int)
    return Cancelled(tuple(numbers), scheduler.name, problem)


def _own_jobs(scheduler: Scheduler) -> dict[str, QueuedJob]:
    """Returns all jobs of commtune in the user's queue, by key."""
    return {key: job for job in scheduler.poll().jobs if (key := key_in(job.name))}


def _closed(job: JobRecord, last: QueuedJob | None, now: float, was_ended: bool) -> JobRecord:
    """Returns a job's record as OVER; a block stays open, as its runs were not read yet."""
    job = replace(job, detail=_DETAIL if was_ended else job.detail)
    if job.kind is JobKind.BLOCK:
        return job
    started_at = last.observed.started_at if last else job.started_at
    ended_at = (last.ended_at if last else None) or job.ended_at or (now if was_ended else None)
    used_s = max(0.0, ended_at - started_at) if started_at and ended_at else 0.0
    return replace(
        job,
        stage=JobStage.OVER,
        number=job.number or (last.number if last else ""),
        started_at=started_at,
        ended_at=ended_at,
        node_hours=used_s * job.node_count / 3600,
    )


def close_orphans(
    book: JobBook, submitter: Submitter, node_hours: NodeHourAccount, kept: Collection[str]
) -> None:
    """Cancels and closes open jobs of blocks and traces, except those in ``kept`` (keys).

    An earlier controller died before it closed them; their runs are stored, or they had none.

    Raises:
        SchedulerFault: the scheduler gives no answer; they stay open.
    """
    orphans = [
        TrackedJob(job)
        for job in book.open_jobs()
        if job.kind is not JobKind.ALLOCATION and job.key not in kept
    ]
    if not orphans:
        return
    for orphan in orphans:
        orphan.update(number=orphan.job.number or submitter.find_number(orphan))
    queued = _own_jobs(submitter.scheduler)
    alive = {key: job.number for key, job in queued.items() if not job.observed.state.is_over}
    submitter.scheduler.cancel([alive[o.job.key] for o in orphans if o.job.key in alive])
    for orphan in orphans:
        if last := orphan.folder.finished():
            orphan.update(started_at=last.began_at, ended_at=last.ended_at)
        orphan.update(stage=JobStage.OVER)
        node_hours.add_job(orphan)
