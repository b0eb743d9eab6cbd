"""commtune's own strategy: Bayesian optimization of the whole table of speedups."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from commtune.model import DEFAULT, Configuration, Origin
from commtune.spaces.space import Space
from commtune.tuner.search.encoding import Matrix, Rows
from commtune.tuner.search.improvement import expected_improvement
from commtune.tuner.search.model import TableModel
from commtune.tuner.search.shrinking import list_smaller_variants
from commtune.tuner.search.standings import Speedups
from commtune.tuner.search.strategies.random_sampling import RandomSampling
from commtune.tuner.search.strategies.strategy import Assignment, IsOpen, Proposal, pop_open

#: A space of at most this many configurations is evaluated whole. In a larger one, the candidates
#: are this many random configurations, and this many variations of the best.
_MOST_WHOLE, _RANDOM_ROWS, _VARIED_ROWS = 600, 200, 200
#: The number of first configurations, which have each value about equally often; and that for
#: each parameter in a larger space, where good configurations set several parameters and a search
#: from few stays near the default (docs/search-trials.md, starting in a large space).
_FIRST, _FIRST_PER_PARAMETER = 4, 2
#: Then every third proposal, up to this many, sets one variable only, because small configurations
#: are made of such values. All at once would take a small budget whole.
_SINGLE_VALUES, _SINGLE_VALUE_EVERY = 20, 3
#: The model is fitted again after this share of further runs.
_REFIT_SHARE = 0.03
#: The probability that a variation has two parents, that a parameter is from the second one, and
#: that each of two mutations is made.
_CROSSOVER_SHARE, _OTHER_PARENT, _MUTATION_CHANCE = 0.3, 0.5, 0.75


@dataclass
class _CandidateSet:
    """What is proposed until the model is fitted again: parts of the best, then rows by value."""

    rows: Rows
    value: Matrix
    smaller: list[Configuration]


class TableImprovement:
    """Proposes the configuration with the largest acquisition value (``expected_improvement``).

    Once something looks good, its half comes first (``list_smaller_variants``). Candidates are
    random configurations, and mutations and crossovers of the best at each size.

    Args:
        model: belongs to the search, which updates it before it tells the strategy.
        weights: of the sizes, in the model's order.
    """

    def __init__(self, model: TableModel, weights: Matrix, rng: random.Random) -> None:
        self._model, self._weights = model, weights
        self._numbers = np.random.default_rng(rng.randrange(2**32))
        self._space = model.encoding.space
        self._random = RandomSampling(self._space, rng)
        self._alone = _draw_single_values(self._space, rng)
        self._waiting: dict[Configuration, None] = {}
        self._candidate_set: _CandidateSet | None = None
        self._fitted_at = 0
        self._all_rows: Rows | None = None
        self._first = _FIRST_PER_PARAMETER * len(self._space.parameters)
        if self._space.count() <= _MOST_WHOLE:
            self._all_rows = model.encoding.rows(self._space.configurations())
            self._first = _FIRST
        self._balanced = self._draw_balanced(self._first)

    def ask(self, is_open: IsOpen) -> Proposal | None:
        """Returns the most valuable open configuration."""
        begun = self._model.tried + len(self._waiting)
        if begun <= self._first:
            return pop_open(self._balanced, is_open) or self._random.ask(is_open)
        # Nothing open may be left of a set of candidates: then another one is drawn.
        for is_spent in (False, True):
            if self._candidate_set is None or is_spent:
                self._candidate_set = self._evaluate(fits=not is_spent)
            found = pop_open(self._candidate_set.smaller, is_open)
            if found is None and begun % _SINGLE_VALUE_EVERY == 0:
                found = pop_open(self._alone, is_open)
            if found is None:
                found = self._take(self._candidate_set, is_open)
            if found is not None:
                return found
        return self._random.ask(is_open)

    def wait_for(self, configuration: Configuration) -> None:
        """Lowers the value of similar candidates while a configuration is pending."""
        self._waiting[configuration] = None
        if self._candidate_set is not None:
            self._discount(self._candidate_set, [configuration])

    def tell(self, configuration: Configuration, speedups: Speedups) -> None:
        """Notes a run that is in the model; after enough of them, candidates are drawn anew."""
        del speedups
        self._waiting.pop(configuration, None)
        if self._model.runs > (1 + _REFIT_SHARE) * self._fitted_at:
            self._candidate_set = None

    def forget(self, configuration: Configuration) -> None:
        """Removes a pending configuration; candidates are drawn anew."""
        self._waiting.pop(configuration, None)
        self._candidate_set = None

    #: The failure is in the model by then.
    tell_failed = forget

    def rebuild(
        self, runs: Sequence[tuple[Configuration, Speedups]], failed: Sequence[Assignment]
    ) -> None:
        """Draws candidates anew after the model was rebuilt."""
        del runs, failed
        self._candidate_set = None

    def _evaluate(self, *, fits: bool) -> _CandidateSet:
        if fits:
            self._model.fit()
            self._fitted_at = self._model.runs
        known = self._model.encoding.rows([DEFAULT, *self._model.fitted])
        known_mean, _ = self._model.predict(known)
        rows = self._candidates(known, known_mean)
        mean, error = self._model.predict(rows)
        best = known_mean.max(axis=0)
        value = expected_improvement(mean, error, self._model.noise, best, self._weights)
        found = _CandidateSet(rows, value, list_smaller_variants(self._model))
        self._discount(found, list(self._waiting))
        return found

    def _take(self, found: _CandidateSet, is_open: IsOpen) -> Proposal | None:
        for place in np.argsort(-found.value, kind="stable").tolist():
            worth = float(found.value[place])
            found.value[place] = -1.0
            if worth < 0:
                return None
            assignment = self._model.encoding.assignment_of(found.rows[place])
            configuration = self._space.configuration(assignment)
            if self._space.is_allowed(assignment) and is_open(configuration):
                return Proposal(configuration, Origin.SAMPLER, worth=worth)
        return None

    def _discount(self, found: _CandidateSet, waiting: Sequence[Configuration]) -> None:
        """Lowers the value of candidates by their correlation with pending configurations."""
        if waiting and len(found.rows):
            like = self._model.prior_correlation(found.rows, self._model.encoding.rows(waiting))
            found.value *= np.prod(1 - np.clip(like, 0, 1) ** 2, axis=1)

    def _candidates(self, known: Rows, mean: Matrix) -> Rows:
        found = self._all_rows
        if found is None:
            # The default, the first row, is varied too, to learn the effects of few variables.
            best = known[np.unique(np.r_[0, np.argsort(-mean, axis=0)[:2].ravel()])]
            found = np.vstack([self._draw(_RANDOM_ROWS), self._vary_best(best)])
        tried = {row.tobytes() for row in known}
        new = {row.tobytes(): n for n, row in enumerate(found) if row.tobytes() not in tried}
        return found[sorted(new.values())]

    def _draw_balanced(self, count: int) -> list[Configuration]:
        """Draws configurations with each value of a parameter, unset too, about equally often."""
        encoding, shuffled = self._model.encoding, self._numbers.permutation
        columns = [shuffled(np.resize(shuffled(len(v)), count)) for v in encoding.values]
        drawn = [encoding.assignment_of(row) for row in np.transpose(columns).tolist()]
        return [self._space.configuration(one) for one in drawn if self._space.is_allowed(one)]

    def _draw(self, count: int) -> Rows:
        """Draws random rows, legal or not, each with another probability of unset parameters."""
        counts = [len(values) for values in self._model.encoding.values]
        rows = self._numbers.integers(0, counts, (count, len(counts)))
        kept = self._numbers.random((count, 1))
        return np.where(self._numbers.random(rows.shape) < kept, rows, 0)

    def _vary_best(self, best: Rows) -> Rows:
        """Draws crossovers and mutations of the best rows, legal or not."""
        numbers = self._numbers
        one, other = (best[numbers.integers(0, len(best), _VARIED_ROWS)] for _ in range(2))
        crossed = numbers.random((_VARIED_ROWS, 1)) < _CROSSOVER_SHARE
        rows = np.where(crossed & (numbers.random(one.shape) < _OTHER_PARENT), other, one)
        drawn = self._draw(_VARIED_ROWS)
        for _ in range(2):
            place = numbers.integers(0, rows.shape[1], _VARIED_ROWS)
            changed = np.arange(rows.shape[1]) == place[:, None]
            rows = np.where(
                changed & (numbers.random((_VARIED_ROWS, 1)) < _MUTATION_CHANCE), drawn, rows
            )
        return rows


def _draw_single_values(space: Space, rng: random.Random) -> list[Configuration]:
    """Draws allowed configurations that set a single value, in random order."""
    found = [
        space.configuration({parameter.name: value})
        for parameter in space.parameters
        for value in parameter.values
        if value is not None
    ]
    found = [configuration for configuration in found if not space.check(configuration)]
    return rng.sample(found, min(_SINGLE_VALUES, len(found)))
