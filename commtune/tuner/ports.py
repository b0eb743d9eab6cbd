"""What the tuner needs from outside, as protocols. Adapters implement them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from commtune import model

if TYPE_CHECKING:
    from commtune.model.conclusion import Conclusion, Decision


class Benchmark(Protocol):
    """Makes runs. Implemented by a launcher with the native benchmark, and by replay.

    Laws: ``measure`` returns a result for every way that a run can end, and raises only for
    faults of the surroundings (EnvironmentFault) and KeyboardInterrupt; when it returns or
    raises, no process of the run is left. ``recover`` reads the result of a run that an earlier
    controller started and never read; it returns ``None`` where the run wrote no footer.
    """

    @property
    def simulated(self) -> bool:
        """Whether results are made up or played back, and say nothing of this machine."""

    def measure(self, request: model.RunRequest, time_limit_s: float) -> model.RunResult:
        """Makes one run and waits for its end, or ends it after ``time_limit_s`` seconds."""

    def recover(self, request: model.RunRequest) -> model.RunResult | None:
        """Reads what is left of a run after its controller died, ending its processes first."""

    def trace(self, request: model.RunRequest, time_limit_s: float) -> model.Execution | None:
        """What the library does under a configuration, from an untimed run with its logging on.

        Returns ``None`` where nothing can be told (no such library, a replay, the run failed).
        Its times are never used.
        """


@runtime_checkable
class Batches(Protocol):
    """Makes runs, those of a block close together: a job a block, or here, one by one.

    Laws: every request that was submitted or adopted comes back from ``collect`` exactly once,
    whatever happens to its job; one whose run was lost comes back with an outcome that is lost.
    Results come in the order of the requests that were submitted together. What was submitted
    before a crash is found again by ``adopt``, and never submitted twice. Where ``collect``
    raises, detached runs stay under way; others are not, and can be adopted.
    """

    @property
    def is_detached(self) -> bool:
        """Whether runs outlive the controller, as jobs do: then a block is submitted whole."""

    @property
    def simulated(self) -> bool:
        """As for ``Benchmark``."""

    @property
    def most_in_flight(self) -> int:
        """How many blocks may be under way together."""

    @property
    def in_flight(self) -> int:
        """How many blocks are under way."""

    def submit(self, requests: Sequence[model.RunRequest], time_limit_s: float) -> None:
        """Starts the runs of one block, to be made in this order on the same nodes.

        Args:
            time_limit_s: wall seconds that each run may take.
        """

    def collect(self) -> Sequence[model.RunResult]:
        """Waits until a block has ended, and gives the results of all its runs.

        Empty when nothing is under way.

        Raises:
            EnvironmentFault: nothing can be measured any more, with what to do; results of what
                is under way are found by ``adopt`` later.
        """

    def settled(self) -> None:
        """Says that all results that ``collect`` gave so far are stored.

        What an earlier controller left, and nobody adopted by then, is nobody's and is ended.
        """

    def adopt(self, requests: Sequence[model.RunRequest]) -> None:
        """Takes up the runs of one block that an earlier controller left, wherever it got to."""

    def trace(self, request: model.RunRequest, time_limit_s: float) -> model.Execution | None:
        """As for ``Benchmark``."""

    def used_s(self) -> float:
        """Seconds that jobs had their nodes: all that ended so far, earlier controllers' too."""

    def left_s(self) -> float:
        """Seconds of its nodes that may still be spent, what is under way taken off.

        Infinite where nobody limits them.
        """


class JobBook(Protocol):
    """Where jobs are written down; part of a campaign's store.

    Laws: what ``put_job`` returned from survives the process.
    """

    def put_job(self, job: model.JobRecord) -> None:
        """Stores a job, in the place of what was known of it by its key."""

    def open_jobs(self) -> Sequence[model.JobRecord]:
        """Jobs that are not over, in the order they were prepared."""

    def all_jobs(self) -> Sequence[model.JobRecord]:
        """All jobs, in the order they were prepared."""

    def node_hours(self) -> float:
        """Node-hours of all jobs of the campaign, those under way as far as they are known."""


@dataclass(frozen=True)
class SizeTrace:
    """What an untimed run says of one size.

    Attributes:
        operations: how often the operation was done.
        digest: depends on the order of summation; ``None`` where no order shows.
        agree: whether all ranks got the same bits; ``None`` where they should not.
        messages: depends on who sent how much to whom; ``None`` where nobody counts.
    """

    bytes: int
    operations: int
    digest: str | None
    agree: bool | None
    messages: str | None = None

    @property
    def fingerprint(self) -> str:
        """What shows the algorithm: ``digest+messages``, one of them, or nothing."""
        return (self.digest or "") + (f"+{self.messages}" if self.messages else "")


@dataclass(frozen=True)
class Records:
    """What a record file holds, as far as it could be read.

    Attributes:
        header, footer: verbatim; ``None`` where there is none.
        measurements: sizes that were finished and whose record is sound; of the whole operation.
        pieces: likewise, of parts of an operation and of pairs of ranks, each by itself.
        traffic: the last that an aggressor said of what it moved, verbatim; ``None`` elsewhere.
        problems: what is wrong with the file, for a person; empty for a sound file, also where
            the run was cut short between two records.
        mismatch: that another library was at work than the one that it was for; else empty.
    """

    header: Mapping[str, Any] | None = None
    measurements: tuple[model.Measurement, ...] = ()
    footer: Mapping[str, Any] | None = None
    problems: tuple[str, ...] = ()
    traces: tuple[SizeTrace, ...] = ()
    traffic: Mapping[str, Any] | None = None
    pieces: tuple[model.SubMeasurement, ...] = ()
    mismatch: str = ""


class Program(Protocol):
    """A benchmark program: arguments out, records in. It starts nothing."""

    def arguments(self, request: model.RunRequest, records: Path) -> list[str]:
        """The command line of one rank."""

    def read(self, records: Path, request: model.RunRequest) -> Records:
        """Reads a record file, whatever its state; a missing file gives empty records."""


class Store(Protocol):
    """Where a campaign keeps what it decided and measured; the source of truth.

    Laws: what a method returned from survives the process; ``finish_run`` stores a run with all
    its measurements or nothing, and a second time changes nothing and returns ``False``.
    """

    def order_seed(self, campaign_id: int) -> str:
        """What the order of a campaign's runs is drawn from: its own, and the same for its life.

        Of a simulated campaign it is the plan's seed, so that it can be made again.
        """

    def add_trial(
        self, campaign_id: int, number: int, configuration: model.Configuration, origin: str
    ) -> None:
        """Stores a configuration that is about to be tried."""

    def trials(self, campaign_id: int) -> Sequence[model.Trial]:
        """All trials in order."""

    def start_runs(
        self, campaign_id: int, requests: Sequence[model.RunRequest], session: str
    ) -> None:
        """Stores that all of these runs are about to start, or none of them."""

    def finish_run(self, campaign_id: int, result: model.RunResult, operation: str) -> bool:
        """Stores what came of a run; keeps the controller's lock on the campaign alive."""

    def withdraw_run(self, campaign_id: int, run_id: str) -> None:
        """Forgets a run that was started and has no result; the next session makes it."""

    def open_runs(self, campaign_id: int) -> Sequence[model.RunRequest]:
        """Runs that were started and have no result."""

    def runs(self, campaign_id: int) -> Iterable[model.Run]:
        """All runs with a result, in the order they were stored."""

    def save_profiles(self, campaign_id: int, profiles: Sequence[model.Profile]) -> None:
        """Replaces the campaign's profiles."""

    def decide(self, campaign_id: int, decision: Decision) -> None:
        """Stores what the campaign decided to confirm, before it does so."""

    def decision(self, campaign_id: int) -> Decision | None:
        """What ``decide`` stored last."""

    def plan_block(self, campaign_id: int, plan: model.BlockPlan) -> None:
        """Stores a block before its first run starts; the same one again is nothing new."""

    def blocks(self, campaign_id: int) -> Sequence[model.BlockPlan]:
        """All blocks that were planned, by number."""

    def add_execution(self, campaign_id: int, execution: model.Execution) -> None:
        """Stores what the library did under a configuration; a later one replaces it."""

    def executions(self, campaign_id: int) -> Sequence[model.Execution]:
        """What is known of configurations' execution."""

    def conclude(self, campaign_id: int, conclusion: Conclusion) -> None:
        """Stores what the campaign came to."""

    def conclusion(self, campaign_id: int) -> Conclusion | None:
        """What ``conclude`` stored last."""


@dataclass(frozen=True)
class Progress:
    """Where a campaign stands, for the eye.

    Attributes:
        phase: ``search``, ``ablate``, ``confirm``, ``guard``, ``verify``, ``compare`` or
            ``record``.
        trials, runs: how many so far.
        best_gain: best ratio seen by the search so far; not evidence, and often a lucky run.
        used_s, budget_s: wall seconds of this phase.
        confirmed: of the candidates whose confirmation has ended, the surest speedup; ``None``
            before there is one.
    """

    phase: str
    trials: int
    runs: int
    best_gain: float
    used_s: float
    budget_s: float
    last: model.Outcome | None = None
    confirmed: model.PointEvidence | None = None


class Reporter(Protocol):
    """Tells a person what happens; called between runs only, never while one is timed."""

    def progress(self, progress: Progress) -> None:
        """Tells how far the campaign is, after every run."""

    def say(self, message: str) -> None:
        """Tells something worth a line: a value set aside, a re-run."""
