"""A block, a job: implements the port ``Batches`` on Slurm, from a login node."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from commtune.cluster.jobs.job_folder import ControllerNote
from commtune.cluster.jobs.monitor import JobMonitor
from commtune.cluster.jobs.node_hours import NodeHourAccount
from commtune.cluster.jobs.orphans import close_orphans
from commtune.cluster.jobs.results import JobEnd, ResultReader, lost_nodes
from commtune.cluster.jobs.scripts import Scripts, time_limit_of_job
from commtune.cluster.jobs.stop_policy import StopPolicy
from commtune.cluster.jobs.submitter import Submitter
from commtune.cluster.jobs.tracer import Tracer
from commtune.cluster.jobs.tracked_job import TrackedJob, new_key
from commtune.cluster.local.benchmark import make_folder
from commtune.cluster.slurm.queries import SlurmFault
from commtune.cluster.slurm.states import JobState
from commtune.model import (
    Execution,
    JobKind,
    JobRecord,
    JobStage,
    Outcome,
    RunRequest,
    RunResult,
)
from commtune.tuner.ports import JobBook

#: Runs that the length of the next job is reckoned from.
_TYPICAL_OF = 32
#: Why srun makes no more steps in a job whose time is over; Slurm ends it up to a minute later.
_TIME_OVER = "Job/step already completing or completed"
#: Slurm counts the time of a job in minutes.
_LEAST_S = 60.0
#: Seconds between two signs of life.
_ALIVE_S = 30.0


@dataclass
class BlockJobs:
    """Makes blocks as jobs of Slurm.

    Attributes:
        folder: the campaign's; jobs have folders of their own in it.
        most_in_flight: jobs that may be with Slurm at the same time.
        glance_s: seconds between two looks at the jobs' files; ``Watch`` paces asking Slurm.
        alive: called now and then while waiting.
        clock, sleep: seconds since 1970, and waiting for some.
    """

    folder: Path
    scripts: Scripts
    reader: ResultReader
    tracer: Tracer
    book: JobBook
    handing_in: Submitter
    watch: JobMonitor
    spending: NodeHourAccount
    stopping: StopPolicy
    most_in_flight: int = 4
    glance_s: float = 1.0
    simulated: bool = False
    alive: Callable[[], None] = lambda: None
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    _flights: dict[str, TrackedJob] = field(default_factory=dict, init=False)
    _landed: list[TrackedJob] = field(default_factory=list, init=False)
    _unknown: list[RunResult] = field(default_factory=list, init=False)
    #: Of one operation.
    _walls: deque[float] = field(default_factory=lambda: deque(maxlen=_TYPICAL_OF), init=False)
    _stretch: float = field(default=1.0, init=False)
    _alive_at: float = field(default=0.0, init=False)
    _tidy: bool = field(default=False, init=False)

    @property
    def in_flight(self) -> int:
        """Blocks under way."""
        return len(self._flights) + bool(self._unknown)

    def used_s(self) -> float:
        """Seconds that jobs had their nodes."""
        return self.spending.used_s

    def left_s(self) -> float:
        """Seconds that the campaign's node-hours leave, what is under way taken off."""
        return self.spending.left_s(self._flights.values())

    def submit(self, requests: Sequence[RunRequest], time_limit_s: float) -> None:
        """Starts the runs of one block."""
        self.stopping.check()
        self._tidy_up()
        typical = _operations(requests) * median(self._walls) if self._walls else None
        wanted_s = self._stretch * time_limit_of_job(len(requests), typical, time_limit_s)
        # What hangs must not take more than there is.
        time_s = min(wanted_s, max(_LEAST_S, self.left_s()))
        flight = self._new(JobKind.BLOCK, requests, time_limit_s)
        flight.expected_s = len(requests) * (time_limit_s if typical is None else typical)
        excluded = self.stopping.excluded
        key, folder = flight.job.key, flight.folder
        script = self.scripts.block(key, folder, requests, time_limit_s, time_s, excluded)
        self._take_off(flight, script)

    def collect(self) -> Sequence[RunResult]:
        """Waits until a block has ended, and gives the results of all its runs."""
        self.stopping.check()
        if self._unknown:
            results, self._unknown = self._unknown, []
            return results
        while self._flights:
            if ended := self._look():
                return [result for flight, end in ended for result in self._land(flight, end)]
        return []

    def settled(self) -> None:
        """All results given so far are stored: their jobs are done with."""
        for flight in self._landed:
            self._done_with(flight)
        self._landed.clear()
        self._tidy_up()
        self.spending.settle()

    def adopt(self, requests: Sequence[RunRequest]) -> None:
        """Takes up the job of one block that an earlier controller left."""
        block = requests[0].block
        jobs = {job.block: job for job in self.book.open_jobs() if job.kind is JobKind.BLOCK}
        if block not in jobs:
            # It died between storing the runs and putting the job down: Slurm never heard of it.
            self._unknown += [_never_handed_in(request, self.clock()) for request in requests]
            return
        job = jobs[block]
        flight = TrackedJob(job, tuple(requests), 0.0, perhaps_known=not job.number, adopted=True)
        note = flight.folder.note()
        flight.limit_s, flight.expected_s = note.limit_s, note.expected_s
        self._flights[job.key] = flight
        self.watch.soon()

    def trace(self, request: RunRequest, time_limit_s: float) -> Execution | None:
        """Makes an untimed run as a job of its own, and waits for it."""
        if not self.tracer.can_trace:
            return None
        self.stopping.check()
        self._tidy_up()
        flight = self._new(JobKind.TRACE, [request], time_limit_s)
        flight.noted(node_count=self.scripts.wish.nodes)  # no aggressor: nothing is timed
        flight.expected_s = time_limit_s
        command, further = self.tracer.asked(request)
        key, folder = flight.job.key, flight.folder
        script = self.scripts.trace(key, folder, request, command, further, time_limit_s)
        self._take_off(flight, script)
        execution = None
        while flight.job.key in self._flights:
            for landed, end in self._look():
                if landed is not flight:
                    self._unknown += self._land(landed, end)
                    continue
                del self._flights[flight.job.key]
                nodes = self.reader.nodes_of(folder, end)
                flight.noted(nodes=flight.job.nodes or ",".join(nodes))
                self.stopping.seen(flight, end, nodes)
                self._done_with(flight)
                execution = self.tracer.execution(request, folder)
        return execution

    def _new(self, kind: JobKind, requests: Sequence[RunRequest], limit_s: float) -> TrackedJob:
        key = new_key()
        job = JobRecord(
            key=key,
            kind=kind,
            folder=str(self.folder / key),
            prepared_at=self.clock(),
            node_count=self.spending.nodes,
            block=requests[0].block if kind is JobKind.BLOCK else None,
        )
        return TrackedJob(job, tuple(requests), limit_s)

    def _take_off(self, flight: TrackedJob, script: str) -> None:
        """The steps of the protocol (see ``handing_in``), in their order."""
        make_folder(self.reader.records)
        flight.folder.write_script(script, ControllerNote(flight.limit_s, flight.expected_s))
        self.book.put_job(flight.job)
        self._flights[flight.job.key] = flight
        self.handing_in.attempt(flight)
        self.watch.soon()

    def _look(self) -> list[tuple[TrackedJob, JobEnd]]:
        """Jobs that are over; rests a while if none is."""
        flights = list(self._flights.values())
        for flight in flights:
            self.handing_in.attempt(flight)
        if ended := self.watch.over(flights):
            return ended
        self.stopping.check_stuck(flights)
        now = self.clock()
        if now - self._alive_at >= _ALIVE_S:
            self._alive_at = now
            self.alive()
        due = min([self.watch.next_look_at, *(f.next_attempt_at for f in flights if f.attempts)])
        self.sleep(min(self.glance_s, max(0.05, due - now)))
        return []

    def _land(self, flight: TrackedJob, end: JobEnd) -> list[RunResult]:
        """The results of a block whose job is over."""
        del self._flights[flight.job.key]
        self._landed.append(flight)
        results = self.reader.results(flight.folder, flight.requests, flight.limit_s, end)
        each = _operations(flight.requests)
        self._walls.extend(r.wall_s / each for r in results if r.outcome is Outcome.OK)
        nodes = self.reader.nodes_of(flight.folder, end)
        flight.noted(nodes=flight.job.nodes or ",".join(nodes))
        if end.state is not JobState.COMPLETED:
            flight.noted(detail=end.why)
        if end.state is JobState.TIMED_OUT or any(_TIME_OVER in r.detail for r in results):
            self._stretch = min(8.0, 2 * self._stretch)
        self.stopping.seen(flight, end, nodes, lost_nodes(results))
        return results

    def _done_with(self, flight: TrackedJob) -> None:
        flight.noted(stage=JobStage.OVER)
        self.spending.landed(flight)

    def _tidy_up(self) -> None:
        """Closes what an earlier controller left in the book and nobody adopted, once."""
        if self._tidy:
            return
        kept = {flight.job.key for flight in self._landed} | self._flights.keys()
        try:
            close_orphans(self.book, self.handing_in, self.spending, kept)
        except SlurmFault as fault:
            if not fault.transient:
                raise
        else:
            self._tidy = True


def _operations(requests: Sequence[RunRequest]) -> int:
    """How many operations each run of a block measures."""
    return len(requests[0].workload.operations)


def _never_handed_in(request: RunRequest, now: float) -> RunResult:
    return RunResult(
        request.run_id,
        Outcome.INTERRUPTED,
        now,
        0.0,
        detail="never handed in: its controller ended before",
    )
