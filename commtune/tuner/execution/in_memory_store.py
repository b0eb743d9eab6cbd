"""A store in memory, for comparisons and simulations, of which nothing is kept."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from commtune.model import (
    BlockPlan,
    Configuration,
    Execution,
    Profile,
    Run,
    RunRequest,
    RunResult,
    Trial,
)
from commtune.model.conclusion import Conclusion, Decision


@dataclass
class InMemoryStore:
    """Implements ``tuner.ports.Store``, which says what each method does, for one campaign.

    Attributes:
        seed: of the order of runs; a new one unless a simulation gives one.
        stored: runs that ended, in the order they were stored.
        plans: blocks, in the order they were planned.
    """

    seed: str = field(default_factory=lambda: uuid.uuid4().hex)
    stored: list[Run] = field(default_factory=list)
    plans: list[BlockPlan] = field(default_factory=list)
    profiles: Sequence[Profile] = ()
    _trials: dict[Configuration, Trial] = field(default_factory=dict)
    _open: dict[str, tuple[RunRequest, str]] = field(default_factory=dict)
    _executions: dict[Configuration, Execution] = field(default_factory=dict)
    _decision: Decision | None = None

    def order_seed(self, campaign_id: int) -> str:
        return self.seed

    def add_trial(
        self, campaign_id: int, number: int, configuration: Configuration, origin: str
    ) -> None:
        self._trials.setdefault(configuration, Trial(number, configuration, origin))

    def trials(self, campaign_id: int) -> Sequence[Trial]:
        return sorted(self._trials.values(), key=lambda trial: trial.number)

    def start_runs(self, campaign_id: int, requests: Sequence[RunRequest], session: str) -> None:
        self._open |= {request.run_id: (request, session) for request in requests}

    def finish_run(self, campaign_id: int, result: RunResult, operation: str) -> None:
        if result.run_id in self._open:
            request, session = self._open.pop(result.run_id)
            self.stored.append(Run.from_result(request, result, session))

    def withdraw_run(self, campaign_id: int, run_id: str) -> None:
        self._open.pop(run_id, None)

    def open_runs(self, campaign_id: int) -> Sequence[RunRequest]:
        return [request for request, _ in self._open.values()]

    def runs(self, campaign_id: int) -> Sequence[Run]:
        return list(self.stored)

    def save_profiles(self, campaign_id: int, profiles: Sequence[Profile]) -> None:
        self.profiles = profiles

    def decide(self, campaign_id: int, decision: Decision) -> None:
        self._decision = decision

    def decision(self, campaign_id: int) -> Decision | None:
        return self._decision

    def plan_block(self, campaign_id: int, plan: BlockPlan) -> None:
        if plan not in self.plans:
            self.plans.append(plan)

    def blocks(self, campaign_id: int) -> Sequence[BlockPlan]:
        return sorted(self.plans, key=lambda plan: plan.number)

    def add_execution(self, campaign_id: int, execution: Execution) -> None:
        self._executions[execution.configuration] = execution

    def executions(self, campaign_id: int) -> Sequence[Execution]:
        return list(self._executions.values())

    def conclude(self, campaign_id: int, conclusion: Conclusion) -> None:
        """Does nothing: the campaign returns its conclusion as well."""
