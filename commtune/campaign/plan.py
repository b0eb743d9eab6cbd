"""A campaign as decided: everything that the loop needs to know, and nothing about files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from commtune import formatting
from commtune.model import Aggressor, Configuration, Estimand, Operation, Phase, Timing, Workload

if TYPE_CHECKING:  # who reads stored campaigns doesn't wait for it
    from commtune.spaces.space import Space

#: Fields of a budget by the phases that have one.
BUDGETS: Mapping[str, str] = {
    Phase.SEARCH: "search_s",
    Phase.ABLATE: "ablation_s",
    Phase.CONFIRM: "confirmation_s",
}


@dataclass(frozen=True)
class Budget:
    """How much may be spent.

    Attributes:
        search_s, ablation_s, confirmation_s: wall seconds of each phase.
        trials: configurations that the search may try, or ``None`` for as many as time allows;
            0 measures the default alone.
        node_hours: nodes times hours that all jobs of the campaign may have, or ``None`` where
            nobody counts them.
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


@dataclass(frozen=True)
class Plan:
    """One campaign.

    Attributes:
        strategy: what proposes configurations, by its name (see ``tuner.search.strategies``).
        minimum_gain: smallest gain worth recommending; 0.02 is 2 %.
        tolerance: how much slower than the default one environment for all sizes may be at any.
        level: confidence level of all statements of the campaign together.
        estimand: what of the runs a speedup is about.
        first: configurations to try before the search proposes its own.
        guards: operations to measure the winners on, so that they are known not to hurt there.
        messages: how many messages of each size (bytes) the user's programs send; sizes weigh
            alike where it is empty.
        time_limit_s: wall seconds a run may take; ``None`` takes it from the default's runs.
        shares_launches: whether runs of the search may follow each other in one launch, where the
            benchmark can.
        aggressor: traffic on purpose beside each run; ``None`` for none.
        looks_between: whether candidates are confirmed at sizes between the workload's, too; a
            recording has none.
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
    level: float = 0.95
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
        """What runs stand beside, for people; empty where nothing is there on purpose."""
        return formatting.describe_aggressor(self.aggressor) if self.aggressor else ""

    @property
    def emulated(self) -> str:
        """That nodes are emulated, for people; empty where they aren't. Never with ``beside``."""
        nodes = self.workload.emulated_nodes
        return formatting.describe_emulated(nodes) if nodes else ""

    def comparable(self, surroundings: Mapping[str, Any]) -> dict[str, Any]:
        """What must stay the same for results to be compared, as plain data.

        Budgets, seed, listed configurations and thresholds may change between two sessions.

        Args:
            surroundings: the machine, the MPI and the benchmark, from the adapters.
        """
        return {
            "space": {"name": self.space.name, "content": self.space.key},
            "workload": self.workload.plain(),
            "timing": self.timing.plain(),
            **({"aggressor": self.aggressor.plain()} if self.aggressor else {}),
            # Whoever saw one estimand must not turn to another one.
            **({} if self.estimand is Estimand.MEDIAN else {"estimand": str(self.estimand)}),
            **surroundings,
        }
