"""The confirmation of a campaign: what was decided, the blocks it takes, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from commtune.model import Configuration, Operation, Outcome, Phase, PointEvidence, Profile
from commtune.tuner.confirm import (
    GUARD_BLOCKS,
    MOST_EXTENSION,
    Comparison,
    Decision,
    block_order,
    compare,
    complete_blocks,
    lacks_pairs,
    planned_blocks,
)
from commtune.tuner.evidence import RunView
from commtune.tuner.profiles import recommend
from commtune.tuner.session import Session


class ConfirmationPhase:
    """Confirms candidates in fresh blocks, from wherever earlier sessions got to."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._plan = session.plan
        self._runner = session.runner

    def stored_decision(self) -> Decision | None:
        """What an earlier session decided, if that is still to be followed.

        A confirmation that was interrupted goes on with the same question, and a finished campaign
        has nothing left to do; with another budget, or something to try first that is new, there
        is more to search, and then a new decision with fresh blocks.
        """
        stored = self._runner.store.decision(self._runner.campaign_id)
        news = any(configuration not in self._runner.trials for configuration in self._plan.first)
        if not stored or news or stored.get("budget") != asdict(self._plan.budget):
            return None
        return Decision.from_plain(stored)

    def decide(self, candidates: tuple[Configuration, ...]) -> Decision:
        """Settles candidates and number of blocks, and stores that before the first block runs."""
        budget_s = self._plan.budget.confirmation_s
        block_s = self._typical_s() * (len(candidates) + 1)
        decision = Decision(
            candidates=candidates,
            blocks=planned_blocks(budget_s, block_s) if candidates else 0,
            first_block=self._runner.blocks,
            budget_s=budget_s,
        )
        plain = {**decision.plain(), "budget": asdict(self._plan.budget)}
        self._runner.store.decide(self._runner.campaign_id, plain)
        if decision.blocks * block_s > 1.2 * budget_s:
            self._session.reporter.say(
                f"to say anything, confirmation needs {decision.blocks} blocks of "
                f"{len(candidates) + 1} runs: about {decision.blocks * block_s:.0f} s, "
                f"not {budget_s:g} s"
            )
        return decision

    def _typical_s(self) -> float:
        walls = sorted(r.wall_s for r in self._runner.evidence.good(Phase.SEARCH))
        return walls[len(walls) // 2] if walls else 1.0

    def confirm(self, decision: Decision) -> Comparison:
        operation = self._plan.workload.operation
        self._blocks(decision, decision.candidates, Phase.CONFIRM, operation, decision.blocks)
        return self._compare(decision, decision.candidates, Phase.CONFIRM, operation)

    def _blocks(
        self,
        decision: Decision,
        candidates: Sequence[Configuration],
        phase: Phase,
        operation: Operation,
        blocks: int,
    ) -> None:
        """Makes the blocks that are still to be made, each whole."""
        timer = self._session.timer(decision.budget_s, phase)
        while blocks and self._wants_block(decision, candidates, phase, operation, blocks):
            block = self._runner.new_block()
            order = block_order(candidates, self._plan.seed, block)
            for position, configuration in enumerate(order):
                self._session.run(configuration, phase, block, timer, position, operation)

    def _wants_block(
        self,
        decision: Decision,
        candidates: Sequence[Configuration],
        phase: Phase,
        operation: Operation,
        blocks: int,
    ) -> bool:
        """Whether a block is due: the planned ones, then more for a speed that lacks pairs."""
        runs = self._runs_since(decision, phase, operation)
        made = complete_blocks(runs, candidates)
        if made < blocks:
            return True
        speeds = self._runner.evidence.speeds()
        return made < MOST_EXTENSION * blocks and lacks_pairs(_good(runs), candidates, speeds)

    def _runs_since(self, decision: Decision, phase: Phase, operation: Operation) -> list[RunView]:
        return [
            run
            for run in self._runner.evidence.runs
            if run.phase is phase
            and run.operation == operation
            and run.block >= decision.first_block
            and run.outcome is not Outcome.INTERRUPTED  # such a block is to be made again
        ]

    def _compare(
        self,
        decision: Decision,
        candidates: Sequence[Configuration],
        phase: Phase,
        operation: Operation,
    ) -> Comparison:
        return compare(
            self._runs_since(decision, phase, operation),
            candidates,
            str(operation),
            self._runner.evidence.speeds(),
            level=self._plan.level,
            minimum_gain=self._plan.minimum_gain,
        )

    def profiles(self, comparison: Comparison, decision: Decision) -> list[Profile]:
        simulated = self._runner.benchmark.simulated
        found = recommend(self._plan, comparison, {}, simulated=simulated)
        changed = [p.configuration for p in found if not p.configuration.is_default]
        if not changed or not self._plan.guards:
            return found
        guards = self._guard(decision, list(dict.fromkeys(changed)))
        return recommend(self._plan, comparison, guards, simulated=simulated)

    def _guard(
        self, decision: Decision, recommended: list[Configuration]
    ) -> dict[Configuration, tuple[PointEvidence, ...]]:
        """Other operations under the recommended configurations, against the default."""
        found: dict[Configuration, tuple[PointEvidence, ...]] = {}
        for operation in self._plan.guards:
            self._blocks(decision, recommended, Phase.GUARD, operation, GUARD_BLOCKS)
            comparison = self._compare(decision, recommended, Phase.GUARD, operation)
            for configuration, points in comparison.points.items():
                found[configuration] = found.get(configuration, ()) + points
        return found


def _good(runs: Sequence[RunView]) -> list[RunView]:
    return [run for run in runs if run.outcome is Outcome.OK]
