"""The ablation phase: reduces candidates to the variables that their speedup needs.

It comes before the confirmation, so that what is confirmed is exactly what is recommended. Blocks
hold the default, the candidate, and the candidate without each of its variables; decided
variables leave the following blocks. The rest is then compared with the candidate in fresh
blocks, and dropped variables come back while too much is lost: each of two variables may be
needless only as long as the other is set. Compare Fawcett & Hoos (2016).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from commtune.model import DEFAULT, Configuration, Phase
from commtune.model.conclusion import Ablation
from commtune.tuner.ablation.blocks import AblationBlocks
from commtune.tuner.ablation.effects import (
    FEWEST,
    JUDGED_AFTER,
    Effects,
    Shortfall,
    VariableJudgement,
    describe_variable,
    describe_variables,
    error_bound,
    judge_variables,
    measure_shortfall,
)
from commtune.tuner.execution.session import Session
from commtune.tuner.statistics.blocks import complete_blocks

#: The most blocks that compare the smaller configuration.
_MOST_CHECKS = 12
#: The share of a candidate's time after which variables that are still unclear are dropped.
_LEAVING_SHARE = 0.6
#: The share of the rest of its time for other values of the variables left; and the configurations
#: in each round of that (successive halving), with the number of blocks by its end.
_REFINING_SHARE = 0.6
_ROUNDS = ((12, 2), (4, 4), (2, 8))
#: Runs of the search with a value after which that value isn't tried again.
_JUDGED_RUNS = 4
_TOO_SHORT = "too little time to check all variables"


class AblationPhase:
    """Reduces candidates within the budget, and continues what earlier sessions began."""

    def __init__(self, session: Session) -> None:
        self._runner = session.runner
        self._plan = session.plan
        self.blocks = AblationBlocks(session)
        #: The sizes (bytes) at which the gain of each configuration counts.
        self._sizes: dict[Configuration, frozenset[int]] = {}

    def run(
        self,
        candidates: Mapping[Configuration, Collection[int]],
        budget_s: float,
        since: int = 0,
    ) -> list[Ablation]:
        """Ablates each candidate.

        Args:
            candidates: with the sizes (bytes) at which the gain of each counts.
            budget_s: wall seconds.
            since: number of the first block that this budget pays for.
        """
        self._timer = timer = self.blocks.start_timer(budget_s, since)
        self._sizes = {candidate: frozenset(sizes) for candidate, sizes in candidates.items()}
        self._begin_together([*candidates])
        made: dict[Configuration, Ablation] = {}
        for number, candidate in enumerate(candidates):
            share_s = max(0.0, timer.left()) / (len(candidates) - number)
            made[candidate] = self._ablate_and_refine(candidate, timer.left() - share_s)
        # Time that is left over goes to those that had too little.
        for candidate in [one for one, found in made.items() if found.note == _TOO_SHORT]:
            if timer.left() > 0:
                made[candidate] = self._ablate_and_refine(candidate, 0.0)
        return self._merge_results(list(made.values()))

    def _begin_together(self, candidates: Sequence[Configuration]) -> None:
        """Makes the blocks of a first judgement with all candidates, which share the default.

        If these don't fit the budget, none: then the first candidates get what time there is.
        """
        units = {one: self._plan.space.parameter_units(one) for one in candidates}
        several = {one: parts for one, parts in units.items() if len(parts) > 1}
        arms = [*several, *(part for parts in several.values() for part in parts.values())]
        arms = [arm for arm in dict.fromkeys(arms) if not arm.is_default]
        due = JUDGED_AFTER[0] - complete_blocks(self.blocks.whole, arms)
        if arms and self.blocks.has_time_for(due, arms, 0.0):
            while due > 0 and self.blocks.make_block(arms, 0.0):
                due = JUDGED_AFTER[0] - complete_blocks(self.blocks.whole, arms)

    def _pass_sizes_on(self, source: Configuration, to: Configuration) -> None:
        """Adds the sizes of a configuration to those of one that was made from it."""
        self._sizes[to] = self._sizes.get(to, frozenset()) | self._sizes[source]

    def _ablate_and_refine(self, start: Configuration, until_s: float) -> Ablation:
        """Ablates, then tries other values of what is left; a better one is ablated in turn."""
        first = self._ablate(start, until_s)
        if first.after.is_default or first.note:
            return first
        again_s = (1 - _REFINING_SHARE) * max(0.0, self._timer.left() - until_s)
        better = self._try_values(first.after, until_s + again_s)
        if better == first.after:
            return first
        self._pass_sizes_on(start, better)
        again = self._ablate(better, until_s)
        return first if again.after.is_default else self._join_to_start(start, again)

    def _try_values(self, small: Configuration, until_s: float) -> Configuration:
        """Returns the configuration, or one with another value that is shown to be better.

        Candidates are the configurations that differ in one value, which the search met seldom or
        never. Each round keeps fewer of them, and runs more blocks.
        """
        others = self._plan.space.neighbour_configurations(small)
        field = [other for other in others if self._is_little_known(other, small)]
        tried = min(len(field), _ROUNDS[0][0])
        for most, wanted in _ROUNDS:
            field = sorted(field, key=lambda other: -self._lead(other, small, tried)[0])[:most]
            while True:
                field = [other for other in field if not self.blocks.fails(other)]
                made = [self.blocks.estimate_effects(small, other).blocks for other in field]
                is_done = not made or min(made) >= wanted
                if is_done or not self.blocks.make_block([small, *field], until_s):
                    break
        best = max(field, key=lambda other: self._lead(other, small, tried)[0], default=small)
        return best if self._lead(best, small, tried)[1] > 0 else small

    def _is_little_known(self, other: Configuration, small: Configuration) -> bool:
        """Whether the search has few runs with the value in which two configurations differ."""
        changed = other.items() - small.items()
        runs = self._runner.evidence.good(Phase.SEARCH)
        return sum(changed <= run.configuration.items() for run in runs) < _JUDGED_RUNS

    def _lead(self, other: Configuration, small: Configuration, of: int) -> tuple[float, float]:
        """Returns the mean lead over another at the sizes with a gain, and its lower bound.

        Args:
            of: the number of configurations that it is the best of.
        """
        found = self.blocks.estimate_effects(small, other)
        parts = [found[size] for size in self._gain_sizes(small) if size in found]
        mean = fmean(e.mean for e in parts) if parts else 0.0
        if not parts or found.blocks < FEWEST:
            return mean, 0.0
        return mean, mean - max(error_bound(e, of) for e in parts)

    def _merge_results(self, found: list[Ablation]) -> list[Ablation]:
        """Replaces results by smaller ones among them where further variables bring nothing."""
        merged = []
        for ablation in found:
            smaller = [
                other.after
                for other in found
                if other.after.items() < ablation.after.items() and other.after
            ]
            for small in sorted(smaller, key=len):
                lost = self._shortfall(ablation.after, small)
                if lost is not None and not lost.is_too_much:
                    ablation = self._take_smaller(ablation, small, lost)
                    break
            merged.append(ablation)
        return merged

    def _take_smaller(self, ablation: Ablation, small: Configuration, lost: Shortfall) -> Ablation:
        left = self._plan.space.parameter_units(small)
        effects = [
            effect if effect.name in left else replace(effect, kept=False)
            for effect in ablation.variables
        ]
        return replace(ablation, after=small, variables=tuple(effects), gain_kept=lost.kept)

    def _is_clear(self, candidate: Configuration, small: Configuration) -> bool:
        if (
            self._shows_no_gain(candidate)
            or self.blocks.fails(candidate)
            or self.blocks.fails(small)
        ):
            return True
        found = self._shortfall(candidate, small)
        return found is not None and (
            found.is_fine or found.is_too_much or found.blocks >= _MOST_CHECKS
        )

    def _join_to_start(self, candidate: Configuration, ablation: Ablation) -> Ablation:
        """Describes the ablation of a configuration with another value as one of its candidate."""
        found = self._shortfall(candidate, ablation.after) or self._shortfall(
            candidate, ablation.before
        )
        known = {effect.name for effect in ablation.variables}
        dropped = [
            describe_variable(self._plan.space, candidate, name)
            for name in self._plan.space.parameter_units(candidate)
            if name not in known
        ]
        return replace(
            ablation,
            before=candidate,
            gain_kept=found.kept if found else None,
            variables=(*ablation.variables, *dropped),
        )

    def _gain_sizes(self, large: Configuration) -> tuple[int, ...]:
        """Lists those sizes (bytes) of a configuration with a gain so far, or its best one."""
        return self._gain(large).gain_sizes(self._plan.minimum_gain)

    def _shows_no_gain(self, candidate: Configuration) -> bool:
        return self._gain(candidate).shows_no_gain(self._plan.minimum_gain)

    def _gain(self, configuration: Configuration) -> Effects:
        found, sizes = (
            self.blocks.estimate_effects(DEFAULT, configuration),
            self._sizes[configuration],
        )
        return Effects({size: one for size, one in found.items() if size in sizes})

    def _shortfall(self, large: Configuration, small: Configuration) -> Shortfall | None:
        lost, gain = (
            self.blocks.estimate_effects(small, large),
            self.blocks.estimate_effects(DEFAULT, large),
        )
        return measure_shortfall(lost, gain, self._gain_sizes(large))

    def _ablate(self, candidate: Configuration, until_s: float) -> Ablation:
        """Ablates one configuration.

        Args:
            until_s: seconds of the budget that have to be left at the end.
        """
        lacking = self._plan.space.parameter_units(candidate)
        leaving_s = until_s + (1 - _LEAVING_SHARE) * (self._timer.left() - until_s)
        if self._shows_no_gain(candidate):
            return self._result(candidate, DEFAULT, None, "fresh runs showed no gain")
        if len(lacking) < 2:
            return self._result(candidate, candidate, None, "")
        judgement = self._leave_out(candidate, lacking, leaving_s)
        if self._shows_no_gain(candidate):
            return self._result(candidate, DEFAULT, None, "fresh runs showed no gain")
        if judgement is None:
            return self._result(candidate, candidate, None, _TOO_SHORT)
        return self._check(candidate, lacking, judgement, until_s)

    def _leave_out(
        self, candidate: Configuration, lacking: dict[str, Configuration], until_s: float
    ) -> VariableJudgement | None:
        """Makes blocks without each variable until all are clear; ``None`` if time is short."""
        variants = dict(lacking) if len(lacking) > 1 else {}
        judgement = None
        due: float = JUDGED_AFTER[0]
        for _ in range(JUDGED_AFTER[-1] + 1):
            # The blocks of earlier sessions count as well.
            made = max(
                self.blocks.estimate_effects(other, candidate).blocks for other in lacking.values()
            )
            if made >= due:
                judgement = self._judge_variables(candidate, lacking)
                variants = {name: lacking[name] for name in judgement.unclear}
                if not variants or self._shows_no_gain(candidate):
                    return judgement
                due = next((number for number in JUDGED_AFTER if number > made), math.inf)
            arms = [candidate, *dict.fromkeys(variants.values())]
            if due == math.inf or not self.blocks.make_block(arms, until_s):
                return judgement
        return judgement

    def _judge_variables(
        self, candidate: Configuration, lacking: dict[str, Configuration]
    ) -> VariableJudgement:
        """Classifies the variables; one without which every run fails is needed."""
        vital = {name for name, other in lacking.items() if self.blocks.fails(other)}
        rest = lacking.keys() - vital
        lost = {
            name: self.blocks.estimate_effects(lacking[name], candidate)
            for name in lacking
            if name in rest
        }
        sizes = [
            size for size in self._gain_sizes(candidate) if all(size in e for e in lost.values())
        ]
        judgement = judge_variables(lost, self.blocks.estimate_effects(DEFAULT, candidate), sizes)
        return replace(judgement, needed=judgement.needed | vital)

    def _check(
        self,
        candidate: Configuration,
        lacking: dict[str, Configuration],
        judgement: VariableJudgement,
        until_s: float,
    ) -> Ablation:
        """Compares what is left with the candidate; variables come back while too much is lost."""
        idle = self._sort_by_loss(candidate, lacking, judgement)
        keep = [name for name in lacking if name in judgement.needed] or [idle.pop()]
        while True:
            out = [name for name in lacking if name not in keep]
            if not out:
                return self._result(candidate, candidate, None, "")
            small = self._plan.space.without_parameters(candidate, out)
            if small is None:  # not legal without them, so the next best comes back
                keep.append(idle.pop())
                continue
            lost = self._compare(candidate, small, until_s)
            if lost is None:
                small = self._drop_by_estimates(candidate, lacking)
                return self._result(candidate, small, None, _TOO_SHORT)
            if not lost.is_too_much or not idle:
                return self._result(candidate, small, lost.kept, "")
            keep.append(idle.pop())

    def _drop_by_estimates(
        self, candidate: Configuration, lacking: dict[str, Configuration]
    ) -> Configuration:
        """Drops variables that gain less than a standard error, where no time is left for blocks.

        The confirmation shows what the rest is worth.
        """
        lost = {name: self._shortfall(candidate, other) for name, other in lacking.items()}
        out = [
            name
            for name, one in lost.items()
            if one is not None and one.lost < one.error and not one.is_too_much
        ]
        return self._plan.space.without_parameters(candidate, out) or candidate

    def _sort_by_loss(
        self,
        candidate: Configuration,
        lacking: dict[str, Configuration],
        judgement: VariableJudgement,
    ) -> list[str]:
        """Sorts variables not shown to be needed by what their absence costs, most last."""

        def loss(name: str) -> float:
            found, sizes = (
                self.blocks.estimate_effects(lacking[name], candidate),
                self._sizes[candidate],
            )
            return max((e.mean for size, e in found.items() if size in sizes), default=0.0)

        return sorted(lacking.keys() - judgement.needed, key=lambda name: (loss(name), name))

    def _compare(
        self, candidate: Configuration, small: Configuration, until_s: float
    ) -> Shortfall | None:
        """Makes blocks of the candidate, the smaller one, and, if that fits, its parts."""
        parts = self._plan.space.parameter_units(small)
        arms = [candidate, small, *(parts.values() if len(parts) > 1 else ())]
        arms = [arm for arm in dict.fromkeys(arms) if not arm.is_default]
        if not self.blocks.has_time_for(FEWEST, arms, until_s):
            arms = [candidate, small]
        while not self._is_clear(candidate, small) and self.blocks.make_block(arms, until_s):
            pass
        return self._shortfall(candidate, small)

    def _result(
        self, before: Configuration, after: Configuration, kept: float | None, note: str
    ) -> Ablation:
        self._pass_sizes_on(before, after)
        speeds = self._runner.evidence.speeds()
        found = describe_variables(self._plan.space, self.blocks.whole, before, after, speeds)
        made = sum(before in block for block in self.blocks.whole)
        return Ablation(before, after, made, kept, found, note)
