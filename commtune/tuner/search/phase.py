"""The search phase: new configurations in blocks with the default, then re-runs of the best."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile

import numpy as np

from commtune.formatting import format_count
from commtune.model import DEFAULT, Configuration, Origin, Outcome, Phase, Run
from commtune.tuner.execution.dispatch import Dispatch, NextBlock, repeat_blocks
from commtune.tuner.execution.machine_faults import blames_machine
from commtune.tuner.execution.session import Session, Timer
from commtune.tuner.search import pooling, shrinking
from commtune.tuner.search.improvement import rank_reruns, weigh_sizes
from commtune.tuner.search.model import TableModel
from commtune.tuner.search.proposals import Item, Search
from commtune.tuner.search.standings import SpeedupReader, Speedups, Standing
from commtune.tuner.search.strategies import make_strategy
from commtune.tuner.search.strategies.strategy import Proposal

#: Runs of a block, one of them of the default, at a random place.
_SEARCH_BLOCK = 8
#: Runs of the default at the start; in a budget of few runs they may take the share, but are at
#: least the second number.
_FIRST_DEFAULTS, _FEWEST_DEFAULTS, _DEFAULTS_SHARE = 4, 2, 0.125
#: Runs of the default, within the whole budget, where nothing is searched and they are the result.
_DEFAULTS_ALONE = 10
#: The share of the search for re-runs of the best, since the best of single runs was lucky; and
#: the most runs of a block of these.
_FINALISTS_SHARE = 0.2
_FINALISTS = 7
#: The most runs of a configuration, beyond which confirmation tells more; and the same where no
#: further trials are allowed, to end early.
_MOST_RUNS, _MOST_RUNS_EARLY = 8, 3
#: Re-runs in a block, where the strategy gives its proposals no value; and trials for each
#: parameter before the first re-run, since other configurations tell more about parameters than
#: re-runs do (docs/search-trials.md, evidence for a variable).
_RERUNS, _TRIALS_BEFORE = 2, 5
#: Re-runs with a smaller expected improvement of the mean over sizes (logarithm) aren't made.
_LEAST_WORTH = 1e-4
#: Repetitions of a configuration whose failures may be the machine's; further ones are its own.
_MOST_REPEATS = 2
#: Attempts to run what the user listed while its runs are lost.
_FIRST_ATTEMPTS = 3
#: A single run that is ahead of the best by this many standard deviations is repeated.
_LEAD_DEVIATIONS = 2.0
#: Speedups are computed again after this share of further runs.
_REFRESH_SHARE = 0.2
#: Origins of proposals that may wait for a better re-run; what the user listed doesn't wait.
_POSTPONABLE = (Origin.ENUMERATED, Origin.RANDOM, Origin.SAMPLER)


class SearchPhase:
    """Searches within the budget, and continues what earlier sessions began."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._plan = session.plan
        self._runner = session.runner
        self._reader = SpeedupReader(self._plan.workload.sizes, self._plan.estimand)
        self._weights = np.zeros(0)
        #: A proposal that waits because a re-run was worth more.
        self._postponed: Proposal | None = None
        #: Configurations whose runs were lost, or failed when the default did. They come before
        #: new ones.
        self._repeat: list[Configuration] = []
        self._repeats: Counter[Configuration] = Counter()
        self._exhausted = False

    @property
    def set_aside(self) -> tuple[Item, ...]:
        """Values that are set aside after failures, sorted."""
        return tuple(sorted(self._search.failures.aside, key=str))

    @property
    def default_s(self) -> dict[int, float]:
        """Seconds of the default by size (bytes), in the slowest machine state."""
        found = zip(self._plan.workload.sizes, np.fmax.reduce(self._reader.default_s), strict=True)
        return {size: float(slowest_s) for size, slowest_s in found if not math.isnan(slowest_s)}

    @property
    def weights(self) -> dict[int, float]:
        """The weight of each size (bytes)."""
        return dict(zip(self._plan.workload.sizes, self._weights.tolist(), strict=True))

    def run(self) -> None:
        """Spends the rest of the search's budget."""
        budget_s = self._plan.budget.search_s
        self._timer = Timer(self._runner, budget_s, Phase.SEARCH)
        self._first_defaults()
        self.load_search()
        if self._session.is_oversubscribed():
            self._session.reporter.say(
                "more ranks than cores: no profile can be made, so the search ends here"
            )
            return
        self._try_first()
        lost = [c for c in self._runner.unmeasured() if not c.is_default]
        # What was lost at first may have worked since, and needs no further run.
        doubted = [c for c in self._repeat if self._repeats[c] or self._search.failed_once(c)]
        self._repeat = [*dict.fromkeys([*doubted, *lost])]
        self._exhausted = False
        self._dispatch(self._search_block)
        self._repeat_finalists()

    def _dispatch(self, next_block: NextBlock, tell: Callable[[Run], None] | None = None) -> None:
        told, phase, timer = tell or self._tell, Phase.SEARCH, self._timer
        Dispatch(self._session, next_block, phase, timer, told, planned=False).run()

    def load_search(self) -> None:
        """Makes the search, and replays all stored runs into it."""
        self._search = self._new_search()
        self._replay_into_search()

    def _first_defaults(self) -> None:
        """Runs the default: the median of four is not affected by cold caches of the first run."""
        runs = [r for r in self._runner.evidence.good(Phase.SEARCH) if r.configuration.is_default]
        is_alone = self._plan.budget.trials == 0
        lacking = (_DEFAULTS_ALONE if is_alone else _FIRST_DEFAULTS) - len(runs)
        if lacking <= 0:
            return
        # One job has all of them. Here each is a block, so that the limits are checked after each:
        # ranks that spin while they wait for a core can take half a minute.
        each = lacking if self._runner.batches.is_detached else 1
        wanted = repeat_blocks(lacking // each, lambda: [DEFAULT] * each)

        def next_block() -> Iterable[Configuration] | None:
            share = 1.0 if is_alone else _DEFAULTS_SHARE
            is_spent = self._timer.used() > share * self._timer.budget_s
            # Failed runs don't count: three in a row end the campaign.
            measured = sum(1 for _ in self._runner.evidence.good(Phase.SEARCH))
            is_enough = is_spent and measured >= _FEWEST_DEFAULTS
            return None if is_enough or self._session.is_oversubscribed() else wanted()

        # Nobody is told of them: the search, which is made next, reads them from the store.
        self._dispatch(next_block, lambda _: None)

    def _try_first(self) -> None:
        """Runs what the user listed and was never measured, whatever is left of the budget."""
        for _ in range(_FIRST_ATTEMPTS):
            known, lost = self._runner.trials, self._runner.unmeasured()
            untried = [c for c in self._plan.first if c not in known or c in lost]
            if not untried:
                return
            for configuration in untried:
                self._runner.new_trial(configuration, Origin.USER)
                self._search.remember(configuration)
            self._dispatch(repeat_blocks(1, partial(self._session.order_block, untried)))

    def _new_search(self) -> Search:
        # A resumed campaign must not propose the same random numbers again.
        seed = self._plan.seed * 1_000_003 + len(self._runner.trials)
        model = TableModel(self._plan.space, self._plan.workload.sizes)
        self._reader.rebuild(self._runner.evidence)
        times = np.array([self.default_s.get(size, 1e-6) for size in self._plan.workload.sizes])
        self._weights = weigh_sizes(model.sizes, self._plan.messages, times)
        strategy = make_strategy(self._plan.strategy, model, self._weights, seed)
        self._postponed = None
        return Search(model, strategy, self._plan.first)

    def _replay_into_search(self) -> None:
        """Replays all stored runs into a new search."""
        for configuration in self._runner.trials:
            self._search.remember(configuration)
        taken_back: set[Configuration] = set()
        for run in self._runner.evidence.runs:
            # The default's runs prove that leaving each variable unset works.
            if run.outcome is Outcome.OK:
                self._search.add_success(run.configuration, run.session)
                taken_back.discard(run.configuration)
            elif run.configuration.is_default:
                taken_back.update(self._take_back(run))
            elif run.outcome.blames_configuration:
                if self._search.failures.is_doubted(run.session):
                    taken_back.add(run.configuration)
                    continue
                self._search.tell_failed(run.configuration, run.session)
                taken_back.discard(run.configuration)
        self._repeat = []
        for configuration in self._runner.trials:
            if configuration in taken_back:
                self._repeat_some(configuration)
        self._search.rebuild(self.read_speedups())

    def _take_back(self, run: Run) -> list[Configuration]:
        """Withdraws the failures of a session in which the default failed; returns them."""
        return self._search.withdraw_failures(run.session) if blames_machine(run) else []

    def _trials_left(self) -> bool:
        limit = self._plan.budget.trials
        return limit is None or self._runner.searched < limit

    def _search_block(self) -> Iterable[Configuration] | None:
        """Returns the next block of the search, or ``None`` when finalists get the rest."""
        if self._timer.left() <= _FINALISTS_SHARE * self._plan.budget.search_s:
            return None
        return self._new_block()

    def _new_block(self) -> Iterable[Configuration] | None:
        """Returns a block of what is worth most, while there is time and something to try."""
        has_new = self._trials_left() and not self._exhausted
        if self._timer.left() <= 0 or not (self._repeat or has_new):
            return None
        seed = f"{self._runner.order_seed}:{self._runner.blocks}"
        place = random.Random(seed).randrange(_SEARCH_BLOCK)
        return self._fill_block(place)

    def _fill_block(self, place: int) -> Iterator[Configuration]:
        """Yields new configurations, re-runs that are worth more, and the default."""
        reruns = self._rank_reruns()
        for position in range(_SEARCH_BLOCK):
            while self._runner.failing.in_doubt:
                yield DEFAULT
            if position == place:
                yield DEFAULT
                continue
            configuration = None
            if self._timer.left() > 0:
                configuration = self._repeat.pop() if self._repeat else self._choose_next(reruns)
            if configuration is None:
                self._exhausted = True
                return
            yield configuration

    def _rank_reruns(self) -> list[tuple[Configuration, float]]:
        """Ranks configurations by what a re-run is worth, the best last."""
        least = _TRIALS_BEFORE * len(self._plan.space.parameters)
        if len(self._runner.trials) < least or not self._trials_left():
            return []
        ranked = rank_reruns(self._search.model, self._weights, _MOST_RUNS)
        found = [(c, worth) for c, worth in ranked if self._may_run(c)]
        return found[:_SEARCH_BLOCK][::-1]

    def _choose_next(self, reruns: list[tuple[Configuration, float]]) -> Configuration | None:
        """Chooses a new configuration or a more valuable re-run; ``None`` if none is left."""
        if not self._trials_left():
            return None
        proposal = self._postponed or self._search.ask()
        if proposal is None:
            return None
        self._postponed = None
        if reruns and proposal.origin in _POSTPONABLE and _is_behind(proposal, reruns):
            self._postponed = proposal
            return self._ensure_trial(reruns.pop()[0])
        self._runner.new_trial(proposal.configuration, proposal.origin)
        return proposal.configuration

    def _tell(self, run: Run) -> None:
        """Tells the search of a run, and the user of values that leave it or come back."""
        configuration = run.configuration
        if run.outcome is not Outcome.OK:
            self._tell_no_result(run)
            return
        speedups = self._reader.read(run)
        for item in sorted(self._search.tell(configuration, speedups, run.session), key=str):
            self._session.reporter.say(f"{_format_item(item)} works by itself: back in the search")
        grown = len(self._runner.evidence.runs) - self._read_at
        if grown > max(2 * _SEARCH_BLOCK, _REFRESH_SHARE * self._read_at):
            self._search.rebuild(self.read_speedups())
        self._session.best_log_gain = self._reader.best

    def _tell_no_result(self, run: Run) -> None:
        configuration, outcome = run.configuration, run.outcome
        if configuration.is_default:
            self._tell_default_failed(run)
        elif outcome.is_lost or self._search.failures.is_doubted(run.session):
            self._search.forget(configuration)
            if outcome is Outcome.NODE_FAILURE or not outcome.is_lost:
                self._repeat_some(configuration)
            else:
                self._repeat.append(configuration)
        elif outcome.blames_configuration:
            # A run that worked counts, also if it was repeated since something disturbed it.
            runs = (r for r in self._runner.evidence.runs if r.configuration == configuration)
            if any(r.outcome is Outcome.OK for r in runs):
                self._search.add_success(configuration, run.session)
            for item in sorted(self._search.tell_failed(configuration, run.session), key=str):
                self._session.reporter.say(
                    f"setting aside {_format_item(item)}: failed twice ({outcome}), never worked"
                )
            if len(configuration) == 1 and self._search.failed_once(configuration):
                # A single value that failed may have failed by chance.
                self._repeat.append(configuration)

    def _tell_default_failed(self, run: Run) -> None:
        if not (taken_back := self._take_back(run)):
            return
        self._session.reporter.say(
            f"the default fails as well ({run.detail}): "
            f"{format_count(len(taken_back), 'failure')} before it don't count"
        )
        for configuration in dict.fromkeys(taken_back):
            self._repeat_some(configuration)
        self._search.rebuild(self.read_speedups())

    def _repeat_some(self, configuration: Configuration) -> None:
        if self._repeats[configuration] < _MOST_REPEATS:
            self._repeats[configuration] += 1
            self._repeat.append(configuration)

    def _repeat_finalists(self) -> None:
        """Repeats configurations that may be the best at a size, since single runs are lucky."""
        self._search.leave_out_idle(self.read_speedups(), is_strict=False)

        def next_block() -> Iterable[Configuration] | None:
            finalists = self._finalists() if self._timer.left() > 0 else []
            if not finalists:
                return self._new_block()
            order = self._session.order_block(finalists)
            return takewhile(lambda _: self._timer.left() > 0, order)

        self._dispatch(next_block)

    def _finalists(self) -> list[Configuration]:
        """Lists halves of the best, leaders by a single run, then the most valuable re-runs."""
        model = self._search.model
        model.fit()
        trials = self._runner.trials
        found = [one for one in shrinking.list_smaller_variants(model) if one not in trials]
        found += model.list_single_run_leaders(_LEAD_DEVIATIONS)
        most_runs = _MOST_RUNS if self._trials_left() else _MOST_RUNS_EARLY
        ranked = rank_reruns(model, self._weights, most_runs)
        found += [c for c, worth in ranked if worth > _LEAST_WORTH]
        open_ = [c for c in dict.fromkeys(found) if self._may_run(c)]
        return [self._ensure_trial(c) for c in open_[:_FINALISTS]]

    def _may_run(self, configuration: Configuration) -> bool:
        """Whether a configuration may run: no run is under way, and it is or may be a trial."""
        if configuration in self._runner.trials:
            return not self._runner.count_in_flight(configuration)
        return self._trials_left() and self._search.is_open(configuration)

    def _ensure_trial(self, configuration: Configuration) -> Configuration:
        """Makes a trial of a configuration that lacks one, as smaller variants may."""
        if configuration not in self._runner.trials:
            self._runner.new_trial(configuration, Origin.SAMPLER)
            self._search.remember(configuration)
        return configuration

    def read_speedups(self) -> list[tuple[Configuration, Speedups]]:
        """Returns the log speedups of all good runs so far in order, without their trend."""
        self._read_at = len(self._runner.evidence.runs)
        return self._search.model.remove_trend(self._reader.rebuild(self._runner.evidence))

    def standings(self, *, is_strict: bool = False) -> tuple[Standing, ...]:
        """Estimates every configuration with a good run, without the default.

        Idle parameters are dropped, so a configuration may never have run as it is.

        Args:
            is_strict: whether time is short (see ``TableModel.find_idle``).
        """
        self._search.leave_out_idle(self.read_speedups(), is_strict=is_strict)
        return self._search.model.standings()

    def drop_weak_variables(
        self, candidates: Mapping[Configuration, Collection[int]]
    ) -> tuple[Standing, ...]:
        """Estimates candidates without the variables that show little at their sizes (bytes)."""
        model = self._search.model
        small = (shrinking.drop_weak_variables(model, *one) for one in candidates.items())
        return model.estimate_standings([*dict.fromkeys(small)])

    def find_interacting_values(self) -> dict[str, str]:
        """Finds values of idle parameters that help beside the best (see ``pooling``)."""
        model = self._search.model
        runs = model.remove_trend_from_all(self._reader.rebuild(self._runner.evidence))
        return pooling.find_interacting_values(model, runs)


def _is_behind(proposal: Proposal, reruns: Sequence[tuple[Configuration, float]]) -> bool:
    """Whether the best re-run, the last, is worth more than a proposal."""
    if proposal.worth is None:
        return len(reruns) > _SEARCH_BLOCK - _RERUNS
    return reruns[-1][1] > proposal.worth


def _format_item(item: Item) -> str:
    name, value = item
    return f"{name} unset" if value is None else f"{name}={value}"
