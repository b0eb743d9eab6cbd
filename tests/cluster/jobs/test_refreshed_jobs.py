"""What ``status`` says of jobs while no controller watches them: as the queue describes them."""

from __future__ import annotations

from dataclasses import replace

from fake_slurm.driver import UNREACHABLE, Fate
from played_jobs import Laboratory, block

from commtune.cluster.jobs.monitor import refresh_jobs
from commtune.model import JobStage


def test_jobs_that_wait_run_and_are_over(laboratory: Laboratory) -> None:
    for fate in (Fate(wait_s=None, waits_for="Licenses"), Fate(run_s=600), Fate()):
        laboratory.fake.next(fate)
    jobs = laboratory.jobs()
    for number in range(3):
        jobs.submit(block(number), 60.0)
    laboratory.fake.advance(10)
    stored = [laboratory.job(number) for number in range(3)]
    found = refresh_jobs(stored, laboratory.queue)
    waits, runs, over = (found[job.key] for job in stored)
    assert (waits.stage, waits.word, waits.reason) == (JobStage.SUBMITTED, "PENDING", "Licenses")
    assert (runs.stage, runs.word, runs.nodes) == (JobStage.SUBMITTED, "RUNNING", "n[3-4]")
    assert runs.started_at is not None
    assert (over.stage, over.word) == (JobStage.OVER, "COMPLETED")
    # It is only looked at: the controller that comes puts it down.
    assert [laboratory.job(number) for number in range(3)] == stored


def test_jobs_that_the_queue_no_longer_names_are_over(laboratory: Laboratory) -> None:
    laboratory.fake.next(Fate(run_s=600))
    laboratory.jobs().submit(block(0), 60.0)
    job = laboratory.job(0)
    unsubmitted = replace(job, key="1" * len(job.key), number="")
    reused = replace(job, key="2" * len(job.key))  # the number is another job's now
    found = refresh_jobs([job, unsubmitted, reused], laboratory.queue)
    assert found[job.key].stage is JobStage.SUBMITTED
    assert (found[reused.key].stage, found[reused.key].word) == (JobStage.OVER, "not in the queue")
    assert unsubmitted.key not in found


def test_nothing_is_said_of_jobs_while_slurm_does_not_answer(laboratory: Laboratory) -> None:
    laboratory.jobs().submit(block(0), 60.0)
    laboratory.fake.answers("squeue", UNREACHABLE, times=9)
    assert refresh_jobs([laboratory.job(0)], laboratory.queue) == {}
