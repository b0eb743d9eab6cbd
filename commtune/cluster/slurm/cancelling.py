"""Ending what is ours with Slurm, and nothing else."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from commtune.cluster.slurm.flight import key_in
from commtune.cluster.slurm.queries import Queue
from commtune.cluster.slurm.submitting import Submission
from commtune.model import JobKind, JobRecord, JobStage
from commtune.tuner.ports import JobBook


@dataclass(frozen=True)
class Cancelled:
    """What was ended.

    Attributes:
        numbers: Slurm's numbers of the jobs.
        gone: how many jobs of the book Slurm no longer has.
    """

    numbers: tuple[str, ...]
    gone: int


def cancel_all(book: JobBook, queue: Queue, submission: Submission) -> Cancelled:
    """Cancels the campaign's jobs that are with Slurm.

    A job is ours by the key in its name; a number alone proves nothing, since Slurm uses numbers
    again. Blocks stay open in the book: what they measured is read when the campaign goes on.

    Raises:
        SlurmFault: Slurm gives no answer; nothing is changed in the book.
    """
    jobs = {job.key: job for job in book.open_jobs()}
    alive = {
        key: job.number
        for job in queue.mine().jobs
        if (key := key_in(job.name)) in jobs and not job.sighting.state.is_over
    }
    submission.cancel(list(alive.values()))
    for job in jobs.values():
        book.put_job(_noted(job, alive))
    return Cancelled(tuple(sorted(alive.values(), key=int)), len(jobs) - len(alive))


def _noted(job: JobRecord, alive: Collection[str]) -> JobRecord:
    said = "ended by 'commtune cancel'" if job.key in alive else job.detail
    stage = job.stage if job.kind is JobKind.BLOCK else JobStage.OVER
    return replace(job, detail=said, stage=stage)
