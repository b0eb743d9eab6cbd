"""Runs of the benchmark: requests, plans, measurements and outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from commtune.model.configuration import Configuration
from commtune.model.operations import Operation
from commtune.model.workload import Timing, Workload


class Outcome(StrEnum):
    """How a run ended. Only OK counts as evidence; measurements of others are stored as well."""

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
        """Whether the run was cut short or never made by something outside the configuration."""
        return self in _LOST

    @property
    def is_failure(self) -> bool:
        """Whether the run failed; one that was lost did not."""
        return self is not Outcome.OK and not self.is_lost

    @property
    def blames_configuration(self) -> bool:
        """Whether the configuration may be the cause, so that it counts as its failure."""
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
    """The phase or command that a run was made for."""

    SEARCH = "search"
    ABLATE = "ablate"
    CONFIRM = "confirm"
    GUARD = "guard"
    VERIFY = "verify"
    COMPARE = "compare"


@dataclass(frozen=True)
class BlockPlan:
    """A block: runs to be made back to back in this order; stored before the first one starts.

    Attributes:
        order: the configurations by position; the default is among them.
    """

    number: int
    phase: Phase
    operation: Operation
    order: tuple[Configuration, ...]


class Followed(StrEnum):
    """Whether the library did what a configuration requested."""

    EXECUTED = "executed"
    REPLACED = "replaced"
    IGNORED = "ignored"
    UNKNOWN = "unknown"

    @property
    def is_credited(self) -> bool:
        """Whether results may be credited to the configuration."""
        return self in (Followed.EXECUTED, Followed.UNKNOWN)


@dataclass(frozen=True)
class Execution:
    """What the library did under a configuration, from a separate untimed run.

    Attributes:
        fingerprints: by size in bytes, two digests that depend on the algorithm, joined by ``+``:
            of a floating-point sum, which depends on the order of summation; and of who sent how
            much to whom. Either may be empty. If equal, the algorithm is most likely the same.
        said: lines of the library's log about what it did, without timestamps.
        why: for a person: what was ignored or replaced, and how that is known.
        became: key of a simpler configuration that behaves the same, if one is known.
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
        run_id: unique, assigned by commtune before anything starts.
        trial: number of the run's trial in its campaign.
        block: number of the block; runs of one block are made back to back.
        position: of the run in its block, from 0.
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
    """The measurement of one size in one run.

    Attributes:
        bytes: message size, in the sense of the operation (see the benchmark reference).
        median_s, min_s, mean_s, p95_s, max_s: over samples; a sample is the maximum over ranks.
        algbw, busbw: algorithm and bus bandwidth, bytes per second.
        samples_s: the samples in order; empty if they were not read from the database.
        batch: operations timed together in one sample (times are per operation).
        canary_s, canary_after_s: core-to-core cache-line round trip before and after this size;
            ``None`` if not measured. They differ if the machine state changed between.
        wrong: number of wrong elements found by the check.
        first_call_s: the first call of this size, longest over ranks, which is no sample: it
            makes connections and touches memory. ``None`` if not timed.
        rank_skew: median over samples of the longest over the shortest time of a rank; ``None``
            if unknown.
        bytes_total: what the bandwidths count, in whole elements; ``None`` if unknown.
        operation: the operation, if it is one of ``Workload.then``; else empty.
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
    """The part of a measurement that comparisons need; the rest is only in the database.

    Attributes:
        bytes, canary_s, canary_after_s, busbw, operation: as in ``Measurement``.
        time_s: the percentile of the samples that comparisons are about.
    """

    bytes: int
    time_s: float
    canary_s: float | None
    canary_after_s: float | None
    busbw: float
    operation: str = ""

    @classmethod
    def of(cls, found: Measurement, percentile: int = 50) -> SizeTime:
        """Selects that part of a measurement.

        Args:
            percentile: as in ``Timing``.
        """
        time_s = found.p95_s if percentile == 95 else found.median_s
        canaries = found.canary_s, found.canary_after_s
        return cls(found.bytes, time_s, *canaries, found.busbw, found.operation)


@dataclass(frozen=True)
class SubMeasurement:
    """A measurement of a part of the operation, or of a pair of ranks.

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
    """The result of one launch.

    Attributes:
        started_at: seconds since 1970; 0 for a run that left no records.
        wall_s: from the start of the launcher to its end, by the controller's clock.
        measurements: the sizes that were finished, whatever the outcome.
        header, footer: the benchmark's own records, verbatim; ``None`` if there are none. The
            header has ``environment``, with its length in bytes, and with an aggressor
            ``beside``: what that moved, and how fast.
        detail: why the outcome is not OK, for a person; for OK empty, or what disturbed the run:
            GPUs that were slowed down.
        output_tail: last lines of standard output and error.
        oversubscribed: whether there were more ranks than cores; such runs yield no profile.
        other_load: CPU time that others used on this machine's cores during the run, as a share
            of all its cores' time (0 to 1); ``None`` if unknown.
        nodes: names of the nodes that it ran on, if from a scheduler; else empty.
        distance: between the nodes, as named by ``cluster.placement.Distance``; empty if
            unknown.
        end_s: from the last record to the launcher's end; ``None`` if unknown, as with the clocks
            of two machines.
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


class Origin(StrEnum):
    """Where the configuration of a trial came from."""

    BASELINE = "baseline"
    USER = "user"
    ENUMERATED = "enumerated"
    RANDOM = "random"
    SAMPLER = "sampler"
    ISOLATED = "isolated"
    ABLATED = "ablated"
    VERIFIED = "verified"


@dataclass(frozen=True)
class Trial:
    """One configuration of a campaign.

    Attributes:
        origin: an ``Origin``, or the phase in whose blocks it first appeared.
    """

    number: int
    configuration: Configuration
    origin: str


def is_searched(origin: str) -> bool:
    """Whether a trial of this origin belongs to the search."""
    return origin not in (Origin.BASELINE, Origin.ABLATED, Origin.VERIFIED, *Phase)


@dataclass(frozen=True, slots=True)
class Run:
    """A run that ended, as it is compared, stored and reported.

    Attributes:
        session: identifier of the session that made it.
        then: operations to be measured after ``operation``, in the same processes.
        started_at: seconds since 1970.
        measurements, oversubscribed, other_load, nodes, distance, detail: as in ``RunResult``.
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
        """Combines a request with its result."""
        asked = ("run_id", "trial", "configuration", "phase", "block", "position")
        ended = (
            "outcome", "started_at", "wall_s", "oversubscribed", "other_load", "nodes",
            "distance", "detail", "output_tail",
        )  # fmt: skip
        return cls(
            **{name: getattr(request, name) for name in asked},
            **{name: getattr(result, name) for name in ended},
            measurements=tuple(
                SizeTime.of(one, request.timing.percentile) for one in result.measurements
            ),
            session=session,
            operation=str(request.workload.operation),
            then=tuple(str(operation) for operation in request.workload.then),
        )

    def only_of(self, operation: str) -> Run:
        """Selects one operation of a run of several; the outcome is that of the whole run."""
        mine = tuple(m for m in self.measurements if (m.operation or self.operation) == operation)
        return replace(self, operation=operation, then=(), measurements=mine)
