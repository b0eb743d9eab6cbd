"""Node-hours of blocks as jobs: by their own times, by the accounts, and against a limit."""

from __future__ import annotations

import pytest
from fake_slurm.driver import Fate
from played_jobs import Laboratory, block, collected, play

from commtune.cluster.jobs.block_jobs import BlockJobs
from commtune.cluster.slurm.client import SlurmScheduler
from commtune.model import Outcome


def test_by_the_jobs_own_times_and_then_by_the_accounts(laboratory: Laboratory) -> None:
    laboratory.fake.next(Fate(run_s=3600))
    jobs = laboratory.jobs()
    jobs.submit(block(0), 60.0)
    laboratory.fake.advance(3600)
    play(laboratory.tracked(jobs, 0).folder, 2, laboratory.clock(), run_s=900)
    laboratory.fake.accounts("on", lag_s=100)
    jobs.collect()
    jobs.settled()
    assert laboratory.book.node_hours() == pytest.approx(2 * 0.5, abs=0.01)
    assert jobs.used_s() == pytest.approx(1800, abs=20)
    laboratory.fake.advance(200)
    jobs.settled()
    assert laboratory.book.node_hours() == pytest.approx(2 * 1.0, abs=0.01)


def test_a_limit_leaves_what_is_not_used_and_not_under_way(laboratory: Laboratory) -> None:
    laboratory.limit = 1.0
    laboratory.fake.next(Fate(run_s=4))
    jobs = laboratory.jobs()
    assert jobs.left_s() == 1800
    jobs.submit(block(0), 60.0)
    assert jobs.left_s() == 1800 - 2 * 60
    laboratory.fake.advance(10)
    play(laboratory.tracked(jobs, 0).folder, 2, laboratory.clock(), run_s=2)
    collected(jobs)
    assert jobs.left_s() == pytest.approx(1796, abs=1)
    assert laboratory.jobs().left_s() == pytest.approx(1796, abs=1)  # of another controller


def test_jobs_of_less_than_a_second_use_up_a_limit(laboratory: Laboratory) -> None:
    laboratory.limit = 2 * 1.9 / 3600  # both nodes for 1.9 s
    laboratory.fake.always(Fate(run_s=0.5))
    jobs = laboratory.jobs()
    for number in range(10):
        if jobs.left_s() <= 0:
            break
        _one_that_took(laboratory, jobs, number, took_s=0.4)
        jobs.node_hours.settle()
    assert _accounted_s(laboratory) == {0}, "what the accounts say of each"
    assert jobs.used_s() == pytest.approx(number * 0.4)
    assert number == 5
    assert laboratory.jobs().left_s() <= 0  # of another controller


@pytest.mark.parametrize(
    ("run_s", "took_s", "used_s"),
    [
        (1.9, 1.8, 1.8),  # by the accounts 1 s, which is as long as it can be told there
        (1.9, 0.8, 1.0),  # Slurm itself took the rest
        (30.0, 40.0, 30.0),  # suspended for a while: its own clock went on
    ],
)
def test_files_are_believed_as_far_as_accounts_are_rounded(
    laboratory: Laboratory, run_s: float, took_s: float, used_s: float
) -> None:
    laboratory.fake.next(Fate(run_s=run_s))
    jobs = laboratory.jobs()
    _one_that_took(laboratory, jobs, 0, took_s=took_s)
    jobs.node_hours.settle()
    assert jobs.used_s() == pytest.approx(used_s)
    assert laboratory.job(0).node_hours == pytest.approx(2 * used_s / 3600)


@pytest.mark.parametrize("ahead_s", [-60, 60])
def test_a_clock_that_differs_costs_nothing(laboratory: Laboratory, ahead_s: float) -> None:
    laboratory.accounts = False
    laboratory.fake.next(Fate(run_s=100.0))
    jobs = laboratory.jobs()
    jobs.submit(block(0), 60.0)
    tracked = laboratory.tracked(jobs, 0)
    laboratory.fake.advance(10)
    jobs.monitor.over([tracked])
    assert tracked.job.started_at is not None, "Slurm said when it began"
    laboratory.fake.advance(40)
    play(tracked.folder, 2, laboratory.clock() + ahead_s, run_s=20)
    collected(jobs)
    assert jobs.used_s() == pytest.approx(40)


def test_a_job_that_was_cut_short_costs_what_its_runs_took(laboratory: Laboratory) -> None:
    laboratory.fake.next(Fate("FAILED", run_s=0.7, code=1))
    jobs = laboratory.jobs()
    jobs.submit(block(0), 60.0)
    laboratory.fake.advance(5)
    folder = laboratory.tracked(jobs, 0).folder
    play(folder, 2, laboratory.clock(), run_s=0.3)
    (folder.path / "finished").unlink()
    collected(jobs)
    jobs.node_hours.settle()
    assert jobs.used_s() == pytest.approx(0.6)


def test_a_run_that_was_lost_with_its_node_costs_node_hours_alone(laboratory: Laboratory) -> None:
    laboratory.fake.next(Fate("NODE_FAIL", run_s=60.0))
    jobs = laboratory.jobs()
    jobs.submit(block(0), 60.0)
    laboratory.fake.advance(30)
    folder = laboratory.tracked(jobs, 0).folder
    play(folder, 2, laboratory.clock(), run_s=10)
    for gone in (folder.step_exit(1), folder.path / "finished"):
        gone.unlink()
    _, lost = collected(jobs)
    jobs.node_hours.settle()
    assert lost.outcome is Outcome.NODE_FAILURE
    assert jobs.node_hours.used_s == pytest.approx(60, abs=1)
    assert jobs.used_s() == pytest.approx(60 - lost.wall_s, abs=1)
    assert lost.wall_s > 30


def _one_that_took(laboratory: Laboratory, jobs: BlockJobs, number: int, *, took_s: float) -> None:
    jobs.submit(block(number), 60.0)
    laboratory.fake.advance(60)
    folder = laboratory.tracked(jobs, number).folder
    play(folder, 2, laboratory.clock(), run_s=took_s / 2)
    collected(jobs)
    laboratory.fake.advance(60)


def _accounted_s(laboratory: Laboratory) -> set[int]:
    accounts = SlurmScheduler(laboratory.fake.environment)
    return {job.elapsed_s for job in accounts.account(laboratory.numbers(), 0)}
