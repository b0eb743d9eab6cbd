"""What goes into the store and comes out of it, where commtune.model has no word for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from commtune.db.queries.query_results import StackRecord, StoredProfile, SystemRecord
from commtune.model import JobRecord, Outcome

__all__ = [
    "BestGain",
    "CampaignHandle",
    "CampaignRecord",
    "CampaignSummary",
    "StackRecord",
    "StoredProfile",
    "SystemRecord",
]


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
        is_new: whether this call created it.
        created: seconds since 1970.
        earlier: name that an earlier campaign of this name has got by this call, which had no
            good run; empty where there was none.
        earlier_id: that campaign; 0 where there was none.
        changes: what has changed since that one, as ``key: stored -> now``.
    """

    id: int
    name: str
    is_new: bool
    created: float
    earlier: str = ""
    earlier_id: int = 0
    changes: tuple[str, ...] = ()


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
    jobs: tuple[JobRecord, ...] = ()
    node_hours: float = 0.0
    aggressor: Mapping[str, Any] | None = None

    @property
    def runs(self) -> int:
        """Stored runs."""
        return sum(self.outcomes.values())

    @property
    def lost(self) -> int:
        """Runs that were cut short or never made, by something that they could not help."""
        return sum(self.outcomes.get(outcome, 0) for outcome in Outcome if outcome.is_lost)

    @property
    def failed(self) -> int:
        """Runs that failed by themselves; what was lost is not among them."""
        return self.runs - self.lost - self.outcomes.get(Outcome.OK, 0)
