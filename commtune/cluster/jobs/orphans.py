"""Jobs in the book that nobody waits for any more: they are ended, and put down as over."""

from __future__ import annotations

from collections.abc import Collection

from commtune.cluster.jobs.node_hours import NodeHourAccount
from commtune.cluster.jobs.submitter import Submitter
from commtune.cluster.jobs.tracked_job import TrackedJob, key_in
from commtune.cluster.slurm.queries import Queue
from commtune.model import JobKind, JobStage
from commtune.tuner.ports import JobBook


def _running_jobs(queue: Queue) -> dict[str, str]:
    """Slurm's numbers of our jobs that are not over, by key.

    A job is ours by its name: a number alone proves nothing, since Slurm uses numbers again.

    Raises:
        SlurmFault: Slurm gives no answer.
    """
    return {
        key: job.number
        for job in queue.mine().jobs
        if (key := key_in(job.name)) and not job.sighting.state.is_over
    }


def close_orphans(
    book: JobBook, handing_in: Submitter, spending: NodeHourAccount, kept: Collection[str]
) -> None:
    """Cancels and closes open jobs of blocks and traces, but for those kept (by key).

    Their runs are stored, or they had none: the controller died just before it closed them.

    Raises:
        SlurmFault: Slurm gives no answer; they stay open.
    """
    left = [
        TrackedJob(job, (), 0.0)
        for job in book.open_jobs()
        if job.kind is not JobKind.ALLOCATION and job.key not in kept
    ]
    if not left:
        return
    for flight in left:
        flight.noted(number=flight.job.number or handing_in.known(flight))
    alive = _running_jobs(handing_in.queue)
    handing_in.submission.cancel([alive[f.job.key] for f in left if f.job.key in alive])
    for flight in left:
        if last := flight.folder.finished():
            flight.noted(started_at=last.began_at, ended_at=last.ended_at)
        flight.noted(stage=JobStage.OVER)
        spending.landed(flight)
