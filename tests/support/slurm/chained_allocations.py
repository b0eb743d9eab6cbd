"""A campaign's allocations on the fake Slurm, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fake_slurm.driver import FakeSlurm, Fate
from played_jobs import MemoryBook

from commtune.cluster.jobs.allocation_chain import AllocationChain
from commtune.cluster.jobs.cancel_request import CancelRequest
from commtune.cluster.jobs.failures import FailedNodes
from commtune.cluster.jobs.scripts import AllocationScript
from commtune.cluster.jobs.submission import Submitter, TrackedJob
from commtune.cluster.scheduler import Allocation, PollBackoff
from commtune.cluster.slurm.client import SlurmScheduler
from commtune.model import JobRecord
from commtune.slurm_templates.job_request import JobRequest

NEVER = Fate(run_s=None)


@dataclass
class Chain:
    """A campaign's allocations on the fake Slurm.

    Attributes:
        database: URL that controllers are told.
        said: what a person was told.
    """

    fake: FakeSlurm
    folder: Path
    book: MemoryBook = field(default_factory=MemoryBook)
    accounts: bool = True
    database: str = "sqlite:////a b"
    said: list[str] = field(default_factory=list)

    def controller(
        self, command: tuple[str, ...] = ("true",), environment: Mapping[str, str] | None = None
    ) -> AllocationChain:
        """A controller's view of them; of another one, if called again."""
        where = self.fake.environment
        script = AllocationScript(
            "test",
            None,
            JobRequest(nodes=2),
            command,
            self.folder / "jobs",
            self.database,
            600.0,
            environment or {},
        )
        submitter = Submitter(
            SlurmScheduler(where, keeps_accounts=self.accounts),
            self.book,
            PollBackoff(jitter=0.0),
            self.clock,
            self.said.append,
            CancelRequest.of(self.folder),
        )
        return AllocationChain(script, self.book, submitter, self.failed_nodes, self.clock)

    @property
    def failed_nodes(self) -> FailedNodes:
        return FailedNodes(self.folder / "failed.json", self.said.append)

    def clock(self) -> float:
        return self.fake.now

    def runs(self, flight: TrackedJob) -> AllocationChain:
        """The controller of an allocation that runs, once it has begun."""
        controller = self.controller()
        controller.began(flight.job.key, self.allocation(flight))
        return controller

    def allocation(self, flight: TrackedJob) -> Allocation:
        nodes = self.fake.jobs[flight.job.number]["attempts"][0]["nodes"]
        return Allocation(flight.job.number, tuple(nodes), self.clock(), self.clock() + 600)

    def job(self, number: str) -> JobRecord:
        (found,) = [job for job in self.book.known.values() if job.number == number]
        return found

    @property
    def asked(self) -> list[list[str]]:
        """What sbatch was called with."""
        return [call.arguments for call in self.fake.calls("sbatch")]


def ended(chain: Chain, fate: Fate | None = None) -> JobRecord:
    """An allocation that ran for half an hour, as a later controller puts it down."""
    flight = chain.controller().submit()
    chain.controller().alive()
    chain.fake.advance(1800)
    chain.fake.end(flight.job.number, fate or Fate())
    return flight.job
