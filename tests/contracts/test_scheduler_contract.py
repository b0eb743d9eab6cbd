"""The laws of ``cluster.scheduler.Scheduler``, over every implementation of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest
from accounts import state_in_accounts
from fake_slurm.driver import UNREACHABLE, FakeSlurm, Fate
from memory_scheduler import MemoryScheduler
from pbs_cluster import Cluster as PbsCluster
from pbs_config import USER as PBS_USER
from slurm_cluster import Cluster
from waiting import wait_for

from commtune.cluster.job_states import JobState
from commtune.cluster.pbs.client import PbsScheduler
from commtune.cluster.scheduler import (
    AccountedJob,
    QueueSnapshot,
    Scheduler,
    SchedulerFault,
)
from commtune.cluster.slurm.client import SlurmScheduler
from commtune.errors import UserError

NOWHERE = "999999"


@dataclass
class Site:
    """A scheduler with three nodes, on which nothing runs.

    Attributes:
        end: lets a job end well that would go on; ``None`` where its script does so itself.
        refuse: makes the next submission one that the scheduler refuses; returns an option for it.
        silence: makes the scheduler one that gives no answer.
    """

    scheduler: Scheduler
    folder: Path
    end: Callable[[str], None] | None
    refuse: Callable[[], str]
    silence: Callable[[], Scheduler]
    _numbers: Iterator[int]
    name_line: str = "#SBATCH --job-name={}"
    option_line: str = "#SBATCH {}"

    def submit(self, name: str, *, ends: bool = False, option: str = "", after: str = "") -> str:
        script = self.folder / f"{next(self._numbers)}.sh"
        lines = [self.name_line.format(name)]
        lines += [self.option_line.format(option)] if option else []
        command = "true" if ends else "exec sleep 600"
        script.write_text("\n".join(["#!/bin/bash", *lines, command, ""]))
        job = self.scheduler.submit(script, folder=self.folder, after=after)
        if ends and self.end is not None:
            self.end(job)
        return job

    def until(self, job: str, state: JobState) -> QueueSnapshot:
        def seen() -> QueueSnapshot | None:
            answer = self.scheduler.poll([job])
            return answer if answer.state_of(job).state is state else None

        return wait_for(seen, f"job {job} to be {state}")

    def accounts(self, job: str, state: JobState) -> tuple[AccountedJob, ...]:
        def told() -> tuple[AccountedJob, ...]:
            attempts = self.scheduler.account([job], time.time() - 3600)
            # Slurm's accounts call a job "allocation" for some seconds.
            named = all(attempt.name != "allocation" for attempt in attempts)
            return attempts if state_in_accounts(attempts, job).state is state and named else ()

        return wait_for(told, f"the accounts to call job {job} {state}")


def _unreachable(slurm: Cluster) -> dict[str, str]:
    return slurm.variant("unreachable", SlurmctldPort="1", MessageTimeout="2")


def _on_slurm(environment: dict[str, str], unreachable: dict[str, str], folder: Path) -> Site:
    return Site(
        SlurmScheduler(environment),
        folder,
        end=None,
        refuse=lambda: "--partition=nowhere",
        silence=lambda: SlurmScheduler(unreachable),
        _numbers=count(),
    )


def _on_pbs(pbs: PbsCluster) -> Site:
    folder = pbs.user_folder()
    return Site(
        PbsScheduler(pbs.for_root, user=PBS_USER),
        folder,
        end=None,
        refuse=lambda: "-q nowhere",
        silence=lambda: PbsScheduler({**pbs.for_root, "PBS_BATCH_SERVICE_PORT": "1"}),
        _numbers=count(),
        name_line="#PBS -N {}",
        option_line="#PBS {}",
    )


def _in_memory(folder: Path) -> Site:
    scheduler = MemoryScheduler(time.time)

    def refuse() -> str:
        scheduler.refuses = True
        return ""

    def silence() -> Scheduler:
        scheduler.silent = True
        return scheduler

    return Site(scheduler, folder, scheduler.end, refuse, silence, count())


@pytest.fixture(params=["memory", "fake Slurm", "real Slurm", "real PBS"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    folder = tmp_path / "jobs"
    folder.mkdir()
    if request.param == "memory":
        yield _in_memory(folder)
    elif request.param == "real PBS":
        yield _on_pbs(request.getfixturevalue("pbs"))
    elif request.param == "real Slurm":
        slurm: Cluster = request.getfixturevalue("slurm")
        yield _on_slurm(slurm.environment, _unreachable(slurm), folder)
    else:
        fate = Fate(run="background", run_s=None)
        with FakeSlurm(tmp_path / "fake", nodes=3, fate=fate, real_time=True) as fake:
            site = _on_slurm(fake.environment, fake.environment, folder)

            def silence() -> Scheduler:
                fake.answers("squeue", UNREACHABLE, times=9)
                fake.answers("scancel", UNREACHABLE, times=9)
                return site.scheduler

            site.silence = silence
            yield site


def test_a_submitted_job_is_in_the_queue_by_number_and_name(site: Site) -> None:
    # Other tests of the same Slurm leave ended jobs in its queue for a while.
    name = f"ours-{uuid4().hex[:8]}"
    job = site.submit(name)
    answer = site.scheduler.poll([job])
    assert answer.complete
    assert answer.state_of(job).state not in (JobState.UNKNOWN, JobState.ABSENT)
    assert [one.number for one in site.scheduler.poll().jobs if one.name == name] == [job]
    running = site.until(job, JobState.RUNNING).find(job)
    assert running
    assert running.observed.started_at
    assert running.node_list
    assert running.ended_at is None
    site.scheduler.cancel([job])


def test_an_absent_job_is_not_a_finished_one(site: Site) -> None:
    answer = site.scheduler.poll([NOWHERE])
    assert answer.complete
    assert answer.state_of(NOWHERE).state is JobState.ABSENT
    assert site.scheduler.account([NOWHERE], time.time() - 3600) == ()


def test_exactly_the_named_jobs_are_cancelled_and_it_may_be_repeated(site: Site) -> None:
    one, other = site.submit("one"), site.submit("other")
    # PBS calls a job that is deleted while it starts a failed one.
    site.until(one, JobState.RUNNING)
    site.until(other, JobState.RUNNING)
    site.scheduler.cancel([one, NOWHERE])
    site.until(one, JobState.CANCELLED)
    site.scheduler.cancel([one])
    site.scheduler.cancel([])
    assert site.scheduler.poll([other]).state_of(other).state is JobState.RUNNING
    site.scheduler.cancel([other])


@pytest.mark.parametrize("wrong", ["", "x", "1 2", "-1", "0", "--me"])
def test_what_is_no_job_id_is_refused_before_any_job_is_cancelled(site: Site, wrong: str) -> None:
    if wrong == "0" and site.scheduler.name == "PBS":
        pytest.skip("the first job of a PBS server is number 0")
    job = site.submit("goes-on")
    with pytest.raises(UserError):
        site.scheduler.cancel([job, wrong])
    assert not site.scheduler.poll([job]).state_of(job).state.is_over
    site.scheduler.cancel([job])


@pytest.mark.parametrize("site", ["memory", "real Slurm", "real PBS"], indirect=True)
def test_a_job_can_wait_for_the_end_of_another(site: Site) -> None:
    # The fake Slurm takes --dependency and does not wait: its jobs stand as a test says.
    first = site.submit("first")
    second = site.submit("second", after=first)
    site.until(first, JobState.RUNNING)
    assert site.scheduler.poll([second]).state_of(second).state is JobState.PENDING
    site.scheduler.cancel([first])
    site.until(second, JobState.RUNNING)
    site.scheduler.cancel([second])


def test_a_refused_job_says_that_it_is_nowhere(site: Site) -> None:
    before = len(site.scheduler.poll().jobs)
    option = site.refuse()
    with pytest.raises(SchedulerFault) as caught:
        site.submit("refused", option=option)
    assert not caught.value.perhaps_accepted
    assert not caught.value.transient
    assert caught.value.notice
    assert len(site.scheduler.poll().jobs) == before


def test_accounts_tell_how_a_job_ended(site: Site) -> None:
    job = site.submit("ends", ends=True)
    ended = site.until(job, JobState.COMPLETED).find(job)
    assert ended
    assert ended.ended_at
    if not site.scheduler.keeps_accounts:
        return
    (attempt,) = site.accounts(job, JobState.COMPLETED)
    assert (attempt.number, attempt.node_count) == (job, 1)
    assert attempt.name == "ends"


def test_without_accounts_nothing_is_told(site: Site) -> None:
    job = site.submit("ends", ends=True)
    if not site.scheduler.keeps_accounts:
        assert site.scheduler.account([job], 0) == ()
        return
    site.accounts(job, JobState.COMPLETED)
    if isinstance(site.scheduler, SlurmScheduler):
        without: Scheduler = SlurmScheduler(site.scheduler.environment, keeps_accounts=False)
    else:
        assert isinstance(site.scheduler, MemoryScheduler)
        site.scheduler.keeps_accounts = False
        without = site.scheduler
    assert without.account([job], 0) == ()


def test_nodes_that_work_have_not_failed(site: Site) -> None:
    assert site.scheduler.failed_nodes([]) == frozenset()
    assert site.scheduler.failed_nodes(["n1"]) == frozenset()


def test_silence_is_a_fault_that_may_pass(site: Site) -> None:
    silent = site.silence()
    for ask in (lambda: silent.poll(["1"]), lambda: silent.cancel(["1"])):
        with pytest.raises(SchedulerFault) as caught:
            ask()
        assert caught.value.transient
        assert caught.value.hint
