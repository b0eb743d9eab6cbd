"""Runs each block of a campaign as a job of its own, submitted from a login node."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from commtune import model
from commtune.cluster.job_states import JobState
from commtune.cluster.jobs.cancellation import close_orphans
from commtune.cluster.jobs.failures import StopPolicy
from commtune.cluster.jobs.job_folder import read_start
from commtune.cluster.jobs.monitor import JobMonitor
from commtune.cluster.jobs.node_hours import NodeHourAccount
from commtune.cluster.jobs.queue_wait import QueueWait
from commtune.cluster.jobs.run_results import JobEnd, ResultReader
from commtune.cluster.jobs.scripts import Scripts
from commtune.cluster.jobs.submission import Submitter, TrackedJob, new_key
from commtune.cluster.local.benchmark import make_folder
from commtune.cluster.scheduler import SchedulerFault
from commtune.cluster.tracing.tracer import Tracer
from commtune.tuner.ports import JobBook

#: Number of latest runs whose median gives the time limit of the next job.
_TYPICAL_OF = 32
#: What srun prints in a job whose time is over: Slurm ends such a job up to a minute later.
_TIME_OVER = "Job/step already completing or completed"
#: The shortest time limit, seconds: Slurm has limits in minutes.
_LEAST_S = 60.0
#: Seconds between two calls of ``alive``.
_ALIVE_S = 30.0


@dataclass
class BlockJobs:
    """The blocks of a campaign as jobs; implements ``tuner.ports.Batches``."""

    folder: Path  # the campaign's; jobs have folders of their own in it
    scripts: Scripts
    reader: ResultReader
    tracer: Tracer
    book: JobBook
    submitter: Submitter
    monitor: JobMonitor
    node_hours: NodeHourAccount
    stop_policy: StopPolicy
    queue_wait: QueueWait
    most_in_flight: int = 4  # jobs that may be in the queue at the same time
    #: Seconds between two looks at the jobs' files; ``monitor`` decides when to poll the queue.
    file_poll_s: float = 1.0
    simulated = False
    is_detached = True
    alive: Callable[[], None] = lambda: None  # called now and then while waiting
    #: clock, sleep: seconds since 1970, and a wait of some seconds.
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    _tracked: dict[str, TrackedJob] = field(default_factory=dict, init=False)
    _finished: list[TrackedJob] = field(default_factory=list, init=False)
    _unknown: list[model.RunResult] = field(default_factory=list, init=False)
    #: Wall seconds of the latest good runs, for one operation.
    _walls: deque[float] = field(default_factory=lambda: deque(maxlen=_TYPICAL_OF), init=False)
    _stretch: float = field(default=1.0, init=False)
    _waited_s: float = field(default=0.0, init=False)
    _alive_at: float = field(default=0.0, init=False)
    _tidy: bool = field(default=False, init=False)

    @property
    def in_flight(self) -> int:
        return len(self._tracked) + bool(self._unknown)

    def used_s(self) -> float:
        """Returns the used seconds of the budget; lost runs and waits for a scheduler are free."""
        return max(0.0, self.node_hours.used_s - self._waited_s)

    def left_s(self) -> float:
        """Returns the seconds that the campaign's node-hours leave beside the jobs in flight."""
        return self.node_hours.left_s(self._tracked.values())

    def submit(self, requests: Sequence[model.RunRequest], time_limit_s: float) -> None:
        self._check_stop()
        self._tidy_up()
        typical = _operations(requests) * median(self._walls) if self._walls else None
        usual_s = self.scripts.time_limit(len(requests), typical, time_limit_s)
        # A job that hangs must not use more than the node-hours that are left.
        time_s = min(self._stretch * usual_s, max(_LEAST_S, self.left_s()))
        tracked = self._new(model.JobKind.BLOCK, requests, time_limit_s)
        tracked.expected_s = len(requests) * (time_limit_s if typical is None else typical)
        excluded = self.stop_policy.failed_nodes.excluded
        script = self.scripts.block(tracked.folder, requests, time_limit_s, time_s, excluded)
        self._start(tracked, script)

    def collect(self) -> Sequence[model.RunResult]:
        self._check_stop()
        if self._unknown:
            results, self._unknown = self._unknown, []
            return results
        while self._tracked:
            if ended := self._poll():
                return [result for tracked, end in ended for result in self._finish(tracked, end)]
        return []

    def settled(self) -> None:
        for tracked in self._finished:
            self._done_with(tracked)
        self._finished.clear()
        self._tidy_up()
        self.node_hours.settle()

    def adopt(self, requests: Sequence[model.RunRequest]) -> None:
        block = requests[0].block
        jobs = {job.block: job for job in self.book.open_jobs() if job.kind is model.JobKind.BLOCK}
        if block not in jobs:
            # The controller died after it stored the runs and before it recorded their job, so
            # the job was never submitted.
            detail, now = "never submitted: its controller ended before", self.clock()
            self._unknown += [
                model.RunResult(one.run_id, model.Outcome.INTERRUPTED, now, 0.0, detail=detail)
                for one in requests
            ]
            return
        job = jobs[block]
        tracked = TrackedJob(job, tuple(requests), perhaps_known=not job.number, adopted=True)
        tracked.limit_s, tracked.expected_s = tracked.folder.note()
        self._tracked[job.key] = tracked
        self.monitor.soon()

    def trace(self, request: model.RunRequest, time_limit_s: float) -> model.Execution | None:
        """Makes an untimed, traced run as a job of its own; ``None`` if that fails."""
        if not self.tracer.can_trace:
            return None
        self._check_stop()
        self._tidy_up()
        tracked = self._new(model.JobKind.TRACE, [request], time_limit_s)
        tracked.update(node_count=self.scripts.job_request.nodes)  # no aggressor: nothing is timed
        tracked.expected_s = time_limit_s
        # Ranks write their records there and don't make the folder.
        make_folder(self.tracer.folder)
        command, further = self.tracer.prepare(request)
        folder = tracked.folder
        script = self.scripts.trace(folder, request, command, further, time_limit_s)
        self._start(tracked, script)
        execution = None
        while tracked.job.key in self._tracked:
            for ended, end in self._poll():
                if ended is not tracked:
                    self._unknown += self._finish(ended, end)
                    continue
                del self._tracked[tracked.job.key]
                nodes = self.reader.nodes_of(tracked)
                tracked.update(nodes=tracked.job.nodes or ",".join(nodes))
                self.stop_policy.take_end(tracked, end, nodes)
                self._done_with(tracked)
                ending = folder.ending(0)
                if ending is not None and ending.status == 0:
                    execution = self.tracer.read(request, read_start(folder.step_output(0)))
        return execution

    def _new(
        self, kind: model.JobKind, requests: Sequence[model.RunRequest], limit_s: float
    ) -> TrackedJob:
        key = new_key()
        job = model.JobRecord(
            key=key,
            kind=kind,
            folder=str(self.folder / key),
            prepared_at=self.clock(),
            node_count=self.node_hours.nodes,
            block=requests[0].block if kind is model.JobKind.BLOCK else None,
        )
        return TrackedJob(job, tuple(requests), limit_s)

    def _start(self, tracked: TrackedJob, script: str) -> None:
        """Writes the script, records the job, submits it: found by its key wherever we die."""
        make_folder(self.reader.records)
        tracked.folder.write_script(script, tracked.limit_s, tracked.expected_s)
        self.book.put_job(tracked.job)
        self._tracked[tracked.job.key] = tracked
        self.submitter.attempt_all(list(self._tracked.values()))
        self.monitor.soon()

    def _check_stop(self) -> None:
        """Raises the ``EnvironmentFault`` that stops the campaign, if anything does."""
        # First: that the campaign was cancelled explains why its jobs ended.
        self.submitter.cancel_request.check()
        self.stop_policy.check()

    def _poll(self) -> list[tuple[TrackedJob, JobEnd]]:
        """Returns the jobs that are over; sleeps until the next look if none is."""
        self.submitter.cancel_request.check()
        tracked_jobs = list(self._tracked.values())
        self.submitter.attempt_all(tracked_jobs)
        if ended := self.monitor.over(tracked_jobs):
            return ended
        self.stop_policy.check_stuck(tracked_jobs)
        self.queue_wait.check(tracked_jobs)
        now = self.clock()
        if now - self._alive_at >= _ALIVE_S:
            self._alive_at = now
            self.alive()
        due = self.monitor.next_look_at
        if not all(tracked.job.number for tracked in tracked_jobs):
            due = min(due, self.submitter.next_attempt_at)
        self.sleep(min(self.file_poll_s, max(0.05, due - now)))
        return []

    def _finish(self, tracked: TrackedJob, end: JobEnd) -> list[model.RunResult]:
        del self._tracked[tracked.job.key]
        self._finished.append(tracked)
        results = self.reader.results(tracked, end)
        each = _operations(tracked.requests)
        self._walls.extend(r.wall_s / each for r in results if r.outcome is model.Outcome.OK)
        self._waited_s += sum(r.wall_s for r in results if r.outcome.is_lost)
        nodes = self.reader.nodes_of(tracked)
        tracked.update(nodes=tracked.job.nodes or ",".join(nodes))
        if end.state is not JobState.COMPLETED:
            tracked.update(detail=end.why)
        if end.state is JobState.TIMED_OUT or any(_TIME_OVER in r.detail for r in results):
            self._stretch = min(8.0, 2 * self._stretch)
        self.stop_policy.take_end(tracked, end, nodes, self.reader.lost_nodes(results, nodes))
        return results

    def _done_with(self, tracked: TrackedJob) -> None:
        tracked.update(stage=model.JobStage.OVER)
        self._waited_s += tracked.folder.waited_s()
        self.node_hours.add_job(tracked)

    def _tidy_up(self) -> None:
        """Closes, once, the jobs of an earlier controller that nobody adopted."""
        if self._tidy:
            return
        kept = {tracked.job.key for tracked in self._finished} | self._tracked.keys()
        try:
            close_orphans(self.book, self.submitter, self.node_hours, kept)
        except SchedulerFault as fault:
            if not fault.transient:
                raise
        else:
            self._tidy = True


def _operations(requests: Sequence[model.RunRequest]) -> int:
    return len(requests[0].workload.operations)
