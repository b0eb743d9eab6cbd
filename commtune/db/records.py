"""What goes into the store and comes out of it, where ``commtune.model`` has no word for it.

Imports nothing that starts slowly: the commands that answer from the shell wait for it.
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

#: In a stack's description: what MPI, NCCL and RCCL load by themselves, with versions.
LIBRARIES = "libraries"


@dataclass(frozen=True)
class SystemRecord:
    """A machine.

    Attributes:
        fingerprint: same text, same machine as far as results are concerned.
        description: what the fingerprint was made of: processor, cores, NUMA, kernel, NICs, GPUs.
    """

    fingerprint: str
    name: str
    description: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StackRecord:
    """The communication software.

    Attributes:
        text: one line for people, such as ``MPICH 4.3.0``.
        description: MPI, version, kernel and the like; in ``libraries`` the versions of those
            that MPI, NCCL and RCCL load by themselves, where they were asked.
        formerly: the same stack without these, as it is where nobody asked for them.
    """

    fingerprint: str
    text: str
    description: Mapping[str, Any] = field(default_factory=dict)
    formerly: StackRecord | None = None

    def as_known_to(self, description: Mapping[str, Any]) -> StackRecord:
        """This stack as far as a stored description knows stacks.

        One that was stored when nobody could tell the versions of its libraries must not be taken
        for another because of them.
        """
        return self.formerly if self.formerly and LIBRARIES not in description else self


@dataclass(frozen=True)
class StoredProfile:
    """One line of the list of profiles.

    Attributes:
        id: the number that names it; never used again for another profile.
        bytes_low, bytes_high: sizes that it is for, both ends inclusive.
        system, stack: name and text for people.
        created: seconds since 1970.
        site: where it was measured; empty for this one.
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
    site: str = field(default="", kw_only=True)

    def is_about(self, workload: model.Workload) -> bool:
        """Whether it answers the same question, whatever the sizes and the machine."""
        of = (workload.operation, workload.backend, workload.ranks, workload.nodes)
        return (self.operation, self.backend, self.ranks, self.nodes) == of


class Standing(StrEnum):
    """What an answer shows at the measured size nearest to the one asked for."""

    GAIN = "gain shown"
    NONE = "gain ruled out"
    OPEN = "undecided"

    @property
    def is_decided(self) -> bool:
        """Whether more runs would change nothing."""
        return self is not Standing.OPEN


@dataclass(frozen=True)
class BestRow(StoredProfile):
    """One answer to "what is best for this size".

    Attributes:
        system_fingerprint, stack_fingerprint: tell apart what ``system`` and ``stack`` name.
        nearest_bytes: the measured size nearest to the one asked for; ``None`` without evidence.
        points: evidence at that size, one for each machine state.
        level: confidence level of the intervals.
        workload, timing: what its campaign measures and how, as their ``plain`` has it; empty if
            nobody knows.
        space: name of the space that was searched.
        pinned: variables that were set in every run, the default's too.
    """

    system_fingerprint: str
    stack_fingerprint: str
    nearest_bytes: int | None
    points: tuple[model.PointEvidence, ...]
    level: float
    minimum_gain: float
    note: str
    conditions: model.Conditions
    workload: Mapping[str, Any] = field(default_factory=dict)
    timing: Mapping[str, Any] = field(default_factory=dict)
    space: str = ""
    pinned: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def sure_points(self) -> tuple[model.PointEvidence, ...]:
        """The evidence over all machine states; that of each speed where there is no such."""
        return tuple(overall_points(self.points).values()) or self.points

    @cached_property
    def standing(self) -> Standing:
        """What it shows: a profile may gain at some sizes of its range, not at others."""
        if self.verdict == model.Verdict.FASTER:
            shown = any(point.verdict is model.Verdict.FASTER for point in self.sure_points)
            return Standing.GAIN if shown else Standing.OPEN
        nearest = self.nearest_bytes
        ruled_out = nearest is not None and is_ruled_out(nearest, self.points, self.minimum_gain)
        return (
            Standing.NONE if ruled_out or self.verdict == model.Verdict.DEFAULT else Standing.OPEN
        )


@dataclass(frozen=True)
class ProfileAnswer:
    """A whole profile, and what it was measured on.

    Attributes:
        created: seconds since 1970.
        space: the campaign's search space as plain data.
        level: at which all intervals of the campaign hold together; ``None`` where nobody knows.
        site: where it was measured; empty for this one.
    """

    id: int
    campaign: str
    profile: model.Profile
    system: SystemRecord
    stack: StackRecord
    created: float
    space: Mapping[str, Any] = field(default_factory=dict)
    level: float | None = None
    site: str = ""

    @property
    def reference(self) -> str:
        """``CAMPAIGN/PROFILE``: what names it."""
        return f"{self.campaign}/{self.profile.name}"

    def require_own(self) -> None:
        """Refuses a profile that another site measured: it is no answer for this one.

        Raises:
            UserError: it is such a one.
        """
        if self.site:
            raise UserError(
                f"profile {self.reference} was measured at {self.site}, and says nothing about "
                "this site",
                hint="a new campaign here tries it first: commtune tune",
            )

    @property
    def pinned(self) -> dict[str, str]:
        """Variables that were set in every run, the default's too."""
        return dict(self.space.get("pinned", {}))

    @property
    def variables(self) -> tuple[str, ...]:
        """Every variable that the search could set."""
        return tuple(self.space.get("variables", ()))


@dataclass(frozen=True)
class ResultsPage:
    """Measurements of some runs of a campaign.

    Attributes:
        campaign_id: the campaign's number.
        newest: the number of the last run when the first page was read: later ones are left out.
        variables: those that a run of the campaign set, sorted.
        columns: what the values of each row are.
        next: after which run the next page begins; ``None`` after the last one.
    """

    campaign_id: int
    newest: int
    variables: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    next: int | None


@dataclass(frozen=True)
class CampaignRecord:
    """A campaign as its controller sees it now.

    Attributes:
        what: the parts that make results comparable; a stored campaign keeps them.
        settings: the parts that may change from one session to the next, such as the budget.
        space: the search space as plain data.
        space_key: the space's version by content.
        folder: where the runs leave their records.
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
    """A stored campaign.

    Attributes:
        earlier: name that an earlier campaign of this name has got by this call, which had no
            good run; empty where there was none.
        earlier_id: that campaign; 0 where there was none.
        changes: what has changed since that one, as ``key: stored -> now``.
        is_finished: whether it came to its end, and has the same budget still.
    """

    id: int
    name: str
    earlier: str = ""
    earlier_id: int = 0
    changes: tuple[str, ...] = ()
    is_finished: bool = False


@dataclass(frozen=True)
class BestGain:
    """The best confirmed speedup of a campaign: the highest lower end of an interval.

    Attributes:
        tuned_s: what the operation took with it.
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


class CampaignState(StrEnum):
    """What a campaign does now."""

    RUNNING = "running"
    SUBMITTED = "submitted"
    FINISHED = "finished"
    STOPPED = "stopped"


@dataclass(frozen=True)
class CampaignSummary:
    """A campaign's state, counted.

    Attributes:
        outcomes: stored runs by outcome.
        open_runs: runs that were started and not stored yet.
        wall_s: seconds that stored runs took together.
        last_run: when the newest run started, seconds since 1970; ``None`` before the first.
        best: ``None`` where nothing was confirmed (yet).
        locked_by: host, process and since when; empty where no controller holds it.
        jobs: a scheduler's jobs that are not over.
        node_hours: what all jobs used, those under way as far as it is known.
        aggressor: traffic on purpose beside its runs, as ``model.Aggressor.plain`` says it.
        site: where it was measured; empty for this one.
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
    locked_by: str
    jobs: tuple[model.JobRecord, ...] = ()
    node_hours: float = 0.0
    aggressor: Mapping[str, Any] | None = None
    site: str = ""

    @property
    def state(self) -> CampaignState:
        """A controller works on it; a job will; it came to its end; or nobody goes on."""
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
        """Runs that were cut short or never made, by something that they could not help."""
        return sum(self.outcomes.get(outcome, 0) for outcome in model.Outcome if outcome.is_lost)

    @property
    def failed(self) -> int:
        """Runs that failed by themselves; what was lost is not among them."""
        return self.runs - self.lost - self.outcomes.get(model.Outcome.OK, 0)


@dataclass(frozen=True)
class CampaignDescription:
    """A stored campaign.

    Attributes:
        what: workload, timing, space and surroundings, which make results comparable.
        settings: budget and thresholds, as they were at the last session.
        space: the search space as plain data.
        created, finished: seconds since 1970; ``finished`` is ``None`` while it is not.
        site: where it was measured; empty for this one.
        folder: where its runs leave their records.
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
