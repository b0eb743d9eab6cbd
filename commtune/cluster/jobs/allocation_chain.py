"""Runs a campaign in a chain of allocations: each submits its successor before it ends.

The successor depends on this allocation's end. It is submitted after the first successful run, so
that a campaign that can't work doesn't resubmit itself for ever. A finished campaign cancels it.

While the scheduler refuses the successor (some sites allow a user only one job), this allocation
may be requeued instead: at its end, or by the scheduler when a node fails.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace

from commtune.cluster.job_states import JobState
from commtune.cluster.jobs.failures import FailedNodes
from commtune.cluster.jobs.scripts import AllocationScript
from commtune.cluster.jobs.submission import CLOCKS_S, Submitter, TrackedJob, key_in, new_key
from commtune.cluster.placement import expand_hosts
from commtune.cluster.scheduler import (
    AccountedJob,
    Allocation,
    QueuedJob,
    SchedulerFault,
    sum_node_hours,
)
from commtune.errors import EnvironmentFault
from commtune.model import JobKind, JobRecord, JobStage
from commtune.tuner.ports import JobBook


@dataclass
class AllocationChain:
    """The allocations of a campaign, for its controller in one of them and for ``submit``.

    A controller calls ``began`` first.
    """

    script: AllocationScript
    book: JobBook
    submitter: Submitter
    failed_nodes: FailedNodes
    clock: Callable[[], float]
    #: _own, _allocation: the key of this allocation, empty for ``submit``, and what it has.
    _own: str = field(default="", init=False)
    _allocation: Allocation = field(init=False)
    _before: str = field(default="", init=False)  # number of the predecessor, until it is over
    _next: TrackedJob | None = field(default=None, init=False)
    _problem: str = field(default="", init=False)  # why the scheduler refused the successor
    _may_requeue: bool = field(default=False, init=False)
    _over: JobRecord | None = field(default=None, init=False)  # this allocation, as it ended

    def submit(self, *, after: str = "", is_over: bool = False) -> TrackedJob:
        """Submits an allocation; returns it, with its number.

        Args:
            after: number of its predecessor; it depends on that one's end, unless ``is_over``.

        Raises:
            EnvironmentFault: the scheduler refuses it, for now or for good; or gave no clear
                answer and may have accepted it, which ``alive`` finds out.
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
        tracked = TrackedJob(job)
        script = self.script.render(key, after, self.failed_nodes.excluded)
        tracked.folder.write_script(script, database=self.script.database)
        self.book.put_job(job)
        return tracked

    def alive(self) -> list[TrackedJob]:
        """Returns the campaign's allocations in the queue, but for this one.

        Closes those that are over in the job book.

        Raises:
            SchedulerFault: the scheduler gives no answer.
        """
        jobs = [job for job in self.book.open_jobs() if job.kind is JobKind.ALLOCATION]
        tracked_jobs = [TrackedJob(job) for job in jobs if job.key != self._own]
        alive = [tracked for tracked in tracked_jobs if self._is_alive(tracked)]
        for tracked in tracked_jobs:
            # Another controller may be submitting one that has no number yet.
            if tracked not in alive and (tracked.job.number or self._own or not alive):
                self._close(tracked)
        return alive

    def began(self, own: str, allocation: Allocation, after: str = "") -> None:
        """Records that this allocation runs, and that its predecessor is over.

        Args:
            own: key of its job.
            after: number of the predecessor; empty for none.
        """
        self._own, self._allocation, self._before = own, allocation, after
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
                    node_hours=self._used_before(job),
                )
                self.book.put_job(running)
        try:
            # A successor exists already if an earlier controller in this job died.
            self._next = next(iter(self._look_around()), None)
        except SchedulerFault as fault:
            self.submitter.say(f"{fault.message}; looking for further allocations later")

    def _look_around(self) -> list[TrackedJob]:
        """Returns the successors in the queue; keeps the predecessor's record up to date."""
        alive, before = self.alive(), self._before
        if before:
            # The scheduler may take minutes to end it; till then the queue has it as well.
            entry = self._find(before, {job.key for job in self.book.all_jobs()})
            self._look_at_nodes(entry)
            self._correct(before, entry)
            if entry is None or entry.observed.state.is_over:
                self._before = ""
        return [tracked for tracked in alive if tracked.job.number != before]

    def _correct(self, number: str, entry: QueuedJob | None) -> None:
        """Stores the predecessor's node-hours by the accounts, or else by the queue."""
        for job in self.book.all_jobs():
            if job.number == number and job.stage is JobStage.OVER:
                if entry and key_in(entry.name) == job.key:
                    job = _counted(job, entry)
                attempts = self._accounts(job)
                if attempts and attempts[-1].observed.state.is_over:
                    job = replace(job, node_hours=sum_node_hours(attempts))
                self.book.put_job(job)

    def _used_before(self, job: JobRecord) -> float:
        """Returns the node-hours of this job's earlier attempts, those before it was requeued."""
        if job.started_at is None and not job.node_hours:
            return 0.0
        before = self._allocation.began_at - 1  # the accounts have whole seconds
        return max(
            job.node_hours,
            sum_node_hours(
                attempt
                for attempt in self._accounts(job)
                if (attempt.observed.started_at or before) < before
            ),
        )

    def worked(self) -> None:
        """Submits the successor after a successful run; allows a requeue while it is refused."""
        if self._before:
            with suppress(SchedulerFault):  # asked again after the next run
                self._look_around()
        if self._successor:
            return
        self.submitter.cancel_request.check()
        try:
            if self._next is None:
                # It may be in the queue already, if the answer to its submission was lost.
                there = self._look_around()
                self._next = there[0] if there else self._prepare(self._allocation.number)
            self.submitter.attempt(self._next, self._allocation.number)
            problem = self._next.refusal
        except EnvironmentFault as fault:
            problem = fault.message
        self._problem = "" if self._successor else problem
        self._allow_requeue(allowed=not self._successor)

    def _allow_requeue(self, *, allowed: bool) -> None:
        if self._may_requeue is allowed:
            return
        try:
            self.submitter.scheduler.let_requeue(self._allocation.number, allowed)
            self._may_requeue = allowed
        except SchedulerFault:
            return  # tried again after the next run

    def ended(self, *, is_done: bool = True, interrupted: bool = False) -> None:
        """Records the end of this allocation, with its node-hours.

        Args:
            is_done: whether nothing is left to do that this job could continue with.
            interrupted: whether it was ended by a signal, perhaps by the scheduler to requeue it.
        """
        now = self.clock()
        for job in self.book.open_jobs():
            if job.key == self._own:
                hours = job.node_hours + self._allocation.node_hours(now)
                ended_at = self._allocation.ended_at(now)
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
    def _successor(self) -> str:
        """The number of the successor; empty while the scheduler hasn't accepted it."""
        return self._next.job.number if self._next else ""

    @property
    def _will_requeue(self) -> bool:
        return self._may_requeue and not self._successor

    def go_on(self) -> None:
        """Hands over to the successor, or requeues this job, once its time is over.

        Call it last, when everything is stored: a requeue ends this process.
        """
        say, number = self.submitter.say, self._allocation.number
        if self._successor:
            say(f"job {self._successor} continues")
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

    def take_back(self) -> None:
        """Cancels the successors; one that starts all the same finds nothing to do."""
        try:
            there = self.alive()
            self.submitter.scheduler.cancel([tracked.job.number for tracked in there])
        except SchedulerFault as fault:
            self.submitter.say(f"the next allocation could not be cancelled: {fault.message}")
            return
        for tracked in there:
            self.book.put_job(tracked.update(stage=JobStage.OVER, detail="no more to do"))

    def _is_alive(self, tracked: TrackedJob) -> bool:
        number = tracked.job.number or self.submitter.find_number(tracked)
        tracked.update(number=number)
        entry = self._find(number, {tracked.job.key})
        if entry is None:
            return False
        tracked.job = _counted(tracked.job, entry)
        self._look_at_nodes(entry)
        return not entry.observed.state.is_over

    def _find(self, number: str, keys: Collection[str]) -> QueuedJob | None:
        """Returns the queue's entry of a job; another one may have its number now."""
        entry = self.submitter.scheduler.poll([number]).find(number) if number else None
        return entry if entry and key_in(entry.name) in keys else None

    def _look_at_nodes(self, job: QueuedJob | None) -> None:
        """Records the nodes whose failure ended an allocation, if they are still down."""
        if job is None or job.observed.state is not JobState.NODE_FAILURE:
            return
        if down := self.submitter.scheduler.failed_nodes(expand_hosts(job.node_list)):
            self.failed_nodes.add_failure(job.number, down)

    def _close(self, tracked: TrackedJob) -> None:
        """Records that an allocation is over, with its node-hours as far as they are known."""
        job, hours = tracked.job, tracked.job.node_hours
        attempts = self._accounts(job)
        ended_at = job.ended_at or (attempts[-1].ended_at if attempts else None)
        if attempts and attempts[-1].observed.state.is_over:
            hours = sum_node_hours(attempts)
        self.book.put_job(tracked.update(stage=JobStage.OVER, ended_at=ended_at, node_hours=hours))

    def _accounts(self, job: JobRecord) -> list[AccountedJob]:
        """Returns all attempts of a job in the accounts; none where these give no answer."""
        if not job.number:
            return []
        try:
            attempts = self.submitter.scheduler.account([job.number], job.prepared_at - CLOCKS_S)
        except SchedulerFault:
            return []
        return [attempt for attempt in attempts if key_in(attempt.name) == job.key]


def _counted(job: JobRecord, entry: QueuedJob) -> JobRecord:
    """Returns the record with the time between its controller's end and the job's end added."""
    known = replace(
        job,
        nodes=entry.node_list or job.nodes,
        node_count=entry.node_count or job.node_count,
        started_at=entry.observed.started_at or job.started_at,
    )
    if known.started_at is None or entry.ended_at is None:
        return known
    more_s = entry.ended_at - max(known.started_at, job.ended_at or 0.0)
    hours = max(0.0, job.node_hours + more_s * known.node_count / 3600)
    return replace(known, ended_at=entry.ended_at, node_hours=hours)


def _waiting(job: JobRecord) -> JobRecord:
    """Returns the record of an ended job as pending again, for one that may be requeued."""
    return replace(job, stage=JobStage.SUBMITTED, nodes="", started_at=None)
