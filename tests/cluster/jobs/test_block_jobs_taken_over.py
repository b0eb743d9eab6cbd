"""Blocks that another controller takes over, by the step that the earlier one died at."""

from __future__ import annotations

import pytest
from fake_slurm.driver import UNREACHABLE, Fate
from played_jobs import Laboratory, block, collected, outcomes, play

from commtune.model import JobStage, Outcome


def test_before_the_job_was_put_down(laboratory: Laboratory) -> None:
    jobs = laboratory.jobs()
    jobs.adopt(block(0))
    assert jobs.in_flight == 1
    assert set(outcomes(jobs).values()) == {Outcome.INTERRUPTED}
    assert laboratory.numbers() == []


def test_before_sbatch(laboratory: Laboratory) -> None:
    first = laboratory.jobs()
    laboratory.fake.answers("sbatch", UNREACHABLE)
    first.submit(block(0), 60.0)
    jobs = laboratory.jobs()
    jobs.adopt(block(0))
    collected(jobs)
    assert laboratory.numbers() == ["1001"]


@pytest.mark.parametrize("ended", [False, True])
def test_before_the_number_was_put_down(laboratory: Laboratory, ended: bool) -> None:
    laboratory.fake.next(Fate(run_s=10 if ended else 600))
    first = laboratory.jobs()
    first.submit(block(0), 60.0)
    _forget_number(laboratory)
    folder = laboratory.tracked(first, 0).folder
    laboratory.fake.advance(20)
    if ended:
        laboratory.fake.advance(400)  # beyond what squeue remembers
    jobs = laboratory.jobs()
    jobs.adopt(block(0))
    laboratory.on_rest = lambda: play(folder, 2, laboratory.clock())
    assert set(outcomes(jobs).values()) == {Outcome.OK}
    assert laboratory.numbers() == ["1001"]
    assert laboratory.job(0).number == "1001"


def test_by_what_the_job_itself_wrote(laboratory: Laboratory) -> None:
    """Neither the queue nor accounts know it any more."""
    laboratory.accounts = False
    first = laboratory.jobs()
    first.submit(block(0), 60.0)
    _forget_number(laboratory)
    folder = laboratory.tracked(first, 0).folder
    play(folder, 2, laboratory.clock() + 5)
    (folder.path / "nodes").write_text("SLURM_JOB_ID=1001\nSLURM_JOB_NODELIST=n[1-2]\n")
    laboratory.fake.advance(1000)
    jobs = laboratory.jobs()
    jobs.adopt(block(0))
    assert set(outcomes(jobs).values()) == {Outcome.OK}
    assert laboratory.numbers() == ["1001"]


def test_while_it_runs(laboratory: Laboratory) -> None:
    laboratory.fake.next(Fate(run_s=100))
    first = laboratory.jobs()
    first.submit(block(0), 60.0)
    laboratory.fake.advance(20)
    jobs = laboratory.jobs()
    jobs.adopt(block(0))
    folder = laboratory.tracked(jobs, 0).folder
    assert laboratory.tracked(jobs, 0).limit_s == 60.0
    laboratory.on_rest = lambda: play(folder, 2, laboratory.clock())
    assert set(outcomes(jobs).values()) == {Outcome.OK}
    assert laboratory.numbers() == ["1001"]


def test_after_its_results_were_stored(laboratory: Laboratory) -> None:
    first = laboratory.jobs()
    first.submit(block(0), 60.0)
    laboratory.fake.advance(10)
    play(laboratory.tracked(first, 0).folder, 2, laboratory.clock())
    first.collect()  # and dies
    jobs = laboratory.jobs()
    jobs.submit(block(1), 60.0)
    assert laboratory.job(0).stage is JobStage.OVER
    assert laboratory.job(0).node_hours > 0


def test_one_that_was_left_is_closed_once_slurm_answers(laboratory: Laboratory) -> None:
    first = laboratory.jobs()
    first.submit(block(0), 60.0)
    laboratory.fake.advance(10)
    play(laboratory.tracked(first, 0).folder, 2, laboratory.clock())
    first.collect()  # and dies
    laboratory.fake.answers("squeue", UNREACHABLE)
    jobs = laboratory.jobs()
    jobs.submit(block(1), 60.0)
    assert laboratory.job(0).stage is JobStage.SUBMITTED
    jobs.submit(block(2), 60.0)
    assert laboratory.job(0).stage is JobStage.OVER


def test_one_that_was_cancelled_meanwhile_goes_on(laboratory: Laboratory) -> None:
    laboratory.fake.next(Fate("CANCELLED", run_s=5, cancelled_by=0))
    laboratory.jobs().submit(block(0), 60.0)
    laboratory.fake.advance(30)
    jobs = laboratory.jobs()
    jobs.adopt(block(0))
    assert set(outcomes(jobs).values()) == {Outcome.CANCELLED}
    jobs.submit(block(1), 60.0)


def _forget_number(laboratory: Laboratory) -> None:
    """The book as it was before Slurm's number came."""
    job = laboratory.job(0)
    prepared = next(j for j in laboratory.book.written if j.key == job.key)
    assert prepared.stage is JobStage.PREPARED
    laboratory.book.known[job.key] = prepared
