"""Records that the store takes and returns, besides the classes of ``commtune.model``.

Imports nothing slow, because the start of ``commtune best`` waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from commtune import model
from commtune.errors import UserError
from commtune.tuner.outcome.detectability import is_ruled_out
from commtune.tuner.outcome.displayed_points import overall_points

#: The key in a stack's description with the libraries that MPI, NCCL and RCCL load themselves.
LIBRARIES = "libraries"


@dataclass(frozen=True)
class SystemRecord:
    """A machine.

    Attributes:
        fingerprint: equal for machines whose results are comparable.
        description: the data of the fingerprint: processor, cores, NUMA, kernel, NICs, GPUs.
    """

    fingerprint: str
    name: str
    description: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StackRecord:
    """The communication software.

    Attributes:
        text: one line for messages, such as ``MPICH 4.3.0``.
        description: MPI, version, kernel and the like; ``libraries`` has the versions of those
            that MPI, NCCL and RCCL load themselves, if known.
        formerly: the same stack without ``libraries``, as older campaigns stored it.
    """

    fingerprint: str
    text: str
    description: Mapping[str, Any] = field(default_factory=dict)
    formerly: StackRecord | None = None

    def as_known_to(self, description: Mapping[str, Any]) -> StackRecord:
        """Returns this stack in the form that is comparable with a stored description.

        Without ``libraries`` in that, they are left out here, too: a stack that was stored before
        these were recorded must not count as another one.
        """
        return self.formerly if self.formerly and LIBRARIES not in description else self


@dataclass(frozen=True)
class StoredProfile:
    """A line of the list of profiles.

    Attributes:
        id: row number, which is never reused for another profile.
        bytes_low, bytes_high: range of sizes, bytes, both ends inclusive.
        system, stack: name of the machine and text of the stack, for messages.
        note: that of the profile, with what its last verification found other than stated.
        created: seconds since 1970.
        site: the site that measured it; empty for this one.
    """

    id: int
    name: str
    campaign: str
    operation: str
    backend: str
    ranks: int
    nodes: int
    bytes_low: int
    bytes_high: int
    configuration: model.Configuration
    verdict: str
    system: str
    stack: str
    simulated: bool
    created: float
    note: str = field(default="", kw_only=True)
    site: str = field(default="", kw_only=True)

    def is_about(self, workload: model.Workload) -> bool:
        """Whether it answers the same question, whatever the sizes and the machine."""
        of = (workload.operation, workload.backend, workload.ranks, workload.nodes)
        return (self.operation, self.backend, self.ranks, self.nodes) == of


@dataclass(frozen=True)
class BestRow(StoredProfile):
    """An answer to "which profile is best for this size".

    Attributes:
        system_fingerprint, stack_fingerprint: identify ``system`` and ``stack``.
        nearest_bytes: the measured size nearest to the requested one; ``None`` without evidence.
        points: evidence at that size, one for each machine state.
        level: confidence level of each interval, higher than the simultaneous one.
        simultaneous_level: that of all intervals of the campaign together; ``None`` if unknown.
        workload, timing: those of its campaign, as their ``plain`` returns them; empty if unknown.
        space: name of the search space.
        pinned: variables that were set in every run, also in those of the default.
    """

    system_fingerprint: str
    stack_fingerprint: str
    nearest_bytes: int | None
    points: tuple[model.PointEvidence, ...]
    level: float
    minimum_gain: float
    conditions: model.Conditions
    simultaneous_level: float | None = None
    workload: Mapping[str, Any] = field(default_factory=dict)
    timing: Mapping[str, Any] = field(default_factory=dict)
    space: str = ""
    pinned: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def sure_points(self) -> tuple[model.PointEvidence, ...]:
        """The evidence over all machine states; that of each state if there is none."""
        return tuple(overall_points(self.points).values()) or self.points

    @cached_property
    def finding(self) -> model.Verdict:
        """The verdict at this size: a profile may be faster at only some sizes of its range."""
        nearest, verdicts = self.nearest_bytes, model.Verdict
        for decided in (verdicts.DEFAULT, verdicts.WITHDRAWN):
            if self.verdict == decided:
                return decided
        if self.verdict == verdicts.FASTER:
            shown = any(point.verdict is verdicts.FASTER for point in self.sure_points)
            return verdicts.FASTER if shown else verdicts.UNDECIDED
        ruled_out = nearest is not None and is_ruled_out(nearest, self.points, self.minimum_gain)
        return verdicts.DEFAULT if ruled_out else verdicts.UNDECIDED


@dataclass(frozen=True)
class ProfileAnswer:
    """A whole profile, with the machine and software that it was measured on.

    Attributes:
        created: seconds since 1970.
        space: the campaign's search space as plain data.
        level: simultaneous confidence level of all intervals of the campaign; ``None`` if unknown.
        site: the site that measured it; empty for this one.
    """

    id: int
    campaign: str
    profile: model.Profile
    system: SystemRecord
    stack: StackRecord
    strength: model.Strength
    created: float
    space: Mapping[str, Any] = field(default_factory=dict)
    level: float | None = None
    site: str = ""

    @property
    def reference(self) -> str:
        """Its unique name, ``CAMPAIGN/PROFILE``."""
        return f"{self.campaign}/{self.profile.name}"

    def require_own(self) -> None:
        """Refuses a profile of another site, which is no evidence for this one.

        Raises:
            UserError: another site measured it.
        """
        if self.site:
            raise UserError(
                f"profile {self.reference} was measured at {self.site}, and says nothing about "
                "this site",
                hint="a new campaign here tries it first: commtune tune",
            )

    @property
    def pinned(self) -> dict[str, str]:
        """Variables that were set in every run, also in those of the default."""
        return dict(self.space.get("pinned", {}))

    @property
    def variables(self) -> tuple[str, ...]:
        """Every variable that the search could set."""
        return tuple(self.space.get("variables", ()))


@dataclass(frozen=True)
class ResultsPage:
    """A page of the measurements of a campaign.

    Attributes:
        newest: number of the last run when the first page was read; later runs are left out.
        variables: variables that any run of the campaign set, sorted.
        columns: names of the values in each row.
        next: number of the page's last run, after which the next begins; ``None`` at the end.
    """

    campaign_id: int
    newest: int
    variables: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    next: int | None


@dataclass(frozen=True)
class CampaignRecord:
    """A campaign as its controller passes it to the store.

    Attributes:
        what: the parts on which comparability depends; fixed once stored.
        settings: the parts that may change between sessions, such as the budget.
        space: the search space as plain data.
        space_key: a hash of the space's content.
        folder: the folder for records of its runs.
    """

    name: str
    what: Mapping[str, Any]
    settings: Mapping[str, Any]
    space: Mapping[str, Any]
    space_key: str
    seed: int
    system: SystemRecord
    stack: StackRecord
    simulated: bool = False
    folder: str = ""


@dataclass(frozen=True)
class CampaignHandle:
    """A stored campaign that was opened.

    Attributes:
        earlier: the new name of an earlier campaign without a successful run, which this call
            renamed, because this one has its name; empty if there was none.
        earlier_id: number of that campaign; 0 if there was none.
        changes: differences from that one, as ``key: stored -> now``.
        is_finished: whether it is finished, and its settings are unchanged.
    """

    id: int
    name: str
    earlier: str = ""
    earlier_id: int = 0
    changes: tuple[str, ...] = ()
    is_finished: bool = False


@dataclass(frozen=True)
class BestGain:
    """The best confirmed speedup of a campaign, by the lower end of its interval.

    Attributes:
        tuned_s: time of the operation with the profile, seconds.
        estimand: as in ``model.Conditions``.
    """

    profile: str
    operation: str
    bytes: int
    speed: str
    ratio: float
    low: float
    high: float
    pairs: int
    tuned_s: float
    backend: str
    ranks: int
    nodes: int
    estimand: str


class CampaignState(StrEnum):
    """The state of a campaign."""

    RUNNING = "running"
    SUBMITTED = "submitted"
    FINISHED = "finished"
    STOPPED = "stopped"


@dataclass(frozen=True)
class CampaignSummary:
    """The progress of a campaign, in numbers.

    Attributes:
        created, finished: seconds since 1970; ``finished`` is ``None`` until then.
        outcomes: number of stored runs by outcome.
        open_runs: number of runs that were started and not stored yet.
        wall_s: total wall time of stored runs, seconds.
        last_run: start of the newest run, seconds since 1970; ``None`` before the first.
        best: the best gain; ``None`` if nothing is confirmed (yet).
        notes: those of recommended profiles that have one, by name.
        locked_by: host, process and start of its controller; empty without one.
        jobs: the scheduler's jobs that are not over.
        node_hours: node-hours that all jobs used, as far as known for running ones.
        aggressor: deliberate background traffic, as in ``model.Aggressor.plain``.
        site: the site that measured it; empty for this one.
    """

    id: int
    name: str
    system: str
    stack: str
    simulated: bool
    folder: str
    settings: Mapping[str, Any]
    created: float
    finished: float | None
    trials: int
    outcomes: Mapping[str, int]
    open_runs: int
    wall_s: float
    last_run: float | None
    profiles: int
    best: BestGain | None
    notes: Mapping[str, str]
    locked_by: str
    jobs: tuple[model.JobRecord, ...] = ()
    node_hours: float = 0.0
    aggressor: Mapping[str, Any] | None = None
    site: str = ""

    @property
    def state(self) -> CampaignState:
        """Running with a controller, submitted as a job, finished, or else stopped."""
        if self.locked_by:
            return CampaignState.RUNNING
        waits = (model.JobKind.ALLOCATION, model.JobStage.SUBMITTED)
        if any((job.kind, job.stage) == waits for job in self.jobs):
            return CampaignState.SUBMITTED
        return CampaignState.STOPPED if self.finished is None else CampaignState.FINISHED

    @property
    def runs(self) -> int:
        return sum(self.outcomes.values())

    @property
    def lost(self) -> int:
        """The number of runs that an external cause ended or prevented."""
        return sum(self.outcomes.get(outcome, 0) for outcome in model.Outcome if outcome.is_lost)

    @property
    def failed(self) -> int:
        """The number of runs that failed, without the lost ones."""
        return self.runs - self.lost - self.outcomes.get(model.Outcome.OK, 0)


def time_column(what: Mapping[str, Any]) -> str:
    """Returns the column of ``measurements`` with the times that a campaign compares.

    Args:
        what: as in ``CampaignDescription``.
    """
    return "p95_s" if what.get("timing", {}).get("percentile") == 95 else "median_s"


@dataclass(frozen=True)
class CampaignDescription:
    """A stored campaign without its runs.

    Attributes:
        what: workload, timing, space and environment, on which comparability depends.
        settings: budget and thresholds of the last session.
        space: the search space as plain data.
        created, finished: seconds since 1970; ``finished`` is ``None`` until then.
        site: the site that measured it; empty for this one.
        folder: the folder with records of its runs.
    """

    id: int
    name: str
    what: Mapping[str, Any]
    settings: Mapping[str, Any]
    space: Mapping[str, Any]
    seed: int
    simulated: bool
    created: float
    finished: float | None
    system: SystemRecord
    stack: StackRecord
    site: str = ""
    folder: str = ""

    @property
    def estimand(self) -> model.Estimand:
        """The quantity whose ratio its speedups are."""
        return model.Estimand(self.what.get("estimand", model.Estimand.MEDIAN))
