"""Jobs in the book that nobody waits for any more: they are ended, and put down as over."""

from __future__ import annotations

from collections.abc import Collection

from commtune.cluster.slurm.flight import Flight
from commtune.cluster.slurm.handing_in import HandingIn
from commtune.cluster.slurm.spending import Spending
from commtune.model import JobKind, JobStage
from commtune.tuner.ports import JobBook


def close_leftovers(
    book: JobBook, handing_in: HandingIn, spending: Spending, kept: Collection[str]
) -> None:
    """Cancels and closes open jobs of blocks and traces, but for those kept (by key).

    Their runs are stored, or they had none: the controller died just before it closed them.

    Raises:
        SlurmFault: Slurm gives no answer; they stay open.
    """
    left = [
        Flight(job, (), 0.0)
        for job in book.open_jobs()
        if job.kind is not JobKind.ALLOCATION and job.key not in kept
    ]
    for flight in left:
        flight.noted(number=flight.job.number or handing_in.known(flight))
    handing_in.submission.cancel([flight.job.number for flight in left if flight.job.number])
    for flight in left:
        if last := flight.folder.finished():
            flight.noted(started_at=last.began_at, ended_at=last.ended_at)
        flight.noted(stage=JobStage.OVER)
        spending.landed(flight)
