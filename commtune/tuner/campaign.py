"""The way of a campaign: search, finalists, confirmation, guards, profiles."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from commtune.model import (
    DEFAULT,
    Configuration,
    Operation,
    Outcome,
    Phase,
    PointEvidence,
    Profile,
)
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
from commtune.tuner.plan import Plan
from commtune.tuner.ports import Progress, Reporter
from commtune.tuner.profiles import recommend
from commtune.tuner.runner import Runner
from commtune.tuner.scoring import Scoreboard, split_ranges
from commtune.tuner.search import Item, Origin, Proposal, Search
from commtune.tuner.speeds import Speeds

#: The default runs once in every block of this many search runs, at a random place.
_SEARCH_BLOCK = 8
_FIRST_DEFAULTS = 4
#: The last part of the search goes to repeating the best, since one run is easily lucky.
_FINALISTS_SHARE = 0.2
_FINALISTS, _FINALIST_RUNS = 4, 4
#: Each candidate costs a run in every block, and every comparison widens all intervals.
_MOST_CANDIDATES = 3
#: Scores are worked out anew when this share of new runs has come in.
_REFRESH_SHARE = 0.2


@dataclass(frozen=True)
class Report:
    """What a campaign came to.

    Attributes:
        speeds: machine speeds seen.
        benchmark_s, wall_s: seconds inside benchmark processes, and altogether, this session.
        set_aside: variable and value pairs that failed and were left out.
        oversubscribed: more ranks than cores; then no profile is made.
    """

    profiles: tuple[Profile, ...]
    comparison: Comparison
    speeds: Speeds
    trials: int
    runs: int
    benchmark_s: float
    wall_s: float
    set_aside: tuple[tuple[str, str | None], ...] = ()
    oversubscribed: bool = False


@dataclass
class Campaign:
    """One campaign in progress."""

    plan: Plan
    runner: Runner
    reporter: Reporter
    _best_gain: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.ranges = split_ranges(self.plan.workload.sizes)
        self.board = Scoreboard(self.ranges)

    def run(self) -> Report:
        """Goes on from wherever the campaign stands, to its end."""
        clock = self.runner.clock
        started = clock()
        self.runner.recover()
        self.runner.load()
        self.runner.new_trial(DEFAULT, Origin.BASELINE)
        decision = self._stored_decision()
        if decision is None:
            self._search()
            decision = self._decide()
        else:
            self._take_up_search()
        comparison = self._confirm(decision)
        oversubscribed = self._is_oversubscribed()
        profiles = [] if oversubscribed else self._profiles(comparison, decision)
        self.runner.store.save_profiles(self.runner.campaign_id, profiles)
        return Report(
            profiles=tuple(profiles),
            comparison=comparison,
            speeds=self.runner.evidence.speeds(),
            trials=len(self.runner.trials),
            runs=len(self.runner.evidence.runs),
            benchmark_s=self.runner.benchmark_s,
            wall_s=clock() - started,
            set_aside=tuple(sorted(self.search.failures.aside, key=str)),
            oversubscribed=oversubscribed,
        )

    # Search ---------------------------------------------------------------------------------

    def _search(self) -> None:
        """Spends what is left of the search's budget."""
        budget_s = self.plan.budget.search_s
        timer = _Timer(self.runner, budget_s, Phase.SEARCH)
        self._first_defaults(timer)
        self._take_up_search()
        if self._is_oversubscribed():
            self.reporter.say(
                "more ranks than cores: no profile can come of it, so this ends here"
            )
            return
        repeat = [c for c in self.runner.unmeasured() if not c.is_default]
        while timer.left() > _FINALISTS_SHARE * budget_s and (repeat or self._trials_left()):
            if not self._search_block(timer, repeat):
                break
        self._repeat_finalists(timer)

    def _is_oversubscribed(self) -> bool:
        return any(run.oversubscribed for run in self.runner.evidence.runs)

    def _take_up_search(self) -> None:
        """Makes the search, knowing what was measured so far."""
        self.search = self._new_search()
        self._replay_into_search()

    def _first_defaults(self, timer: _Timer) -> None:
        """The first run of a session finds cold caches; the median of four is past that."""
        runs = [r for r in self.runner.evidence.good(Phase.SEARCH) if r.configuration.is_default]
        for _ in range(_FIRST_DEFAULTS - len(runs)):
            run = self._run(DEFAULT, Phase.SEARCH, self.runner.new_block(), timer)
            if run.oversubscribed:  # ranks that spin while they wait can take half a minute
                return

    def _new_search(self) -> Search:
        return Search(
            self.plan.space,
            self.ranges,
            # A resumed campaign must not propose the same random numbers again.
            seed=self.plan.seed * 1_000_003 + len(self.runner.trials),
            first=self.plan.first,
            enumerate_all=self._fits(),
        )

    def _fits(self) -> bool:
        """Whether the whole space can be tried within the budget."""
        count = self.plan.space.count()
        if self.plan.budget.trials is not None and count > self.plan.budget.trials:
            return False
        runs = list(self.runner.evidence.good(Phase.SEARCH))
        a_run_s = math.fsum(r.wall_s for r in runs) / max(1, len(runs))
        budget_s = (1 - _FINALISTS_SHARE) * self.plan.budget.search_s
        return count * a_run_s * (1 + 1 / _SEARCH_BLOCK) <= budget_s

    def _replay_into_search(self) -> None:
        """Rebuilds what the search knows from what the store holds."""
        for configuration in self.runner.trials:
            self.search.remember(configuration)
        for run in self.runner.evidence.runs:
            # The default's runs prove that leaving each variable unset works.
            if run.outcome is Outcome.OK:
                self.search.worked(run.configuration)
            elif run.outcome.blames_configuration and not run.configuration.is_default:
                self.search.tell_failed(run.configuration)
        self._refresh()

    def _refresh(self) -> None:
        self.board.rebuild(self.runner.evidence)
        self.search.rebuild(self.board)
        self._refreshed_at = len(self.runner.evidence.runs)

    def _trials_left(self) -> bool:
        limit = self.plan.budget.trials
        return limit is None or len(self.runner.trials) - 1 < limit

    def _search_block(self, timer: _Timer, repeat: list[Configuration]) -> bool:
        """A block of the search: new configurations with the default at a random place."""
        block = self.runner.new_block()
        place = random.Random(f"{self.plan.seed}:{block}").randrange(_SEARCH_BLOCK)
        for position in range(_SEARCH_BLOCK):
            if position == place:
                self._run(DEFAULT, Phase.SEARCH, block, timer, position)
                continue
            if timer.left() <= 0 or not (repeat or self._trials_left()):
                return False
            if repeat:
                configuration = repeat.pop()
            else:
                proposal = self.search.ask()
                if proposal is None:
                    return False
                configuration = self._trial(proposal)
            self._tell(self._run(configuration, Phase.SEARCH, block, timer, position))
        return True

    def _trial(self, proposal: Proposal) -> Configuration:
        self.runner.new_trial(proposal.configuration, proposal.origin, proposal.label)
        return proposal.configuration

    def _tell(self, run: RunView) -> None:
        """Tells the search of a run, and the user of values that leave it or come back."""
        configuration = run.configuration
        if run.outcome.blames_configuration:
            for item in sorted(self.search.tell_failed(configuration), key=str):
                self.reporter.say(
                    f"setting aside {_shown(item)}: failed twice ({run.outcome}), never worked"
                )
            return
        for item in sorted(self.search.tell(configuration, self.board.add(run)), key=str):
            self.reporter.say(f"{_shown(item)} works by itself: back in the search")
        self._best_gain = max(self._best_gain, self.board.best_gain(run))
        grown = len(self.runner.evidence.runs) - self._refreshed_at
        if grown > max(2 * _SEARCH_BLOCK, _REFRESH_SHARE * self._refreshed_at):
            self._refresh()

    def _repeat_finalists(self, timer: _Timer) -> None:
        """Repeats the best of each range, so that confirmation gets the good, not the lucky."""
        for _ in range(_FINALIST_RUNS - 1):
            self.board.rebuild(self.runner.evidence)
            finalists = self._finalists(_FINALISTS)
            block = self.runner.new_block()
            order = block_order(finalists, self.plan.seed, block)
            for position, configuration in enumerate(order):
                if timer.left() <= 0:
                    return
                self._run(configuration, Phase.SEARCH, block, timer, position)

    def _winners(self) -> list[Configuration]:
        """The best of each range over all speeds, then at each speed; few, so as to have power.

        Only configurations with several runs count: of many single runs the best is a lucky one.
        """
        labels = [size_range.label for size_range in self.ranges]
        found = [c for label in labels for c in self.board.best(label, 1, fewest_runs=2)]
        for speed in self.board.speeds.names:
            for label in reversed(labels):
                found += self.board.best_at(label, speed, fewest_runs=2)
        return list(dict.fromkeys(found or self._finalists(1)))[:_MOST_CANDIDATES]

    def _finalists(self, count: int) -> list[Configuration]:
        found = [c for r in self.ranges for c in self.board.best(r.label, count)]
        return list(dict.fromkeys(found))

    # Confirmation ---------------------------------------------------------------------------

    def _stored_decision(self) -> Decision | None:
        """What an earlier session decided, if that is still to be followed.

        A confirmation that was interrupted goes on with the same question, and a finished campaign
        has nothing left to do; with another budget, or something to try first that is new, there
        is more to search, and then a new decision with fresh blocks.
        """
        stored = self.runner.store.decision(self.runner.campaign_id)
        news = any(configuration not in self.runner.trials for configuration in self.plan.first)
        if not stored or news or stored.get("budget") != asdict(self.plan.budget):
            return None
        return Decision.from_plain(stored)

    def _decide(self) -> Decision:
        """Chooses the few candidates and the number of blocks, and stores that before any runs."""
        budget_s = self.plan.budget.confirmation_s
        self.board.rebuild(self.runner.evidence)
        candidates = tuple(self._winners())
        block_s = self._typical_s() * (len(candidates) + 1)
        decision = Decision(
            candidates=candidates,
            blocks=planned_blocks(budget_s, block_s) if candidates else 0,
            first_block=self.runner.blocks,
            budget_s=budget_s,
        )
        plain = {**decision.plain(), "budget": asdict(self.plan.budget)}
        self.runner.store.decide(self.runner.campaign_id, plain)
        if decision.blocks * block_s > 1.2 * budget_s:
            self.reporter.say(
                f"to say anything, confirmation needs {decision.blocks} blocks of "
                f"{len(candidates) + 1} runs: about {decision.blocks * block_s:.0f} s, "
                f"not {budget_s:g} s"
            )
        return decision

    def _typical_s(self) -> float:
        walls = sorted(r.wall_s for r in self.runner.evidence.good(Phase.SEARCH))
        return walls[len(walls) // 2] if walls else 1.0

    def _confirm(self, decision: Decision) -> Comparison:
        operation = self.plan.workload.operation
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
        timer = _Timer(self.runner, decision.budget_s, phase)
        while blocks and self._wants_block(decision, candidates, phase, operation, blocks):
            block = self.runner.new_block()
            order = block_order(candidates, self.plan.seed, block)
            for position, configuration in enumerate(order):
                self._run(configuration, phase, block, timer, position, operation)

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
        speeds = self.runner.evidence.speeds()
        return made < MOST_EXTENSION * blocks and lacks_pairs(_good(runs), candidates, speeds)

    def _runs_since(self, decision: Decision, phase: Phase, operation: Operation) -> list[RunView]:
        return [
            run
            for run in self.runner.evidence.runs
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
            self.runner.evidence.speeds(),
            level=self.plan.level,
            minimum_gain=self.plan.minimum_gain,
        )

    def _profiles(self, comparison: Comparison, decision: Decision) -> list[Profile]:
        simulated = self.runner.benchmark.simulated
        found = recommend(self.plan, comparison, {}, simulated=simulated)
        changed = [p.configuration for p in found if not p.configuration.is_default]
        if not changed or not self.plan.guards:
            return found
        guards = self._guard(decision, list(dict.fromkeys(changed)))
        return recommend(self.plan, comparison, guards, simulated=simulated)

    def _guard(
        self, decision: Decision, recommended: list[Configuration]
    ) -> dict[Configuration, tuple[PointEvidence, ...]]:
        """Other operations under the recommended configurations, against the default."""
        found: dict[Configuration, tuple[PointEvidence, ...]] = {}
        for operation in self.plan.guards:
            self._blocks(decision, recommended, Phase.GUARD, operation, GUARD_BLOCKS)
            comparison = self._compare(decision, recommended, Phase.GUARD, operation)
            for configuration, points in comparison.points.items():
                found[configuration] = found.get(configuration, ()) + points
        return found

    def _run(
        self,
        configuration: Configuration,
        phase: Phase,
        block: int,
        timer: _Timer,
        position: int = 0,
        operation: Operation | None = None,
    ) -> RunView:
        run = self.runner.run(configuration, phase, block, position, operation)
        self.runner.store.touch(self.runner.campaign_id)
        self.reporter.progress(
            Progress(
                phase=str(phase),
                trials=len(self.runner.trials),
                runs=len(self.runner.evidence.runs),
                best_gain=math.exp(self._best_gain),
                used_s=timer.used(),
                budget_s=timer.budget_s,
                last=run.outcome,
            )
        )
        return run


def _good(runs: Sequence[RunView]) -> list[RunView]:
    return [run for run in runs if run.outcome is Outcome.OK]


def _shown(item: Item) -> str:
    name, value = item
    return f"{name} unset" if value is None else f"{name}={value}"


class _Timer:
    """Wall time of a phase: this session's clock on top of what earlier sessions measured."""

    def __init__(self, runner: Runner, budget_s: float, phase: Phase) -> None:
        self.budget_s = budget_s
        self._clock = runner.clock
        self._before_s = runner.evidence.wall_s(phase)
        self._started = self._clock()

    def used(self) -> float:
        return self._before_s + self._clock() - self._started

    def left(self) -> float:
        return self.budget_s - self.used()
