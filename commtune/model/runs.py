"""Runs of the benchmark, how they are asked for, planned and ended, and jobs that make them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from commtune.model.configuration import Configuration
from commtune.model.operations import Operation
from commtune.model.workload import Timing, Workload


class Outcome(StrEnum):
    """How a run ended. Only OK counts as evidence; the others keep what they measured."""

    OK = "ok"
    WRONG_RESULT = "wrong-result"
    TIMED_OUT = "timed-out"
    CRASHED = "crashed"
    FAILED = "failed"
    TRUNCATED = "truncated"
    MALFORMED = "malformed"
    MISSING_PROGRAM = "missing-program"
    OUT_OF_MEMORY = "out-of-memory"
    INTERRUPTED = "interrupted"
    NODE_FAILURE = "node-failure"
    PREEMPTED = "preempted"
    CANCELLED = "cancelled"
    NEVER_STARTED = "never-started"

    @property
    def is_lost(self) -> bool:
        """Whether the run was cut short or never made, by something that it could not help."""
        return self in _LOST

    @property
    def is_failure(self) -> bool:
        """Whether the run failed; one that was lost did not."""
        return self is not Outcome.OK and not self.is_lost

    @property
    def blames_configuration(self) -> bool:
        """Whether the configuration may be the cause, so that the search must learn of it."""
        return self not in (Outcome.OK, Outcome.MISSING_PROGRAM, *_LOST)


_LOST = frozenset(
    {
        Outcome.INTERRUPTED,
        Outcome.NODE_FAILURE,
        Outcome.PREEMPTED,
        Outcome.CANCELLED,
        Outcome.NEVER_STARTED,
    }
)


class Phase(StrEnum):
    """What a run was made for."""

    SEARCH = "search"
    ABLATE = "ablate"
    CONFIRM = "confirm"
    GUARD = "guard"
    VERIFY = "verify"
    COMPARE = "compare"


@dataclass(frozen=True)
class BlockPlan:
    """Runs to be made close together, in this order; stored before the first of them starts.

    Attributes:
        order: the configurations by position; the default is among them.
    """

    number: int
    phase: Phase
    operation: Operation
    order: tuple[Configuration, ...]


class Followed(StrEnum):
    """Whether the library did what a configuration asked for."""

    EXECUTED = "executed"
    REPLACED = "replaced"
    IGNORED = "ignored"
    UNKNOWN = "unknown"

    @property
    def is_credited(self) -> bool:
        """Whether results may be put down to the configuration."""
        return self in (Followed.EXECUTED, Followed.UNKNOWN)


@dataclass(frozen=True)
class Execution:
    """What the library did under a configuration, from an untimed run of its own.

    Attributes:
        fingerprints: by size in bytes, digests of what shows the algorithm, joined by ``+``: a
            floating-point sum, whose result depends on the order of summation; and who sent how
            much to whom. Either may be empty. Equal ones, most likely the same algorithm.
        said: what the library itself said that it did, line by line, without its timestamps.
        why: for a person: what was ignored or replaced, and how that is known.
        became: key of the configuration that behaves the same, where one is known.
    """

    configuration: Configuration
    operation: str
    followed: Followed = Followed.UNKNOWN
    fingerprints: Mapping[int, str] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    why: str = ""
    became: str | None = None


@dataclass(frozen=True)
class RunRequest:
    """One launch of the benchmark, decided but not yet made.

    Attributes:
        run_id: ours, unique, given before anything starts.
        trial: number of the trial in its campaign that this run belongs to.
        block: number of the block; runs of one block were made close together.
        position: place of the run inside its block, from 0.
    """

    run_id: str
    configuration: Configuration
    workload: Workload
    timing: Timing
    phase: Phase = Phase.SEARCH
    trial: int = 0
    block: int = 0
    position: int = 0


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one run says of one size.

    Attributes:
        bytes: message size, in the sense of the operation (see the benchmark reference).
        median_s, min_s, mean_s, p95_s, max_s: over samples; a sample is the maximum over ranks.
        samples_s: the samples themselves, in the order taken; empty where they were not read
            from the database.
        batch: operations timed together in one sample (time is per operation).
        canary_s, canary_after_s: core-to-core cache-line round trip before and after this size;
            ``None`` where not measured. They differ where the machine changed its speed between.
        wrong: number of wrong elements found by the check.
        first_call_s: the first call of this size, longest over ranks, which is in no sample: it
            makes connections and touches memory. ``None`` where nobody timed it.
        rank_skew: median over samples of the longest over the shortest time of a rank; ``None``
            where it was not told.
        bytes_total: what the bandwidths count, in whole elements; ``None`` where it was not told.
        operation: what was measured, where it is none of ``Workload.operation`` but of ``then``.
    """

    bytes: int
    median_s: float
    min_s: float
    mean_s: float
    p95_s: float
    max_s: float
    algbw: float
    busbw: float
    samples_s: tuple[float, ...] = ()
    batch: int = 1
    canary_s: float | None = None
    canary_after_s: float | None = None
    wrong: int = 0
    first_call_s: float | None = None
    rank_skew: float | None = None
    bytes_total: int | None = None
    operation: str = ""


@dataclass(frozen=True, slots=True)  # a controller has those of all its runs in memory
class SizeTime:
    """Of a measurement as much as runs are compared by; the rest is for the database alone.

    Attributes:
        bytes, median_s, canary_s, canary_after_s, busbw, operation: as in ``Measurement``.
    """

    bytes: int
    median_s: float
    canary_s: float | None
    canary_after_s: float | None
    busbw: float
    operation: str = ""

    @classmethod
    def of(cls, found: Measurement) -> SizeTime:
        """Leaves out the rest."""
        return cls(*(getattr(found, name) for name in cls.__slots__))


@dataclass(frozen=True)
class SubMeasurement:
    """A measurement that is none of the whole operation.

    Attributes:
        part: ``inside`` or ``between`` of a matrix, ``split``, ``translate`` or ``assemble`` of
            striping, or ``kept-apart``: all of it with barriers between; ``""`` for a pair.
        pair: sender and receiver; ``None`` for a part.
    """

    measurement: Measurement
    part: str
    pair: tuple[int, int] | None


@dataclass(frozen=True)
class RunResult:
    """What came of one launch.

    Attributes:
        started_at: seconds since 1970; 0 of a run that left nothing.
        wall_s: from starting the launcher to its end, as the controller saw it.
        measurements: the sizes that were finished, whatever the outcome.
        header, footer: the benchmark's own records, verbatim; ``None`` where it wrote none. In the
            header is ``environment`` as well, which says how long that was, bytes; and ``beside``,
            where an aggressor was: what that moved, and how fast.
        detail: why the outcome is not OK, for a person; for OK empty, or what disturbed the run:
            GPUs that were slowed down.
        output_tail: last lines of standard output and error.
        oversubscribed: more ranks than cores they may use: never yields a profile.
        other_load: CPU time that others used on this machine's cores during the run, as a share
            of all its cores' time (0 to 1); ``None`` where it can't be told.
        nodes: names of the nodes that it ran on, where a scheduler gave them; else empty.
        distance: how far apart they stand, as ``cluster.slurm.placement.Distance`` says it; empty
            where nobody asked.
        end_s: from the last record to the launcher's end; ``None`` where that can't be told, as
            by the clocks of two machines.
    """

    run_id: str
    outcome: Outcome
    started_at: float
    wall_s: float
    measurements: tuple[Measurement, ...] = ()
    header: Mapping[str, Any] | None = None
    footer: Mapping[str, Any] | None = None
    detail: str = ""
    output_tail: str = ""
    exit_code: int | None = None
    oversubscribed: bool = False
    other_load: float | None = None
    nodes: tuple[str, ...] = ()
    distance: str = ""
    pieces: tuple[SubMeasurement, ...] = ()
    end_s: float | None = None


@dataclass(frozen=True)
class Trial:
    """One configuration of a campaign.

    Attributes:
        origin: ``baseline``, ``user``, ``sampler``, ``random`` or ``enumerated``.
        label: the size range that it was proposed for; empty for all.
        created: seconds since 1970.
    """

    number: int
    configuration: Configuration
    origin: str
    label: str = ""
    created: float = 0.0


@dataclass(frozen=True, slots=True)
class Run:
    """A run that ended, as it is compared with others, stored and reported.

    Attributes:
        session: which session of the controller made it.
        then: operations that were to be measured after ``operation``, in the same processes.
        started_at: seconds since 1970.
        measurements: the sizes that were finished, whatever the outcome.
        oversubscribed, other_load, nodes, distance, detail: as in ``RunResult``.
        output_tail: as in ``RunResult``; empty where the run was read from the database.
    """

    run_id: str
    trial: int
    configuration: Configuration
    phase: Phase
    block: int
    position: int
    session: str
    outcome: Outcome
    operation: str
    started_at: float
    wall_s: float
    measurements: tuple[SizeTime, ...] = ()
    then: tuple[str, ...] = ()
    oversubscribed: bool = False
    other_load: float | None = None
    nodes: tuple[str, ...] = ()
    distance: str = ""
    detail: str = ""
    output_tail: str = ""

    @classmethod
    def from_result(cls, request: RunRequest, result: RunResult, session: str) -> Run:
        """What was asked for, with what came of it."""
        asked = ("run_id", "trial", "configuration", "phase", "block", "position")
        ended = (
            "outcome", "started_at", "wall_s", "oversubscribed", "other_load", "nodes",
            "distance", "detail", "output_tail",
        )  # fmt: skip
        return cls(
            **{name: getattr(request, name) for name in asked},
            **{name: getattr(result, name) for name in ended},
            measurements=tuple(map(SizeTime.of, result.measurements)),
            session=session,
            operation=str(request.workload.operation),
            then=tuple(str(operation) for operation in request.workload.then),
        )

    def only_of(self, operation: str) -> Run:
        """One operation of a run that measured several; the outcome is that of the whole run."""
        mine = tuple(m for m in self.measurements if (m.operation or self.operation) == operation)
        return replace(self, operation=operation, then=(), measurements=mine)


class JobScheduler(StrEnum):
    """Where jobs go, by the key in campaign files; a stored campaign has it as a key as well."""

    SLURM = "slurm"
    PBS = "pbs"

    @property
    def label(self) -> str:
        return {"slurm": "Slurm", "pbs": "PBS"}[self]

    @classmethod
    def find_in(cls, stored: Mapping[str, Any]) -> JobScheduler | None:
        """The one that a stored campaign's question or settings name; ``None`` for none."""
        return next((scheduler for scheduler in cls if scheduler in stored), None)


class JobKind(StrEnum):
    """What a scheduler's job is for."""

    BLOCK = "block"
    ALLOCATION = "allocation"
    TRACE = "trace"


class JobStage(StrEnum):
    """How far a job has come, as we wrote it down: the way is one, from left to right."""

    PREPARED = "prepared"  # stored, its script written; perhaps submitted, perhaps not
    SUBMITTED = "submitted"  # the scheduler's number for it is known
    OVER = "over"  # it ended, and what came of it is stored


@dataclass(frozen=True)
class JobRecord:
    """One job of a campaign, as the store keeps it; written before the scheduler hears of it.

    Attributes:
        key: ours, unique for ever; part of the job's name, by which the job is found again.
        block: number of the block whose runs it makes; ``None`` for other kinds.
        folder: where its script, its output and its exit files are.
        number: the scheduler's own number; empty until it is known.
        word, reason: the scheduler's last words on it.
        nodes: names in the scheduler's short form.
        node_count: nodes asked for, and had once it ran.
        prepared_at, started_at, ended_at: seconds since 1970; ``None`` while unknown.
        node_hours: nodes times hours that it had them; as far as known while it runs.
        detail: what went wrong, for a person.
    """

    key: str
    kind: JobKind
    folder: str
    prepared_at: float
    node_count: int
    block: int | None = None
    stage: JobStage = JobStage.PREPARED
    number: str = ""
    word: str = ""
    reason: str = ""
    nodes: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    node_hours: float = 0.0
    detail: str = ""
