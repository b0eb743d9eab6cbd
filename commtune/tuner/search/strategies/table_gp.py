"""commtune's own strategy: the configuration that is expected to improve the whole table most."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from commtune.model import DEFAULT, Configuration
from commtune.spaces.space import Space
from commtune.tuner.search.encoding import Matrix, Rows
from commtune.tuner.search.improvement import expected_improvement
from commtune.tuner.search.model import TableModel
from commtune.tuner.search.shrinking import list_smaller_variants
from commtune.tuner.search.standings import Speedups
from commtune.tuner.search.strategies.random_sampling import RandomSampling
from commtune.tuner.search.strategies.strategy import Assignment, IsOpen, Origin, Proposal

#: A space of so many is looked through whole; of a larger one so many are drawn at random, and
#: so many more beside the best.
_MOST_WHOLE, _DRAWN, _BESIDE = 600, 200, 200
#: Configurations that hold each value about as often as any other come before the model is asked:
#: so many, and in a larger space so many for each parameter. What is good there sets several, and
#: the model looks beside what it has met.
_BALANCED, _BALANCED_EACH = 4, 2
#: Later every third proposal is a single value by itself: what a value does alone is what small
#: configurations are made of. All at once would take a small budget whole.
_ALONE, _ALONE_EVERY = 20, 3
#: The model is fitted again when this share of new runs has come in.
_REFIT_SHARE = 0.03
#: The share of the candidates beside the best that are crossed, and of two changes each.
_CROSSED, _EVEN, _CHANGED = 0.3, 0.5, 0.75


@dataclass
class _Field:
    """Until the model is fitted again: parts of the best, then rows with what each is worth."""

    rows: Rows
    value: Matrix
    smaller: list[Configuration]


class TableImprovement:
    """Proposes what is expected to improve the table most.

    Once something looks good, halves of it come first, to learn which of its variables matter.
    Other candidates are drawn at random, changed from the best at each size, or crossed from two
    of those. What is told goes into the model, which belongs to the search, before it comes here.

    Args:
        weights: of the sizes, in the model's order.
    """

    def __init__(self, model: TableModel, weights: Matrix, rng: random.Random) -> None:
        self._model, self._weights = model, weights
        self._numbers = np.random.default_rng(rng.randrange(2**32))
        self._space = model.encoding.space
        self._random = RandomSampling(self._space, rng)
        self._alone = _draw_single_values(self._space, rng)
        self._waiting: dict[Configuration, None] = {}
        self._field: _Field | None = None
        self._fitted_at = 0
        self._whole: Rows | None = None
        self._first = _BALANCED_EACH * len(self._space.parameters)
        if self._space.count() <= _MOST_WHOLE:
            self._whole = model.encoding.rows(self._space.configurations())
            self._first = _BALANCED
        self._balanced = self._draw_balanced(self._first)

    def ask(self, is_open: IsOpen) -> Proposal | None:
        """The most valuable that is open."""
        begun = self._model.tried + len(self._waiting)
        if begun <= self._first:
            return _pop_open(self._balanced, is_open) or self._random.ask(is_open)
        # Of an old field all that is any good may be taken: then a new one.
        for _ in range(2):
            if self._field is None:
                self._field = self._evaluate()
            found = _pop_open(self._field.smaller, is_open)
            if found is None and begun % _ALONE_EVERY == 0:
                found = _pop_open(self._alone, is_open)
            if found is None:
                found = self._take(self._field, is_open)
            if found is not None:
                return found
            self._field = None
        return self._random.ask(is_open)

    def wait_for(self, configuration: Configuration) -> None:
        """Lets go of what is like it, as long as it is under way."""
        self._waiting[configuration] = None
        if self._field is not None:
            self._discount(self._field, [configuration])

    def tell(self, configuration: Configuration, speedups: Speedups) -> None:
        """Notes that one more run is in the model."""
        del speedups
        self._waiting.pop(configuration, None)
        if self._model.runs > (1 + _REFIT_SHARE) * self._fitted_at:
            self._field = None

    def forget(self, configuration: Configuration) -> None:
        """Stops waiting for it."""
        self._waiting.pop(configuration, None)
        self._field = None

    #: The model has taken the failure in before.
    tell_failed = forget

    def rebuild(
        self, runs: Sequence[tuple[Configuration, Speedups]], failed: Sequence[Assignment]
    ) -> None:
        """The model was made anew."""
        del runs, failed
        self._field = None

    def _evaluate(self) -> _Field:
        self._model.fit()
        self._fitted_at = self._model.runs
        known = self._model.encoding.rows([DEFAULT, *self._model.kept])
        known_mean, _ = self._model.predict(known)
        rows = self._candidates(known, known_mean)
        mean, error = self._model.predict(rows)
        best = known_mean.max(axis=0)
        value = expected_improvement(mean, error, self._model.noise, best, self._weights)
        found = _Field(rows, value, list_smaller_variants(self._model))
        self._discount(found, list(self._waiting))
        return found

    def _take(self, found: _Field, is_open: IsOpen) -> Proposal | None:
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

    def _discount(self, found: _Field, waiting: Sequence[Configuration]) -> None:
        """Lowers the worth of what is like something under way: it will be known by that."""
        if waiting and len(found.rows):
            like = self._model.correlation(found.rows, self._model.encoding.rows(waiting))
            found.value *= np.prod(1 - np.clip(like, 0, 1) ** 2, axis=1)

    def _candidates(self, known: Rows, mean: Matrix) -> Rows:
        found = self._whole
        if found is None:
            # The default, the first row, too: what few variables do is learnt beside it.
            best = known[np.unique(np.r_[0, np.argsort(-mean, axis=0)[:2].ravel()])]
            found = np.vstack([self._draw(_DRAWN), self._beside(best)])
        tried = {row.tobytes() for row in known}
        new = {row.tobytes(): n for n, row in enumerate(found) if row.tobytes() not in tried}
        return found[sorted(new.values())]

    def _draw_balanced(self, count: int) -> list[Configuration]:
        """Draws some in which each value of a parameter, unset too, is about as frequent."""
        encoding, shuffled = self._model.encoding, self._numbers.permutation
        columns = [shuffled(np.resize(shuffled(len(v)), count)) for v in encoding.values]
        drawn = [encoding.assignment_of(row) for row in np.transpose(columns).tolist()]
        return [self._space.configuration(one) for one in drawn if self._space.is_allowed(one)]

    def _draw(self, count: int) -> Rows:
        """Draws rows at random, legal or not, with more or fewer parameters unset."""
        counts = [len(values) for values in self._model.encoding.values]
        rows = self._numbers.integers(0, counts, (count, len(counts)))
        kept = self._numbers.random((count, 1))
        return np.where(self._numbers.random(rows.shape) < kept, rows, 0)

    def _beside(self, best: Rows) -> Rows:
        """Changes some of the best, crossed or not, in a parameter or two, often to unset."""
        numbers = self._numbers
        one, other = (best[numbers.integers(0, len(best), _BESIDE)] for _ in range(2))
        crossed = numbers.random((_BESIDE, 1)) < _CROSSED
        rows = np.where(crossed & (numbers.random(one.shape) < _EVEN), other, one)
        drawn = self._draw(_BESIDE)
        for _ in range(2):
            place = numbers.integers(0, rows.shape[1], _BESIDE)
            changed = np.arange(rows.shape[1]) == place[:, None]
            rows = np.where(changed & (numbers.random((_BESIDE, 1)) < _CHANGED), drawn, rows)
        return rows


def _pop_open(configurations: list[Configuration], is_open: IsOpen) -> Proposal | None:
    """Takes the last that is open from a list, and what comes after it."""
    while configurations:
        configuration = configurations.pop()
        if is_open(configuration):
            return Proposal(configuration, Origin.RANDOM)
    return None


def _draw_single_values(space: Space, rng: random.Random) -> list[Configuration]:
    """Configurations of one value each, some of all that the space allows, in random order."""
    found = [
        space.configuration({parameter.name: value})
        for parameter in space.parameters
        for value in parameter.values
        if value is not None
    ]
    found = [configuration for configuration in found if not space.check(configuration)]
    return rng.sample(found, min(_ALONE, len(found)))
