"""The ports of the tuner: protocols of everything that it needs, which adapters implement."""

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

    Contract: ``measure`` returns a result for every way that a run can end, and raises only for
    faults of the surroundings (EnvironmentFault) and KeyboardInterrupt; when it returns or
    raises, no process of the run is left. ``recover`` reads the result of a run that an earlier
    controller started and never read; it returns ``None`` where the run wrote no footer.
    """

    @property
    def simulated(self) -> bool:
        """Whether results are simulated or played back, so not about this machine."""

    def measure(self, request: model.RunRequest, time_limit_s: float) -> model.RunResult:
        """Makes one run and waits for its end, which it forces after ``time_limit_s`` seconds."""

    def recover(self, request: model.RunRequest) -> model.RunResult | None:
        """Ends the processes of a run whose controller died, and reads its result."""

    def trace(self, request: model.RunRequest, time_limit_s: float) -> model.Execution | None:
        """Traces what the library does under a configuration, in an untimed run with logging.

        Returns ``None`` if that can't be told (no such library, a replay, the run failed).
        """


@runtime_checkable
class Batches(Protocol):
    """Makes runs, those of a block back to back: in a job for each block, or here, one by one.

    Contract: every request that was submitted or adopted comes back from ``collect`` exactly once,
    whatever happens to its job; one whose run was lost comes back with an outcome that is lost.
    Results come in the order of the requests that were submitted together. What was submitted
    before a crash is found again by ``adopt``, and never submitted twice. Where ``collect``
    raises, detached runs stay under way; others are not, and can be adopted.
    """

    @property
    def is_detached(self) -> bool:
        """Whether runs outlive the controller, as jobs do, so that blocks are submitted whole."""

    @property
    def simulated(self) -> bool:
        """As for ``Benchmark``."""

    @property
    def most_in_flight(self) -> int:
        """The number of blocks that may be under way together."""

    @property
    def in_flight(self) -> int:
        """The number of blocks under way."""

    def submit(self, requests: Sequence[model.RunRequest], time_limit_s: float) -> None:
        """Starts the runs of one block, to be made in this order on the same nodes.

        Args:
            time_limit_s: wall seconds that each run may take.
        """

    def collect(self) -> Sequence[model.RunResult]:
        """Waits until a block has ended, and returns the results of all its runs.

        Empty when nothing is under way.

        Raises:
            EnvironmentFault: nothing can be measured any more, with what to do; results of what
                is under way are found by ``adopt`` later.
        """

    def settled(self) -> None:
        """Notes that all results that ``collect`` returned so far are stored.

        Jobs of an earlier controller that were not adopted by then are ended.
        """

    def adopt(self, requests: Sequence[model.RunRequest]) -> None:
        """Takes over the runs of one block from an earlier controller, in whatever state."""

    def trace(self, request: model.RunRequest, time_limit_s: float) -> model.Execution | None:
        """As for ``Benchmark``."""

    def used_s(self) -> float:
        """Returns the seconds that ended jobs had their nodes, also of earlier controllers."""

    def left_s(self) -> float:
        """Returns the seconds on nodes that may still be spent, less those of jobs under way.

        Infinite without a limit.
        """


class JobBook(Protocol):
    """The part of a campaign's store that keeps jobs.

    Contract: what was stored when ``put_job`` returned survives the process.
    """

    def put_job(self, job: model.JobRecord) -> None:
        """Stores a job; replaces the one with its key."""

    def open_jobs(self) -> Sequence[model.JobRecord]:
        """Jobs that are not over, in the order they were prepared."""

    def all_jobs(self) -> Sequence[model.JobRecord]:
        """All jobs, in the order they were prepared."""

    def node_hours(self) -> float:
        """Node-hours of all jobs of the campaign, those under way as far as they are known."""


@dataclass(frozen=True)
class SizeTrace:
    """The trace of one size, from an untimed run.

    Attributes:
        operations: how often the operation was done.
        digest: of a sum that depends on its order; ``None`` for operations without one.
        agree: whether all ranks got the same bits; ``None`` where they should not.
        messages: digest of who sent how much to whom; ``None`` if that wasn't counted.
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
    """The contents of a record file, as far as it could be read.

    Attributes:
        header, footer: verbatim; ``None`` where there is none.
        measurements: sizes that were finished and whose record is sound; of the whole operation.
        pieces: likewise, of parts of an operation and of pairs of ranks, each by itself.
        traffic: the last report of an aggressor on what it moved, verbatim; else ``None``.
        problems: what is wrong with the file, for a person; empty for a sound file, also if
            the run was cut short between two records.
        mismatch: says that another library was used than the intended one; else empty.
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
    """A benchmark program: makes its arguments and reads its records, but starts nothing."""

    def arguments(self, request: model.RunRequest, records: Path) -> list[str]:
        """Returns the command line of one rank."""

    def read(self, records: Path, request: model.RunRequest) -> Records:
        """Reads a record file, whatever its state; a missing file gives empty records."""


class Store(Protocol):
    """Stores the decisions and runs of a campaign; the source of truth.

    Contract: what was stored when a method returned survives the process; ``finish_run`` stores
    a run with all its measurements or nothing; a second time it changes nothing and returns
    ``False``.
    """

    def order_seed(self, campaign_id: int) -> str:
        """Returns the seed of the order of a campaign's runs, unique and constant.

        For a simulated campaign it is the plan's seed, for reproducibility.
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

    def finish_run(self, campaign_id: int, result: model.RunResult, operation: str) -> None:
        """Stores the first result of a run; keeps the controller's lock on the campaign alive."""

    def withdraw_run(self, campaign_id: int, run_id: str) -> None:
        """Removes a run that was started and has no result; the next session makes it."""

    def open_runs(self, campaign_id: int) -> Sequence[model.RunRequest]:
        """Runs that were started and have no result."""

    def runs(self, campaign_id: int) -> Iterable[model.Run]:
        """All runs with a result, in the order they were stored."""

    def save_profiles(self, campaign_id: int, profiles: Sequence[model.Profile]) -> None:
        """Replaces the campaign's profiles."""

    def decide(self, campaign_id: int, decision: Decision) -> None:
        """Stores what the campaign decided to confirm, before it does so."""

    def decision(self, campaign_id: int) -> Decision | None:
        """Returns what ``decide`` stored last."""

    def plan_block(self, campaign_id: int, plan: model.BlockPlan) -> None:
        """Stores a block before its first run starts; the same one again changes nothing."""

    def blocks(self, campaign_id: int) -> Sequence[model.BlockPlan]:
        """All blocks that were planned, by number."""

    def add_execution(self, campaign_id: int, execution: model.Execution) -> None:
        """Stores what the library did under a configuration; a later one replaces it."""

    def executions(self, campaign_id: int) -> Sequence[model.Execution]:
        """Returns all stored executions."""

    def conclude(self, campaign_id: int, conclusion: Conclusion) -> None:
        """Stores the conclusion of the campaign."""


@dataclass(frozen=True)
class Progress:
    """The progress of a campaign, for display only.

    Attributes:
        phase: ``search``, ``ablate``, ``confirm``, ``guard``, ``verify``, ``compare`` or
            ``record``.
        trials, runs: their numbers so far.
        best_gain: largest ratio of a single run of the search; not evidence, and often lucky.
        used_s, budget_s: wall seconds of this phase, made and planned.
        confirmed: the point with the highest lower end of the candidates that stopped; ``None``
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
    """Reports to a person; called between runs only, never while one is timed."""

    def progress(self, progress: Progress) -> None:
        """Reports the progress after a run."""

    def say(self, message: str) -> None:
        """Reports an event in a line: a value set aside, a re-run."""
