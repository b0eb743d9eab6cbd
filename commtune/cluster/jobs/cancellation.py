"""Ending what is ours with Slurm, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from commtune.cluster.jobs.tracked_job import key_in
from commtune.cluster.slurm.queries import Queue, QueuedJob
from commtune.cluster.slurm.submission import Submission
from commtune.model import JobKind, JobRecord, JobStage
from commtune.tuner.ports import JobBook

#: How often Slurm is asked whether the jobs are gone, and seconds between: it lets them clean up
#: for half a minute.
_LOOKS, _PAUSE_S = 90, 1.0
_WORDS = "ended by 'commtune cancel'"


@dataclass(frozen=True)
class Cancelled:
    """What was ended.

    Attributes:
        numbers: Slurm's numbers of the jobs.
        gone: how many jobs of the book Slurm no longer had.
    """

    numbers: tuple[str, ...]
    gone: int


def cancel_all(
    book: JobBook,
    queue: Queue,
    submission: Submission,
    *,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> Cancelled:
    """Cancels the campaign's jobs that are with Slurm, and waits until they are gone.

    A job is ours by the key in its name; a number alone proves nothing, since Slurm uses numbers
    again. A controller that still lives may hand in another job until it sees what became of its
    own, so the book is read again with each look. Blocks stay open in it: what they measured is
    read when the campaign goes on.

    Raises:
        SlurmFault: Slurm gives no answer.
    """
    keys = {job.key for job in book.open_jobs()}
    seen: dict[str, QueuedJob] = {}
    ended: dict[str, QueuedJob] = {}
    for _ in range(_LOOKS):
        seen = {key: job for job in queue.mine().jobs if (key := key_in(job.name)) in keys}
        alive = {key: job for key, job in seen.items() if not job.sighting.state.is_over}
        submission.cancel([alive[key].number for key in alive.keys() - ended.keys()])
        ended |= alive
        more = {job.key for job in book.open_jobs()} - keys
        keys |= more
        if not alive and not more:
            break
        sleep(_PAUSE_S)
    for job in book.open_jobs():
        if job.key in ended or job.kind is not JobKind.BLOCK:
            book.put_job(_noted(job, seen.get(job.key), clock(), job.key in ended))
    numbers = sorted({job.number for job in ended.values()}, key=int)
    return Cancelled(tuple(numbers), len(keys) - len(ended))


def _noted(job: JobRecord, last: QueuedJob | None, now: float, is_ours: bool) -> JobRecord:
    """A job as it is to stand in the book: over, unless it holds runs that nobody read yet."""
    job = replace(job, detail=_WORDS if is_ours else job.detail)
    if job.kind is JobKind.BLOCK:
        return job
    started_at = last.sighting.started_at if last else job.started_at
    ended_at = (last.ended_at if last else None) or job.ended_at or (now if is_ours else None)
    used_s = max(0.0, ended_at - started_at) if started_at and ended_at else 0.0
    return replace(
        job,
        stage=JobStage.OVER,
        number=job.number or (last.number if last else ""),
        started_at=started_at,
        ended_at=ended_at,
        node_hours=used_s * job.node_count / 3600,
    )
