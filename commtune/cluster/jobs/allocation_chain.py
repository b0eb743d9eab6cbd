"""Allocations of a campaign, one after the other: each asks for the next before it is over.

The next is asked for once a run of this one went well, so that a campaign that can't work doesn't
go on for ever, and waits for this one's end. A campaign that is done cancels what waits.

As long as the scheduler doesn't take the next one (a user may have one job only, say), this one
may be requeued: at its end, or by the scheduler when a node dies.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from commtune.cluster.job_states import JobState
from commtune.cluster.jobs.failures import FailedNodes
from commtune.cluster.jobs.job_folder import ControllerNote, JobFolder
from commtune.cluster.jobs.submission import Submitter, TrackedJob, job_name, key_in, new_key
from commtune.cluster.placement import expand_hosts
from commtune.cluster.scheduler import (
    AFTER_VARIABLE,
    KEY_VARIABLE,
    AccountedJob,
    Allocation,
    QueuedJob,
    SchedulerFault,
    sum_node_hours,
)
from commtune.errors import EnvironmentFault
from commtune.model import JobKind, JobRecord, JobStage
from commtune.slurm_templates.job_request import JobRequest, job_for
from commtune.slurm_templates.launch_command import words_in_uenv
from commtune.slurm_templates.rendering import render_allocation
from commtune.systems.schema import System
from commtune.tuner.ports import JobBook

#: Seconds before an allocation's end at which its controller is told.
_WARN_S = 30
#: Variables of ours, and of where things are, that a controller in a job needs as well.
_PASSED = ("COMMTUNE_DB_WAIT", "COMMTUNE_MPI_PATH", "XDG_CACHE_HOME", "XDG_DATA_HOME")


@dataclass(frozen=True)
class AllocationScript:
    campaign: str
    system: System | None
    job_request: JobRequest
    command: tuple[str, ...]  # the controller and its arguments
    folder: Path  # where jobs have their folders
    database: str  # its URL, for the controller
    time_s: float  # length of the allocation, seconds
    #: Variables of the controller, and of all runs below it.
    environment: Mapping[str, str] = field(default_factory=dict)

    def render(self, key: str, after: str = "", exclude: Collection[str] = ()) -> str:
        """The script of the job with this key.

        Args:
            after: number of the job whose controller is dead when this one begins.
            exclude: nodes to do without.

        Raises:
            UserError: a value can't be delivered, or the system doesn't allow such a job.
        """
        passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
        # Slurm keeps scripts, and a server's URL may hold a password: that is in the job's folder.
        database = (
            {"COMMTUNE_DB": self.database}
            if self.database.startswith("sqlite")
            else {"COMMTUNE_DB_FILE": str(JobFolder(self.folder / key).database)}
        )
        ours = {KEY_VARIABLE: key, **({AFTER_VARIABLE: after} if after else {})}
        job = job_for(
            self.system,
            self.job_request,
            name=job_name(self.campaign, key),
            time_s=self.time_s,
            output=str(self.folder / key / "job.out"),
            comment=f"commtune:{self.campaign}",
            exclude=exclude,
            warn_s=_WARN_S,
            environment={**passed, **self.environment, **database, **ours},
        )
        command = words_in_uenv(self.job_request, self.command)
        return render_allocation(job, command, self.job_request.templates)


@dataclass
class AllocationChain:
    script: AllocationScript
    book: JobBook
    submitter: Submitter
    failed_nodes: FailedNodes
    clock: Callable[[], float]
    _own: str = field(default="", init=False)
    _before: str = field(default="", init=False)  # number of the one before, until it is over
    _next: TrackedJob | None = field(default=None, init=False)
    _problem: str = field(default="", init=False)  # why the next one was not taken
    _may_requeue: bool = field(default=False, init=False)
    _over: JobRecord | None = field(default=None, init=False)  # this one, as it ended

    def submit(self, *, after: str = "", is_over: bool = False) -> TrackedJob:
        """Submits an allocation; returns it, with its number.

        Args:
            after: number of the job that it follows, and waits for unless that is over.

        Raises:
            EnvironmentFault: the scheduler doesn't take it now, or ever; or it may have taken it,
                which ``alive`` finds out.
        """
        tracked = self._prepare(after)
        self.submitter.attempt(tracked, "" if is_over else after)
        if not tracked.job.number:
            scheduler = self.submitter.scheduler.name
            if tracked.perhaps_known:
                raise EnvironmentFault(
                    f"{scheduler} may have accepted the job without saying so",
                    hint="run the same command again later: it finds out",
                )
            self.book.put_job(
                tracked.update(stage=JobStage.OVER, detail=f"{scheduler} did not accept it")
            )
            raise EnvironmentFault(tracked.refusal, hint="run the same command again later")
        return tracked

    def _prepare(self, after: str) -> TrackedJob:
        key = new_key()
        job = JobRecord(
            key=key,
            kind=JobKind.ALLOCATION,
            folder=str(self.script.folder / key),
            prepared_at=self.clock(),
            node_count=self.script.job_request.nodes,
        )
        tracked = TrackedJob(job, (), 0.0)
        script = self.script.render(key, after, self.failed_nodes.excluded)
        tracked.folder.write_script(script, ControllerNote(), self.script.database)
        self.book.put_job(job)
        return tracked

    def alive(self, own: str = "") -> list[TrackedJob]:
        """Allocations of the campaign that are in the queue, but for the one with this key.

        Those that are over are closed in the book.

        Raises:
            SchedulerFault: nobody can tell now.
        """
        jobs = [job for job in self.book.open_jobs() if job.kind is JobKind.ALLOCATION]
        tracked_jobs = [TrackedJob(job, (), 0.0) for job in jobs if job.key != own]
        alive = [tracked for tracked in tracked_jobs if self._is_alive(tracked)]
        for tracked in tracked_jobs:
            # One that has no number yet may be another controller's, which submits it right now.
            if tracked not in alive and (tracked.job.number or own or not alive):
                self._close(tracked)
        return alive

    def began(self, own: str, allocation: Allocation, after: str = "") -> None:
        """Puts down that this allocation runs, and that earlier ones (``after``) are over."""
        self._own, self._before = own, after
        for job in self.book.open_jobs():
            if job.key == own:
                running = replace(
                    job,
                    number=allocation.number,
                    stage=JobStage.SUBMITTED,
                    word="RUNNING",
                    reason="",
                    nodes=",".join(allocation.nodes),
                    started_at=allocation.began_at,
                    ended_at=None,
                    node_hours=self._used_before(job, allocation),
                )
                self.book.put_job(running)
        try:
            # One that waits was made by a controller that died in this very job.
            self._next = next(iter(self._look_around()), None)
        except SchedulerFault as fault:
            self.submitter.say(f"{fault.message}; looking for further allocations later")

    def _look_around(self) -> list[TrackedJob]:
        """Allocations that follow; looks at the one before until it is over."""
        alive, before = self.alive(self._own), self._before
        if before:
            # The scheduler may take minutes to end it; until then it is no successor.
            parts = self.submitter.scheduler.poll([before]).parts(before)
            for part in parts:
                self._look_at_nodes(part)
            self._correct(before, parts)
            if all(part.observed.state.is_over for part in parts):
                self._before = ""
        return [tracked for tracked in alive if tracked.job.number != before]

    def _correct(self, number: str, parts: Iterable[QueuedJob]) -> None:
        """Takes the node-hours of the allocation before from the accounts, or from the queue."""
        for job in self.book.all_jobs():
            if job.number == number and job.stage is JobStage.OVER:
                for part in parts:
                    if key_in(part.name) == job.key:
                        job = _counted(job, part)
                attempts = self._accounts(job)
                if attempts and attempts[-1].observed.state.is_over:
                    job = replace(job, node_hours=sum_node_hours(attempts))
                self.book.put_job(job)

    def _used_before(self, job: JobRecord, allocation: Allocation) -> float:
        """Node-hours of this job's earlier attempts, also of those that a dead node ended."""
        if job.started_at is None and not job.node_hours:
            return 0.0
        before = allocation.began_at - 1  # accounts know whole seconds
        return max(
            job.node_hours,
            sum_node_hours(
                attempt
                for attempt in self._accounts(job)
                if (attempt.observed.started_at or before) < before
            ),
        )

    def worked(self, allocation: Allocation) -> None:
        """A run went well: the next allocation may wait for this one's end, or this one go on."""
        if self._before:
            with suppress(SchedulerFault):  # after the next run, then
                self._look_around()
        if self._next is not None and self._next.job.number:
            return
        self.submitter.cancel_request.check()
        try:
            if self._next is None:
                # It may be there already: the scheduler took it and its answer was lost.
                there = self._look_around()
                self._next = there[0] if there else self._prepare(allocation.number)
            self.submitter.attempt(self._next, allocation.number)
            problem = self._next.refusal
        except EnvironmentFault as fault:
            problem = fault.message
        if self._next is not None and self._next.job.number:
            self._allow_requeue(allocation, allowed=False)
            return
        self._problem = problem
        self._allow_requeue(allocation, allowed=True)

    def _allow_requeue(self, allocation: Allocation, *, allowed: bool) -> None:
        if self._may_requeue is allowed:
            return
        try:
            self.submitter.scheduler.let_requeue(allocation.number, allowed)
            self._may_requeue = allowed
        except SchedulerFault:
            return  # after the next run, then

    def ended(
        self, own: str, allocation: Allocation, *, is_done: bool = True, interrupted: bool = False
    ) -> None:
        """Puts down what this allocation used.

        Args:
            is_done: whether nothing is left to do that this job could continue with.
            interrupted: whether somebody ended it: perhaps the scheduler, which requeues it.
        """
        now = self.clock()
        for job in self.book.open_jobs():
            if job.key == own:
                hours = job.node_hours + allocation.node_hours(now)
                ended_at = allocation.ended_at(now)
                over = replace(
                    job, stage=JobStage.OVER, word="", ended_at=ended_at, node_hours=hours
                )
                self._over = over
                goes_on = interrupted or (not is_done and self._will_requeue)
                self.book.put_job(_waiting(over) if goes_on else over)
        waits = self._next
        if waits is not None and not waits.job.number and not waits.perhaps_known:
            self.book.put_job(waits.update(stage=JobStage.OVER, detail=self._problem))

    @property
    def _will_requeue(self) -> bool:
        return self._may_requeue and not (self._next and self._next.job.number)

    def go_on(self, allocation: Allocation) -> None:
        """The time of this allocation is over, and all is stored: sees to it who continues.

        The scheduler ends this very process where the job is requeued.
        """
        say, number = self.submitter.say, allocation.number
        if self._next is not None and self._next.job.number:
            say(f"job {self._next.job.number} continues")
        elif self._will_requeue:
            say(f"job {number} is requeued, and continues: {self._problem}")
            try:
                self.submitter.scheduler.requeue(number)
            except SchedulerFault as fault:
                say(f"no job continues: job {number} could not be requeued: {fault.message}")
                if self._over is not None:
                    self.book.put_job(self._over)
        else:
            say(f"no job continues: {self._problem or 'no run of this one went well'}")

    def take_back(self, own: str) -> None:
        """Cancels what waits; a job that runs all the same finds nothing to do."""
        try:
            there = self.alive(own)
            self.submitter.scheduler.cancel([tracked.job.number for tracked in there])
        except SchedulerFault as fault:
            self.submitter.say(f"the next allocation could not be cancelled: {fault.message}")
            return
        for tracked in there:
            self.book.put_job(tracked.update(stage=JobStage.OVER, detail="no more to do"))

    def _is_alive(self, tracked: TrackedJob) -> bool:
        number = tracked.job.number or self.submitter.find_number(tracked)
        tracked.update(number=number)
        parts = self._parts(tracked)
        for part in parts:
            tracked.job = _counted(tracked.job, part)
            self._look_at_nodes(part)
        return any(not part.observed.state.is_over for part in parts)

    def _parts(self, tracked: TrackedJob) -> list[QueuedJob]:
        """What the queue says of a job; another one may have its number now."""
        number = tracked.job.number
        parts = self.submitter.scheduler.poll([number]).parts(number) if number else ()
        return [part for part in parts if key_in(part.name) == tracked.job.key]

    def _look_at_nodes(self, job: QueuedJob) -> None:
        """Notes which nodes an allocation lost, if they are still down."""
        if job.observed.state is not JobState.NODE_FAILURE or not key_in(job.name):
            return
        if down := self.submitter.scheduler.failed_nodes(expand_hosts(job.node_list)):
            self.failed_nodes.add_failure(job.number, down)

    def _close(self, tracked: TrackedJob) -> None:
        """Puts down that an allocation is over, and what it used as far as anybody knows."""
        job, hours = tracked.job, tracked.job.node_hours
        attempts = self._accounts(job)
        ended_at = job.ended_at or (attempts[-1].ended_at if attempts else None)
        if attempts and attempts[-1].observed.state.is_over:
            hours = sum_node_hours(attempts)
        self.book.put_job(tracked.update(stage=JobStage.OVER, ended_at=ended_at, node_hours=hours))

    def _accounts(self, job: JobRecord) -> list[AccountedJob]:
        """All attempts of a job that the accounts know; none where they give no answer."""
        if not job.number:
            return []
        try:
            attempts = self.submitter.scheduler.account([job.number], job.prepared_at - 300)
        except SchedulerFault:
            return []
        return [attempt for attempt in attempts if key_in(attempt.name) == job.key]


def _counted(job: JobRecord, part: QueuedJob) -> JobRecord:
    """The record with what the queue says; so far, it has what was used until its own end."""
    known = replace(
        job,
        nodes=part.node_list or job.nodes,
        node_count=part.node_count or job.node_count,
        started_at=part.observed.started_at or job.started_at,
    )
    if known.started_at is None or part.ended_at is None:
        return known
    more_s = part.ended_at - max(known.started_at, job.ended_at or 0.0)
    hours = max(0.0, job.node_hours + more_s * known.node_count / 3600)
    return replace(known, ended_at=part.ended_at, node_hours=hours)


def _waiting(job: JobRecord) -> JobRecord:
    """The record of a job that may be requeued: its node-hours are those until it ended."""
    return replace(job, stage=JobStage.SUBMITTED, nodes="", started_at=None)
