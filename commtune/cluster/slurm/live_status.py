"""What Slurm says of jobs now, for a person who looks; nothing is stored and nobody waits."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from commtune.cluster.slurm.queries import Queue, QueueSnapshot
from commtune.errors import EnvironmentFault
from commtune.model import JobRecord


def jobs_now(jobs: Collection[JobRecord], queue: Queue) -> dict[str, JobRecord]:
    """Jobs as Slurm describes them now, by their keys; nothing where it can't be asked."""
    asked = [job for job in jobs if job.number]
    if not asked:
        return {}
    try:
        answer = queue.look([job.number for job in asked])
    except EnvironmentFault:
        return {}
    return {job.key: _now(job, answer) for job in asked}


def _now(job: JobRecord, answer: QueueSnapshot) -> JobRecord:
    parts = answer.parts(job.number)
    if not parts:
        return replace(job, word="not in the queue", reason="") if answer.complete else job
    seen = answer.sighting(job.number)
    return replace(
        job,
        word=seen.word,
        reason=seen.reason,
        nodes=parts[0].node_list or job.nodes,
        started_at=seen.started_at or job.started_at,
    )
