"""Jobs of the fake Slurm whose scripts are played: what they would leave behind, written at once.

The machine is made up: a program whose record files are what a test says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from fake_slurm.driver import FakeSlurm

from commtune.cluster.jobs.block_jobs import BlockJobs
from commtune.cluster.jobs.cancel_request import CancelRequest
from commtune.cluster.jobs.failures import FailedNodes, StopPolicy
from commtune.cluster.jobs.job_folder import JobFolder
from commtune.cluster.jobs.monitor import JobMonitor
from commtune.cluster.jobs.node_hours import NodeHourAccount
from commtune.cluster.jobs.queue_wait import QueueWait
from commtune.cluster.jobs.run_results import ResultReader
from commtune.cluster.jobs.scripts import Scripts
from commtune.cluster.jobs.submission import Submitter, TrackedJob
from commtune.cluster.scheduler import PollBackoff
from commtune.cluster.slurm.allocation import Srun, read_topology
from commtune.cluster.slurm.client import SlurmScheduler
from commtune.cluster.tracing.tracer import Tracer
from commtune.model import (
    Configuration,
    JobRecord,
    JobStage,
    Measurement,
    MpiFlavour,
    Operation,
    Outcome,
    RunRequest,
    RunResult,
    Timing,
    Workload,
)
from commtune.slurm_templates.job_request import JobRequest
from commtune.slurm_templates.launch_command import launch_words
from commtune.tuner.ports import Records

MEASURED = Measurement(8, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1.0, 1.0)
HEADER = {"rank_info": [{"rank": 0, "environment": {}}], "oversubscribed": False}
COMPLETE = Records(HEADER, (MEASURED,), {"status": "ok", "elapsed_s": 1.0})
WORKLOAD = Workload(Operation.ALLREDUCE, (8,), nodes=2)
TOPOLOGY = "SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n[3-4]"


@dataclass
class Written:
    """A program whose record files are what a test says; complete where it says nothing."""

    found: dict[str, Records] = field(default_factory=dict)
    usual: Records = COMPLETE

    def arguments(self, request: RunRequest, records: Path) -> list[str]:
        return [request.run_id, str(records)]

    def read(self, records: Path, request: RunRequest) -> Records:
        assert records.name == f"{request.run_id}.jsonl"
        return self.found.get(request.run_id, self.usual)


@dataclass
class MemoryBook:
    """Implements ``tuner.ports.JobBook`` without a database; remembers every word."""

    known: dict[str, JobRecord] = field(default_factory=dict)
    written: list[JobRecord] = field(default_factory=list)

    def put_job(self, job: JobRecord) -> None:
        before = self.known.get(job.key)
        stages = list(JobStage)
        assert before is None or stages.index(before.stage) <= stages.index(job.stage)
        self.known[job.key] = job
        self.written.append(job)

    def open_jobs(self) -> list[JobRecord]:
        is_open = [job for job in self.known.values() if job.stage is not JobStage.OVER]
        return sorted(is_open, key=lambda job: job.prepared_at)

    def all_jobs(self) -> list[JobRecord]:
        return sorted(self.known.values(), key=lambda job: job.prepared_at)

    def node_hours(self) -> float:
        return sum(job.node_hours for job in self.known.values())


def block(number: int, runs: int = 2) -> list[RunRequest]:
    """The runs of a block."""
    return [
        RunRequest(
            f"run-{number}-{position}",
            Configuration({"A": str(position)} if position else {}),
            WORKLOAD,
            Timing(),
            block=number,
            position=position,
        )
        for position in range(runs)
    ]


def collected(jobs: BlockJobs) -> list[RunResult]:
    """What is under way, to its end."""
    found: list[RunResult] = []
    while jobs.in_flight:
        found += jobs.collect()
        jobs.settled()
    return found


def outcomes(jobs: BlockJobs) -> dict[str, Outcome]:
    """What is under way, to its end: by run, each once."""
    results = collected(jobs)
    assert len({result.run_id for result in results}) == len(results)
    return {result.run_id: result.outcome for result in results}


def play(folder: JobFolder, runs: int, ended_at: float, *, run_s: float = 2.0) -> None:
    """What a script that went well leaves behind."""
    began_at = ended_at - runs * run_s
    (folder.path / "started").mkdir(exist_ok=True)
    (folder.path / "nodes").write_text("SLURM_JOB_NODELIST=n[1-2]\n")
    for position in range(runs):
        begin = began_at + position * run_s
        folder.step_output(position).touch()
        folder.step_exit(position).write_text(f"0 {begin:.6f} {begin + run_s:.6f}\n")
    (folder.path / "finished").write_text(f"0 {began_at:.6f} {ended_at:.6f}\n")


@dataclass
class Laboratory:
    """Jobs of blocks on the fake Slurm, in its time.

    Attributes:
        said: what a person was told.
        slept: how long each rest was, seconds.
        on_rest: called after each rest.
        pending_s: for how long jobs may wait, seconds.
        late_records: runs whose record files are not seen yet.
    """

    fake: FakeSlurm
    folder: Path
    book: MemoryBook = field(default_factory=MemoryBook)
    program: Written = field(default_factory=Written)
    limit: float | None = None
    pending_s: float | None = None
    accounts: bool = True
    said: list[str] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    on_rest: Callable[[], None] = lambda: None
    late_records: set[str] = field(default_factory=set)

    @property
    def queue(self) -> SlurmScheduler:
        return SlurmScheduler(self.fake.environment)

    def jobs(self, *, in_flight: int = 4, file_poll_s: float = 1.0) -> BlockJobs:
        """A controller's; of another one, if called again."""
        scheduler = SlurmScheduler(self.fake.environment, keeps_accounts=self.accounts)
        backoff = PollBackoff(jitter=0.0)
        request, records = JobRequest(nodes=2, mpi="pmi2"), self.folder / "runs"
        reader = ResultReader(self.program, {}, (), records, read_topology(TOPOLOGY), Srun())
        return BlockJobs(
            folder=self.folder / "jobs",
            scripts=Scripts(
                "test", None, request, self.program, (), {}, partial(launch_words, None), records
            ),
            reader=reader,
            tracer=Tracer(self.program, MpiFlavour.MPICH, {}, (), self.folder / "traces"),
            book=self.book,
            submitter=Submitter(
                scheduler, self.book, backoff, self.clock, self.say, CancelRequest.of(self.folder)
            ),
            monitor=JobMonitor(
                scheduler,
                backoff,
                self.clock,
                self.say,
                lambda tracked: self.book.put_job(tracked.job),
                lambda tracked: not self.late_records & {r.run_id for r in tracked.requests},
            ),
            node_hours=NodeHourAccount(self.book, 2, self.limit, scheduler, self.clock),
            stop_policy=StopPolicy(
                scheduler,
                FailedNodes(self.folder / "failed.json", self.say),
                self.say,
            ),
            queue_wait=QueueWait(scheduler, self.clock, self.say, self.pending_s),
            most_in_flight=in_flight,
            file_poll_s=file_poll_s,
            clock=self.clock,
            sleep=self.rest,
        )

    def clock(self) -> float:
        return self.fake.now

    def rest(self, seconds: float) -> None:
        self.slept.append(seconds)
        assert len(self.slept) < 3_000, "nothing happens any more"
        self.fake.advance(seconds)
        self.on_rest()

    def forget_old_jobs(self, age_s: float) -> None:
        """Slurm forgets what ended long ago, which keeps the fake one quick."""
        with self.fake.store.changing() as state:
            before = state["now"] - age_s
            old = [key for key, job in state["jobs"].items() if job["submitted"] < before]
            for key in old:
                del state["jobs"][key]

    def say(self, words: str) -> None:
        self.said.append(words)

    def job(self, number: int) -> JobRecord:
        """The job of a block."""
        (found,) = [job for job in self.book.known.values() if job.block == number]
        return found

    def tracked(self, jobs: BlockJobs, number: int) -> TrackedJob:
        (found,) = [f for f in jobs._tracked.values() if f.job.block == number]
        return found

    def numbers(self) -> Sequence[str]:
        """Slurm's numbers of all jobs that were ever submitted."""
        with self.fake.store.reading() as state:
            return list(state["jobs"])
