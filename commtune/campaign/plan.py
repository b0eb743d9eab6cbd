"""The plan of a campaign: all that the tuner needs, independent of files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from commtune import formatting
from commtune.model import (
    LEVEL,
    SESSION_SPREAD,
    Aggressor,
    Configuration,
    Estimand,
    Operation,
    Phase,
    Timing,
    Workload,
)

if TYPE_CHECKING:  # slow to import, and not needed to read stored campaigns
    from commtune.spaces.space import Space

#: The fields of a budget with the times of phases.
BUDGETS: Mapping[str, str] = {
    Phase.SEARCH: "search_s",
    Phase.ABLATE: "ablation_s",
    Phase.CONFIRM: "confirmation_s",
}


@dataclass(frozen=True)
class Budget:
    """The budget of a campaign.

    Attributes:
        search_s, ablation_s, confirmation_s: wall seconds of each phase.
        trials: the most configurations that the search may try; ``None`` for as many as time
            allows, 0 to measure the default only.
        node_hours: the most node-hours of all jobs of the campaign; ``None`` for no limit.
    """

    search_s: float = 50.0
    ablation_s: float = 20.0
    confirmation_s: float = 30.0
    trials: int | None = None
    node_hours: float | None = None

    @property
    def whole_s(self) -> float:
        """Wall seconds of all phases together."""
        return self.search_s + self.ablation_s + self.confirmation_s

    def scale_to(self, whole_s: float) -> Budget:
        """Returns the budget with all phases longer or shorter alike, ``whole_s`` together."""
        factor = whole_s / self.whole_s
        times: dict[str, Any] = {name: getattr(self, name) * factor for name in BUDGETS.values()}
        return replace(self, **times)


@dataclass(frozen=True)
class Plan:
    """The plan of a campaign.

    Attributes:
        strategy: name of the search strategy (see ``tuner.search.strategies``).
        minimum_gain: the smallest gain that is worth recommending, as a share; 0.02 is 2 %.
        tolerance: how much slower than the default, as a share, a configuration for all sizes may
            be at any size.
        level: simultaneous confidence level of all statements of the campaign.
        session_spread: standard deviation of a speedup between sessions, as a share of its
            logarithm.
        estimand: the quantity whose ratio a speedup is.
        first: configurations to try before the search proposes its own.
        guards: further operations, on which winners must not be slower.
        messages: number of messages by size (bytes) in the user's programs; empty for equal
            weights of all sizes.
        time_limit_s: most wall seconds of a run; ``None`` to derive it from the default's runs.
        shares_launches: whether the search may make several runs in one launch, if the benchmark
            supports that.
        aggressor: deliberate traffic beside each run; ``None`` for none.
        looks_between: whether candidates are confirmed also at sizes between the workload's,
            which a recording doesn't have.
    """

    name: str
    space: Space
    workload: Workload
    timing: Timing = field(default_factory=Timing)
    budget: Budget = field(default_factory=Budget)
    seed: int = 1
    strategy: str = "table-gp"
    minimum_gain: float = 0.02
    tolerance: float = 0.05
    level: float = LEVEL
    session_spread: float = SESSION_SPREAD
    estimand: Estimand = Estimand.MEDIAN
    first: tuple[Configuration, ...] = ()
    guards: tuple[Operation, ...] = ()
    messages: Mapping[int, float] = field(default_factory=dict)
    time_limit_s: float | None = None
    shares_launches: bool = True
    aggressor: Aggressor | None = None
    looks_between: bool = False

    @property
    def beside(self) -> str:
        """The aggressor in words; empty if there is none."""
        return formatting.describe_aggressor(self.aggressor) if self.aggressor else ""

    @property
    def emulated(self) -> str:
        """The number of emulated nodes in words; empty for none, as it is with an aggressor."""
        nodes = self.workload.emulated_nodes
        return formatting.describe_emulated(nodes) if nodes else ""

    def comparable(self, surroundings: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what must be the same for results to be comparable, as plain data.

        Budgets, seed, listed configurations and thresholds may change between two sessions.

        Args:
            surroundings: data on the machine, the MPI and the benchmark, from the adapters.
        """
        return {
            "space": {"name": self.space.name, "content": self.space.key},
            "workload": self.workload.plain(),
            "timing": self.timing.plain(),
            **({"aggressor": self.aggressor.plain()} if self.aggressor else {}),
            # The estimand must not change after results were seen.
            **({} if self.estimand is Estimand.MEDIAN else {"estimand": str(self.estimand)}),
            **surroundings,
        }
