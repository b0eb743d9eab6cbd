"""A scheduler in memory: the whole port, no programs. Jobs run until a test ends them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

from commtune.cluster.job_states import JobState, ObservedState
from commtune.cluster.scheduler import AccountedJob, QueuedJob, QueueSnapshot, SchedulerFault
from commtune.cluster.slurm.allocation import Srun
from commtune.errors import UserError

_NAME = re.compile(r"^#SBATCH --job-name=(\S+)$", re.MULTILINE)


@dataclass
class MemoryScheduler:
    """Implements ``cluster.scheduler.Scheduler``.

    Attributes:
        clock: seconds since 1970.
        down: nodes that do not respond.
        refuses: whether it takes no job.
        silent: whether it gives no answer to anything.
    """

    clock: Callable[[], float]
    down: set[str] = field(default_factory=set)
    refuses: bool = False
    silent: bool = False
    keeps_accounts: bool = True
    _jobs: dict[str, QueuedJob] = field(default_factory=dict, init=False)
    _requeues: dict[str, bool] = field(default_factory=dict, init=False)
    _after: dict[str, str] = field(default_factory=dict, init=False)

    @property
    def name(self) -> str:
        return "the scheduler in memory"

    def submit(self, script: Path, *, folder: Path, after: str = "") -> str:
        del folder
        self._check_answers()
        if self.refuses:
            raise SchedulerFault("the job is refused", hint="ask for less", transient=False)
        named = _NAME.search(script.read_text())
        number = str(len(self._jobs) + 1)
        waits = after in self._jobs and not self._jobs[after].observed.state.is_over
        self._after[number] = after if waits else ""
        state = ObservedState(JobState.PENDING, "PENDING", "Dependency")
        name = named[1] if named else "job"
        self._jobs[number] = QueuedJob(number, state, 1, "", None, name)
        if not waits:
            self._start(number)
        return number

    def end_submission(self, script: Path) -> None:
        """No submission takes any time here."""

    def cancel(self, jobs: Collection[str]) -> None:
        for job in jobs:
            if not re.fullmatch(r"[1-9]\d*", job):
                raise UserError(f"{job!r} is no job id", hint="ids look like 1234")
        self._check_answers()
        for job in jobs:
            if job in self._jobs and not self._jobs[job].observed.state.is_over:
                self.end(job, JobState.CANCELLED)

    def let_requeue(self, job: str, allowed: bool) -> None:
        self._check_answers()
        self._requeues[job] = allowed

    def requeue(self, job: str) -> None:
        self._check_answers()
        if not self._requeues.get(job):
            raise SchedulerFault("it must not be requeued", hint="", transient=False)
        state = ObservedState(JobState.PENDING, "PENDING", "BeginTime")
        self._jobs[job] = replace(self._jobs[job], observed=state, node_list="")

    def poll(self, jobs: Collection[str] | None = None) -> QueueSnapshot:
        self._check_answers()
        found = [job for job in self._jobs.values() if jobs is None or job.number in jobs]
        return QueueSnapshot(tuple(found))

    def account(self, jobs: Collection[str] | None, since: float) -> tuple[AccountedJob, ...]:
        if not self.keeps_accounts:
            return ()
        asked = [job for job in self.poll(jobs).jobs if (job.ended_at or since) >= since]
        return tuple(self._account(job) for job in asked)

    def failed_nodes(self, nodes: Collection[str]) -> frozenset[str]:
        self._check_answers()
        return frozenset(self.down & set(nodes))

    def release_command(self, job: str) -> str:
        return f"release {job}"

    def end(self, job: str, state: JobState = JobState.COMPLETED) -> None:
        """Ends a job; those that wait for it start."""
        before = self._jobs[job]
        observed = replace(before.observed, state=state, word=state.name, reason="")
        self._jobs[job] = replace(before, observed=observed, ended_at=self.clock())
        for waiting, after in self._after.items():
            if after == job and self._jobs[waiting].observed.state is JobState.PENDING:
                self._start(waiting)

    def _start(self, job: str) -> None:
        running = ObservedState(JobState.RUNNING, "RUNNING", started_at=self.clock())
        self._jobs[job] = replace(self._jobs[job], observed=running, node_list="n1")

    def _account(self, job: QueuedJob) -> AccountedJob:
        started = job.observed.started_at
        used_s = 0.0 if started is None else (job.ended_at or self.clock()) - started
        had = replace(job, node_count=job.node_count if job.node_list else 0)
        return AccountedJob(**vars(had), elapsed_s=int(used_s))

    def _check_answers(self) -> None:
        if self.silent:
            raise SchedulerFault("no answer", hint="ask again", transient=True)


class SrunWithoutSteps(Srun):
    """No Slurm is asked: steps are processes of this machine, which end with what started them."""

    def steps(self, job: str) -> list[str]:
        del job
        return []
