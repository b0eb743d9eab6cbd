"""The confirmation phase: decides on candidates, makes fresh blocks, and looks at them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from statistics import median_high

from commtune.campaign.plan import Plan
from commtune.model import (
    FEWEST_BLOCKS,
    Configuration,
    Operation,
    Phase,
    PointEvidence,
    Workload,
)
from commtune.model.conclusion import CONFIRMATION_SHARES, Ablation, Decision, Look, error_share
from commtune.tuner.confirmation.comparison import (
    Compared,
    Comparison,
    Rules,
    compare_candidate,
)
from commtune.tuner.execution.dispatch import Dispatch
from commtune.tuner.execution.session import Session, Timer
from commtune.tuner.statistics.blocks import (
    complete_blocks,
    lacks_pairs,
    planned_blocks,
)

#: For a machine state that lacks pairs, up to this many times the planned blocks are made, and the
#: budget may be overdrawn by this share.
_MOST_EXTENSION, _OVERDRAFT = 2, 0.2
#: Blocks of each guard operation; few, as they have to show no harm, not the size of a gain.
_GUARD_BLOCKS = 10


class ConfirmationPhase:
    """Confirms candidates in fresh blocks, and continues what earlier sessions began."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._plan = session.plan
        self._runner = session.runner

    def stored_decision(self) -> Decision | None:
        """Returns the decision of an earlier session if it still holds.

        It doesn't hold with another budget, or with a new configuration to try first: then there
        is more to search, and a new decision with fresh blocks follows.
        """
        stored = self._last_decision()
        news = any(configuration not in self._runner.trials for configuration in self._plan.first)
        return stored if stored and not news and stored.budget == self._budget else None

    @property
    def _budget(self) -> dict[str, float]:
        given = asdict(self._plan.budget)
        return {name: limit for name, limit in given.items() if limit is not None}

    def _last_decision(self) -> Decision | None:
        return self._runner.store.decision(self._runner.campaign_id)

    def decide(
        self,
        candidates: Mapping[Configuration, tuple[int, ...]],
        budget_s: float,
        ablations: Sequence[Ablation] = (),
        between_s: float = 0.0,
    ) -> Decision:
        """Decides on candidates and number of blocks; stores that before the first block runs.

        Args:
            candidates: with the sizes (bytes) at which each is confirmed.
            budget_s: wall seconds.
            between_s: seconds that sizes which the search did not measure add to each run.
        """
        block_s = (self.typical_s() + between_s) * (len(candidates) + 1)
        number = self._count_earlier()
        if number:
            self._session.reporter.say(
                f"this is confirmation number {number + 1} of the campaign: it may spend "
                f"{error_share(number):.1%} of the error rate, so its intervals are wider"
            )
        decision = Decision(
            candidates=tuple(candidates),
            blocks=planned_blocks(budget_s, block_s) if candidates else 0,
            first_block=self._runner.blocks,
            budget_s=budget_s,
            number=number,
            error_share=error_share(number),
            budget=self._budget,
            ablations=tuple(ablations),
            sizes=tuple(candidates.values()),
            look_shares=CONFIRMATION_SHARES,
            session_spread=self._plan.session_spread,
        )
        self._store_decision(decision)
        if decision.blocks * block_s > 1.2 * budget_s:
            self._session.reporter.say(
                f"confirmation needs at least {decision.blocks} blocks of "
                f"{len(candidates) + 1} runs: about {decision.blocks * block_s:.0f} s, "
                f"not {budget_s:.0f} s"
            )
        return decision

    def _count_earlier(self) -> int:
        """Counts earlier confirmations with at least one look."""
        before = self._last_decision()
        return before.number + bool(before.looks) if before else 0

    def last_block(self) -> int:
        """Returns the first block of the last stored decision; earlier ones aren't used again."""
        before = self._last_decision()
        return before.first_block if before else 0

    def _store_decision(self, decision: Decision) -> None:
        self._runner.store.decide(self._runner.campaign_id, decision)

    def typical_s(self) -> float:
        """Estimates the seconds of the budget that a run takes, from the median run.

        Of the confirmation, if it has made some: runs of the search may share a launch.
        """
        own, searched = (
            [run.wall_s for run in self._runner.evidence.good(phase)]
            for phase in (Phase.CONFIRM, Phase.SEARCH)
        )
        found_s = self._runner.cost() * median_high(own or searched or [0.0])
        return found_s or 1.0  # nothing is known yet, or runs of a recording take no time

    def confirm(self, decision: Decision) -> tuple[Comparison, Decision]:
        """Makes the remaining blocks, look by look; returns the comparison and all looks."""
        timer = Timer(self._runner, decision.budget_s, Phase.CONFIRM, decision.first_block)
        runs = decision.blocks * (len(decision.candidates) + 1)
        timer.shown_s = max(timer.budget_s, runs * self.typical_s())
        workload = self.measured(decision).workload
        while len(decision.looks) < len(decision.shares) and decision.open():
            look = len(decision.looks)
            planned = decision.looks[-1].planned if decision.looks else decision.blocks
            due = math.ceil(decision.times[look] * planned)
            last = look == len(decision.shares) - 1
            self._make_blocks(
                decision, decision.open(), Phase.CONFIRM, workload, due, timer, last=last
            )
            decision = decision.after(self._take_look(decision, planned, timer, last=last))
            self._store_decision(decision)
        return self.comparison(decision), decision

    def _make_blocks(
        self,
        decision: Decision,
        candidates: Sequence[Configuration],
        phase: Phase,
        workload: Workload,
        due: int,
        timer: Timer,
        *,
        last: bool,
    ) -> None:
        """Makes blocks until enough are complete; at the end also for a state that lacks pairs.

        Args:
            workload: what each run measures; the operation with the fewest blocks counts.
            due: complete blocks that are needed.
        """
        first, runner = decision.first_block, self._runner

        def next_block() -> Sequence[Configuration] | None:
            of_each = [
                self._session.blocks_since(first, phase, operation)
                for operation in workload.operations
            ]
            blocks = min(of_each, key=lambda some: complete_blocks(some, candidates))
            made = complete_blocks(blocks, candidates)
            under_way = runner.batches.in_flight
            if runner.left_s() <= 0:
                return None
            if made + under_way >= due and not (
                last
                and not under_way
                and made < _MOST_EXTENSION * due
                and timer.left() > -_OVERDRAFT * timer.budget_s
                and lacks_pairs(blocks, candidates, runner.evidence.speeds())
            ):
                return None
            return self._session.order_block(candidates)

        if candidates:
            Dispatch(self._session, next_block, phase, timer, workload=workload).run()

    def _take_look(self, decision: Decision, planned: int, timer: Timer, *, last: bool) -> Look:
        """Looks at the blocks: stops candidates, and plans the blocks of the others."""
        operation = self._plan.workload.operation
        blocks = self._session.blocks_since(decision.first_block, Phase.CONFIRM)
        still = decision.open()
        made = complete_blocks(blocks, still)
        rules = Rules.of(self._plan, decision, len(decision.looks))
        final = Rules.of(self._plan, decision, len(decision.shares) - 1)
        speeds = self._runner.evidence.speeds(anew=True)
        sizes = {c: decision.sizes_of(c, self._plan.workload.sizes) for c in still}
        found = {
            c: compare_candidate(blocks, c, str(operation), speeds, rules, sizes[c]) for c in still
        }
        stopped: dict[int, str] = {}
        # First those that are decided, since their runs may save another from futility. Then from
        # the last candidate on: the first promises most, so it is the one that stays at the end.
        for only_settled in (True, False):
            for candidate, one in reversed(found.items()):
                mine, end = sizes[candidate], made if last else planned
                is_alone = len(stopped) == len(still) - 1
                why = one.stop_reason(mine, final, made, end, is_alone=is_alone)
                if why and (not only_settled or one.is_settled(mine)):
                    stopped[decision.candidates.index(candidate)] = why
                    self._session.add_confirmed(one.points)
            if not last:
                planned = self._replan_blocks(planned, made, len(still) - len(stopped), timer)
        return Look(made, planned, stopped)

    def _replan_blocks(self, planned: int, made: int, going_on: int, timer: Timer) -> int:
        """Returns the planned blocks, or what the time that is left allows by what runs take now.

        That is more if candidates stopped, and less if runs take longer than those of the search.
        """
        if not going_on:
            return planned
        further = max(0.0, timer.left()) / (self.typical_s() * (going_on + 1))
        most = max(FEWEST_BLOCKS, made + math.ceil(further))
        return max(made + int(further), min(planned, most))

    def measured(self, decision: Decision) -> Plan:
        """Returns the plan with all sizes that a decision's blocks measure."""
        workload = self._plan.workload
        sizes = decision.with_between(workload.sizes)
        return replace(self._plan, workload=replace(workload, sizes=sizes))

    def comparison(self, decision: Decision) -> Comparison:
        """Compares all candidates, each with the rules of the look that stopped it."""
        operation = self._plan.workload.operation
        found: dict[Configuration, Compared] = {}
        blocks = self._session.blocks_since(decision.first_block, Phase.CONFIRM)
        speeds = self._runner.evidence.speeds(anew=True)
        for place, candidate in enumerate(decision.candidates):
            look, why = decision.stop_of(place) or (len(decision.shares) - 1, "budget")
            rules = Rules.of(self._plan, decision, look)
            sizes = decision.sizes_of(candidate, self._plan.workload.sizes)
            compared = compare_candidate(blocks, candidate, str(operation), speeds, rules, sizes)
            found[candidate] = replace(compared, stopped=why)
        return found

    def guard(
        self, decision: Decision, recommended: Sequence[Configuration]
    ) -> dict[Configuration, tuple[PointEvidence, ...]]:
        """Compares guard operations under the recommended configurations with the default."""
        found: dict[Configuration, tuple[PointEvidence, ...]] = {}
        if not recommended:
            return found
        timer = Timer(self._runner, decision.budget_s, Phase.GUARD, decision.first_block)
        for workload in self._launches(decision, recommended):
            self._make_blocks(
                decision, recommended, Phase.GUARD, workload, _GUARD_BLOCKS, timer, last=False
            )
        comparisons = len(recommended) * len(self._plan.workload.sizes)
        rules = replace(Rules.of(self._plan, decision, 0), comparisons=comparisons, share=1.0)
        for operation in self._plan.guards:
            blocks = self._session.blocks_since(decision.first_block, Phase.GUARD, operation)
            speeds = self._runner.evidence.speeds(anew=True)
            for configuration in recommended:
                one = compare_candidate(blocks, configuration, str(operation), speeds, rules)
                found[configuration] = found.get(configuration, ()) + one.points
        return found

    def _launches(
        self, decision: Decision, recommended: Sequence[Configuration]
    ) -> list[Workload]:
        """Lists workloads for guards that lack blocks: one for all where the benchmark can."""
        first, phase = decision.first_block, Phase.GUARD
        made = {
            guard: complete_blocks(self._session.blocks_since(first, phase, guard), recommended)
            for guard in self._plan.guards
        }
        lacking = [guard for guard in self._plan.guards if made[guard] < _GUARD_BLOCKS]
        tuned = self._plan.workload
        if not tuned.takes_several:
            return [replace(tuned, operation=guard) for guard in lacking]
        # A stream has an option of its own: the benchmark takes it as the first one only.
        lacking.sort(key=lambda guard: guard is not Operation.STREAM)
        return [replace(tuned, operation=lacking[0], then=tuple(lacking[1:]))] if lacking else []
