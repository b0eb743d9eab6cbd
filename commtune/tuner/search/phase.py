"""The search of a campaign: new configurations in blocks with the default, then finalists."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import takewhile

from commtune.model import DEFAULT, Configuration, Outcome, Phase, Run
from commtune.tuner.execution.dispatch import Dispatch, NextBlock, repeat_blocks
from commtune.tuner.execution.session import Session, Timer
from commtune.tuner.search.failures import Item
from commtune.tuner.search.proposals import Search
from commtune.tuner.search.racing import MOST_RUNS, find_contenders, find_surest, to_repeat
from commtune.tuner.search.scores import Scoreboard, SizeRange, split_ranges
from commtune.tuner.search.screening import screen_parameters
from commtune.tuner.search.strategies import make_strategy
from commtune.tuner.search.strategies.strategy import Origin, Proposal
from commtune.tuner.statistics.blocks import block_order

#: The default runs once in every block of this many search runs, at a random place.
_SEARCH_BLOCK = 8
_FIRST_DEFAULTS = 4
#: The last part of the search goes to repeating the best, since one run is easily lucky.
_FINALISTS_SHARE = 0.2
_FINALISTS, _ENOUGH_RUNS = 4, 3
#: How many runs of a block go to the closest race, and how many trials there are before.
_CLOSE_ONES, _FIRST_RACE = 2, 16
#: Scores are worked out anew when this share of new runs has come in.
_REFRESH_SHARE = 0.2


class SearchPhase:
    """Searches within the budget, from wherever earlier sessions got to."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._plan = session.plan
        self._runner = session.runner
        self._ranges = split_ranges(session.plan.workload.sizes)
        self._board = Scoreboard(self._ranges)
        #: Configurations whose runs never came to an end; to be tried before new ones.
        self._repeat: list[Configuration] = []
        self._exhausted = False

    @property
    def ranges(self) -> tuple[SizeRange, ...]:
        """The size ranges that were searched for."""
        return self._ranges

    @property
    def set_aside(self) -> tuple[Item, ...]:
        """Values that failed and were left out, sorted."""
        return tuple(sorted(self._search.failures.aside, key=str))

    def run(self) -> None:
        """Spends what is left of the search's budget."""
        budget_s = self._plan.budget.search_s
        timer = self._session.timer(budget_s, Phase.SEARCH)
        self._first_defaults(timer)
        self.take_up()
        if self._session.is_oversubscribed():
            self._session.reporter.say(
                "more ranks than cores: no profile can be made, so the search ends here"
            )
            return
        self._try_first(timer)
        self._repeat = [c for c in self._runner.unmeasured() if not c.is_default]
        self._exhausted = False
        self._dispatch(partial(self._search_block, timer), timer)
        self._repeat_finalists(timer)

    def _dispatch(
        self, next_block: NextBlock, timer: Timer, tell: Callable[[Run], None] | None = None
    ) -> None:
        Dispatch(
            self._session, next_block, Phase.SEARCH, timer, tell or self._tell, planned=False
        ).run()

    def take_up(self) -> None:
        """Makes the search, knowing what was measured so far."""
        self._search = self._new_search()
        self._replay_into_search()

    def _first_defaults(self, timer: Timer) -> None:
        """The first run of a session finds cold caches; the median of four is past that."""
        runs = [r for r in self._runner.evidence.good(Phase.SEARCH) if r.configuration.is_default]
        lacking = _FIRST_DEFAULTS - len(runs)
        if lacking <= 0:
            return
        # Of jobs one, not four. Here each counts by itself: ranks that spin while they wait for a
        # core can take half a minute.
        each = lacking if self._runner.batches.is_detached else 1
        wanted = repeat_blocks(lacking // each, lambda: [DEFAULT] * each)
        self._dispatch(lambda: None if self._session.is_oversubscribed() else wanted(), timer)

    def _try_first(self, timer: Timer) -> None:
        """What the user listed and was never measured, whatever is left of the budget."""
        known, lost = self._runner.trials, self._runner.unmeasured()
        untried = [c for c in self._plan.first if c not in known or c in lost]
        for configuration in untried:
            self._trial(Proposal(configuration, Origin.USER))
            self._search.remember(configuration)
        if untried:
            order = block_order(untried, self._plan.seed, self._runner.blocks)
            self._dispatch(repeat_blocks(1, lambda: order), timer)

    def _new_search(self) -> Search:
        # A resumed campaign must not propose the same random numbers again.
        seed = self._plan.seed * 1_000_003 + len(self._runner.trials)
        strategy = make_strategy(
            self._plan.strategy, self._plan.space, self._ranges, seed, fits=self._fits()
        )
        return Search(self._plan.space, strategy, self._plan.first)

    def _fits(self) -> bool:
        """Whether the whole space can be tried within the budget."""
        count = self._plan.space.count()
        if self._plan.budget.trials is not None and count > self._plan.budget.trials:
            return False
        runs = list(self._runner.evidence.good(Phase.SEARCH))
        a_run_s = math.fsum(r.wall_s for r in runs) / max(1, len(runs))
        budget_s = (1 - _FINALISTS_SHARE) * self._plan.budget.search_s
        return count * a_run_s * (1 + 1 / _SEARCH_BLOCK) <= budget_s

    def _replay_into_search(self) -> None:
        """Rebuilds what the search knows from what the store holds."""
        for configuration in self._runner.trials:
            self._search.remember(configuration)
        for run in self._runner.evidence.runs:
            # The default's runs prove that leaving each variable unset works.
            if run.outcome is Outcome.OK:
                self._search.worked(run.configuration)
            elif run.outcome.blames_configuration and not run.configuration.is_default:
                self._search.tell_failed(run.configuration)
        self._refresh()

    def _refresh(self) -> None:
        self._refresh_board()
        self._search.rebuild(self._board)

    def _refresh_board(self) -> None:
        self._board.rebuild(self._runner.evidence)
        self._refreshed_at = len(self._runner.evidence.runs)

    def _is_stale(self) -> bool:
        """Whether enough runs came in to work all scores out again."""
        grown = len(self._runner.evidence.runs) - self._refreshed_at
        return grown > max(2 * _SEARCH_BLOCK, _REFRESH_SHARE * self._refreshed_at)

    def _trials_left(self) -> bool:
        limit = self._plan.budget.trials
        return limit is None or self._runner.searched < limit

    def _search_block(self, timer: Timer) -> Iterable[Configuration] | None:
        """The next block of the search, while there is time and something to try."""
        enough = timer.left() <= _FINALISTS_SHARE * self._plan.budget.search_s
        has_new = self._trials_left() and not self._exhausted
        if enough or not (self._repeat or has_new):
            return None
        place = random.Random(f"{self._plan.seed}:{self._runner.blocks}").randrange(_SEARCH_BLOCK)
        return self._members(timer, place)

    def _members(self, timer: Timer, place: int) -> Iterator[Configuration]:
        """New configurations, some of the best so far, and the default at its place."""
        close = self._close_ones()
        for position in range(_SEARCH_BLOCK):
            if position == place:
                yield DEFAULT
                continue
            known = self._repeat or close
            configuration = None
            if timer.left() > 0:
                configuration = known.pop() if known else self._new()
            if configuration is None:
                self._exhausted = True
                return
            yield configuration

    def _close_ones(self) -> list[Configuration]:
        """Configurations that one more run may put first, or take out of the race."""
        if len(self._runner.trials) < _FIRST_RACE or not self._trials_left():
            return []
        return to_repeat(self._board, [r.label for r in self._ranges], _CLOSE_ONES)

    def _new(self) -> Configuration | None:
        """A configuration that was never tried; none where the space or the limit is reached."""
        proposal = self._search.ask() if self._trials_left() else None
        return self._trial(proposal) if proposal is not None else None

    def _trial(self, proposal: Proposal) -> Configuration:
        self._runner.new_trial(proposal.configuration, proposal.origin, proposal.label)
        return proposal.configuration

    def _tell(self, run: Run) -> None:
        """Tells the search of a run, and the user of values that leave it or come back."""
        configuration = run.configuration
        if configuration.is_default:
            return
        if run.outcome.is_lost:
            self._search.forget(configuration)
            self._repeat.append(configuration)
            return
        if run.outcome.blames_configuration:
            for item in sorted(self._search.tell_failed(configuration), key=str):
                self._session.reporter.say(
                    f"setting aside {_shown(item)}: failed twice ({run.outcome}), never worked"
                )
            return
        for item in sorted(self._search.tell(configuration, self._board.add(run)), key=str):
            self._session.reporter.say(f"{_shown(item)} works by itself: back in the search")
        self._session.best_log_gain = max(self._session.best_log_gain, self._board.best_gain(run))
        if self._is_stale():
            self._refresh()

    def _repeat_finalists(self, timer: Timer) -> None:
        """Repeats the best of each range, so that confirmation gets the good, not the lucky."""
        self._refresh_board()

        def next_block() -> Iterable[Configuration] | None:
            finalists = self._finalists(_FINALISTS)
            if timer.left() <= 0 or all(self._runs_of(c) >= MOST_RUNS for c in finalists):
                return None
            order = block_order(finalists, self._plan.seed, self._runner.blocks)
            return takewhile(lambda _: timer.left() > 0, order)

        def tell(run: Run) -> None:
            if run.outcome is Outcome.OK:
                self._board.add(run)
            if self._is_stale():
                self._refresh_board()

        self._dispatch(next_block, timer, tell)

    def _runs_of(self, configuration: Configuration) -> int:
        scores = self._board.scores.get(configuration, {})
        made = max((score.runs for score in scores.values()), default=0)
        return made + self._runner.flying(configuration)

    def guess(self, configuration: Configuration) -> Configuration:
        """What of a configuration seems to matter in the size range where it did best."""
        mine = self._board.scores.get(configuration, {})
        label = max(mine, key=lambda one: mine[one].mean, default="")
        runs = [
            (run, score[label])
            for run in self._runner.evidence.good(Phase.SEARCH)
            if label in (score := self._board.score(run))
        ]
        assignments = [self._plan.space.assignment(run.configuration) for run, _ in runs]
        return screen_parameters(
            self._plan.space, configuration, assignments, [value for _, value in runs]
        )

    def winners(self, most: int) -> list[Configuration]:
        """The best of each range over all speeds, then at each speed; few, so as to have power.

        Of many single runs the best is a lucky one: a configuration with few runs counts only
        if it is ahead of those with several by more than luck explains.
        """
        self._board.rebuild(self._runner.evidence)
        labels = [size_range.label for size_range in reversed(self._ranges)]
        found = [c for label in labels for c in find_surest(self._board, label, _ENOUGH_RUNS)]
        for speed in self._board.speeds.names:
            for label in labels:
                found += self._board.best_at(label, speed, fewest_runs=2)
        return list(dict.fromkeys(found or self._finalists(1)))[:most]

    def _finalists(self, most: int) -> list[Configuration]:
        """The few of each range that may still be its best."""
        found = [c for r in self._ranges for c in find_contenders(self._board, r.label, most)]
        return list(dict.fromkeys(found))


def _shown(item: Item) -> str:
    name, value = item
    return f"{name} unset" if value is None else f"{name}={value}"
