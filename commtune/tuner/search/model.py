"""What the search believes of the whole table: speedups of configurations at every size."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from commtune.model import DEFAULT, Configuration
from commtune.spaces.space import Space
from commtune.tuner.search.covariance import Covariance, Flags, Observed, Posterior
from commtune.tuner.search.encoding import Encoding, Matrix, Rows
from commtune.tuner.search.standings import Speedups, Standing
from commtune.tuner.search.trend import find_trend

#: Slower than this (logarithm) counts as this: how slow it is, or was for once, must not decide
#: what the model thinks of its neighbours. And what a failure counts as, at every size.
_SLOWEST, _FAILED = -0.15, -0.7
#: Speedups of 1 that the default is known to have.
_DEFAULT_RUNS = 200.0
#: A priori noise of a run (logarithm), what of it is common to all sizes, and what runs that
#: prior is worth; deviations are drawn in to so many standard deviations.
_NOISE, _COMMON_NOISE, _PRIOR_RUNS, _FAR = 0.1, 0.6, 8.0, 3.0
_LEAST_SCALE = 0.02
#: What a configuration does by itself, and its parts don't foretell, is a priori as large as the
#: noise in the mean of so many runs: the more runs it has, the more its own are believed.
_FORETOLD_RUNS = 3.0
#: What the fit holds at most, and of how many of the latest runs the trend is removed; what its
#: hyperparameters are learnt from; these again when there are so many times as many
#: configurations.
_MOST_ROWS, _MOST_LEARNT, _LEARN_AGAIN = 300, 150, 1.5
_BEST_OF_EACH = 6
#: Standings are worked out for so many configurations at once.
_AT_ONCE = 2000
#: Configurations from which parameters that do nothing are told, at the least.
_FEWEST_TOLD = 16


@dataclass(slots=True)
class _Mean:
    runs: int
    value: Matrix


class TableModel:
    """A Gaussian process over configurations and sizes (see ``Covariance``).

    Proposals cost the same at the ten-thousandth trial: the fit holds the best at each size, the
    latest, and some of the rest.
    """

    def __init__(self, space: Space, sizes: Sequence[int]) -> None:
        self.encoding = Encoding(space)
        self.sizes = np.array(sizes, dtype=np.float64)
        self._columns = {size: n for n, size in enumerate(sizes)}
        self._covariance = Covariance(self.encoding, self.sizes)
        self._learnt_at = 0
        #: Parameters without which runs are pooled that are taken in from here on.
        self.idle: tuple[str, ...] = ()
        #: What was reduced, by the parameters that were idle: these are often found again.
        self._reduced = defaultdict[tuple[str, ...], dict[Configuration, Configuration]](dict)
        self.forget_all()

    def forget_all(self) -> None:
        """Forgets what was observed; how parameters matter stays."""
        count = len(self.sizes)
        prior = (1 - _COMMON_NOISE) * np.eye(count) + _COMMON_NOISE
        self._scatter = _PRIOR_RUNS * _NOISE**2 * prior
        self._freedom = _PRIOR_RUNS
        self._means: dict[Configuration, _Mean] = {}
        self._failed: dict[Configuration, None] = {}
        self._posterior: Posterior | None = None
        self._scale = np.ones(count)
        #: Runs taken in.
        self.runs = 0
        #: Configurations with a run that the fit holds; the default is not among them.
        self.kept: list[Configuration] = []

    @property
    def tried(self) -> int:
        """How many configurations have a run."""
        return len(self._means)

    def runs_of(self, configuration: Configuration) -> int:
        """The runs of a configuration that were taken in."""
        mean = self._means.get(configuration)
        return mean.runs if mean is not None else 0

    @property
    def noise(self) -> Matrix:
        """Standard deviation of one run at each size (logarithm)."""
        found: Matrix = np.sqrt(self._scatter.diagonal() / self._freedom)
        return found

    def add(self, runs: Sequence[tuple[Configuration, Speedups]]) -> None:
        """Takes in runs of configurations, or of what counts of these; the fit follows."""
        known, values = self.complete(runs)
        self.runs += len(known)
        offs, counts = [], []
        for configuration, value in zip(known, np.maximum(values, _SLOWEST), strict=True):
            small = self.reduce(configuration)
            mean = self._means.get(small)
            if mean is None:
                self._means[small] = _Mean(1, value)
                continue
            offs.append(value - mean.value)
            mean.runs += 1
            mean.value = mean.value + offs[-1] / mean.runs
            counts.append(mean.runs)
        if offs:
            self._learn_noise(np.array(offs), 1 - 1 / np.array(counts)[:, None])

    def _learn_noise(self, offs: Matrix, weights: Matrix) -> None:
        """Takes in how far runs are off the mean of those before them, one row for each."""
        freedom = self._freedom + np.arange(len(offs))[:, None]
        squares = whole = weights * offs**2
        for _ in offs:  # a run is drawn in by what those before it tell: right in a few passes
            before = np.cumsum(np.vstack([self._scatter.diagonal(), squares[:-1]]), axis=0)
            last, squares = squares, np.minimum(whole, _FAR**2 * weights * before / freedom)
            if np.array_equal(last, squares):
                break
        near = np.copysign(np.sqrt(squares), offs)
        self._scatter += near.T @ near
        self._freedom += len(offs)

    def complete(
        self, runs: Sequence[tuple[Configuration, Speedups]]
    ) -> tuple[list[Configuration], Matrix]:
        """Runs that can be compared at some size, and their speedups at all, one row for each.

        What a machine state hid is taken from the sizes beside it.
        """
        values = np.array([row for _, row in runs]).reshape(len(runs), len(self.sizes))
        is_some = ~np.isnan(values).all(axis=1)
        filled = _interpolate_gaps(values[is_some], np.log(self.sizes))
        return list(compress((configuration for configuration, _ in runs), is_some)), filled

    def remove_trend(
        self, runs: Sequence[tuple[Configuration, Speedups]]
    ) -> list[tuple[Configuration, Speedups]]:
        """Runs, one after the other, less what those made about the same time have in common.

        What they have in common is beside what the model expects of each now. Nothing is, unless
        runs were taken in. Of thousands, the latest are corrected.
        """
        late = [run for run in runs[-_MOST_ROWS:] if not np.isnan(run[1]).all()]
        if not self.runs or not late:
            return list(runs)
        known, values = self.complete(late)
        counted = [self.reduce(configuration) for configuration in known]
        trend = find_trend(values - self._expect(counted))
        defaults = (values - trend)[[configuration.is_default for configuration in counted]]
        if len(defaults):
            trend += np.median(defaults, axis=0)
        left = [(run[0], run[1] - off) for run, off in zip(late, trend, strict=True)]
        return [*runs[:-_MOST_ROWS], *left]

    def _expect(self, configurations: Sequence[Configuration]) -> Matrix:
        """Log speedups by size, by what was taken in; no hyperparameter is learnt for it."""
        posterior = Posterior(self._covariance, self._observed(self._kept()))
        mean = posterior.predict(self.encoding.rows(configurations))[0] * self._scale
        nothing = _Mean(0, np.zeros(len(self.sizes)))  # told later, or of no machine state then
        return self._believe_own(mean, [self._means.get(one, nothing) for one in configurations])

    @staticmethod
    def _believe_own(mean: Matrix, known: Sequence[_Mean]) -> Matrix:
        """The more runs a configuration has, the more these count."""
        runs = np.array([[one.runs] for one in known])
        seen = np.array([one.value for one in known])
        return mean + runs / (runs + _FORETOLD_RUNS) * (seen - mean)

    def add_failed(self, configuration: Configuration) -> None:
        """Takes in a failure: as if it were slow at every size, so that its like is avoided."""
        if configuration not in self._means:
            self._failed[configuration] = None

    def find_idle(self, *, is_last_test: bool = False) -> None:
        """Finds the parameters that nothing speaks for: runs taken in later are pooled without.

        All stay after few configurations, which don't tell parameters from each other; and where
        nothing speaks for any, so that the best is looked at all the same.

        Args:
            is_last_test: no ablation follows. Then more has to speak for a parameter, and where
                nothing does, the most likely one stays: a gain of one alone is its own.
        """
        if self.tried < _FEWEST_TOLD and not is_last_test:
            return
        self._learnt_at = 0
        self.fit()
        idle = self._covariance.find_idle(self._observed(self.kept), is_last_test=is_last_test)
        self.idle = tuple(self.encoding.space.parameters[n].name for n in idle)
        if all(self.reduce(configuration).is_default for configuration in self.kept):
            self.idle = self.idle[:-1] if is_last_test else ()

    def may_be_best(self) -> dict[Configuration, Flags]:
        """At which sizes each configuration may be the best, the default among them."""
        self.fit()
        known = [DEFAULT, *self.kept]
        mean, error = self.predict(self.encoding.rows(known))
        return dict(zip(known, mean + error >= (mean - error).max(axis=0), strict=True))

    def reduce(self, configuration: Configuration) -> Configuration:
        """A configuration without its idle parameters, but for those that others need."""
        if not self.idle:
            return configuration
        known = self._reduced[self.idle]
        found = known.get(configuration)
        if found is None:
            found = known[configuration] = self._without_idle(configuration)
        return found

    def _without_idle(self, configuration: Configuration) -> Configuration:
        space = self.encoding.space
        whole = small = self.encoding.assignment(configuration)
        for name in self.idle:
            if small.get(name) is None:
                continue
            lacking = space.unset_parameters(small, [name]) or small
            gone = {n for n in small if small[n] is not None and lacking.get(n) is None}
            small = lacking if gone.issubset(self.idle) else small
        return configuration if small is whole else space.configuration(small)

    def fit(self) -> None:
        """Fits what was taken in so far."""
        kept = self._kept()
        self.kept = [c for c in kept if c in self._means]
        if len(self._means) >= _LEARN_AGAIN * self._learnt_at:
            thinned = kept[:: max(1, math.ceil(len(kept) / _MOST_LEARNT))]
            self._covariance.learn(self._observed(thinned))
            self._learnt_at = len(self._means)
        self._posterior = Posterior(self._covariance, self._observed(kept))

    def predict(self, rows: Rows) -> tuple[Matrix, Matrix]:
        """Log speedup and its standard error at each size, one row for each configuration."""
        if self._posterior is None:
            self.fit()
        assert self._posterior is not None
        mean, variance = self._posterior.predict(rows)
        return mean * self._scale, np.sqrt(variance) * self._scale

    def correlation(self, rows: Rows, other: Rows) -> Matrix:
        """A priori, between the effects of two lists of configurations."""
        own = np.outer(self._covariance.within(rows), self._covariance.within(other))
        alike = self._covariance.liken(rows, other)
        found: Matrix = self._covariance.between(alike) / np.sqrt(np.maximum(own, 1e-12))
        return found

    def lucky_ones(self, deviations: float) -> list[Configuration]:
        """Configurations with one run that was ahead of the best by more than noise explains."""
        single = [c for c in self.kept if self._means[c].runs == 1]
        if not single:
            return []
        mean, error = self.predict(self.encoding.rows(self.kept))
        mark = np.maximum((mean - error).max(axis=0), 0.0) + deviations * self.noise
        values = np.array([self._means[c].value for c in single])
        return [c for c, value in zip(single, values, strict=True) if (value > mark).any()]

    def standings(self) -> tuple[Standing, ...]:
        """What is known of every configuration with a run, the default not among them."""
        known = self._tried()
        if not known:
            return ()
        tried = list(known)
        self.fit()
        # A part at a time: of thousands, the matrices would take more than all runs do.
        places = range(0, len(tried), _AT_ONCE)
        parts = [self.predict(self.encoding.rows(tried[n : n + _AT_ONCE])) for n in places]
        mean, error = map(np.vstack, zip(*parts, strict=True))
        mean = self._believe_own(mean, list(known.values()))
        runs = np.array([[one.runs] for one in known.values()])
        own = self.noise / np.sqrt(runs + _FORETOLD_RUNS)
        error = np.hypot(error, own)
        return tuple(
            Standing(
                configuration,
                known[configuration].runs,
                dict(zip(self._columns, means.tolist(), strict=True)),
                dict(zip(self._columns, errors.tolist(), strict=True)),
            )
            for configuration, means, errors in zip(tried, mean, error, strict=True)
        )

    def _tried(self) -> dict[Configuration, _Mean]:
        # By no lookup of each: this is done for every fit.
        found = self._means.copy()
        found.pop(DEFAULT, None)
        return found

    def _kept(self) -> list[Configuration]:
        """What the fit holds: the best at each size, the latest, and some of the others."""
        known = self._tried()
        tried, failed = list(known), list(self._failed)[-_MOST_ROWS // 10 :]
        if len(tried) <= _MOST_ROWS:
            return tried + failed
        values = np.array([one.value for one in known.values()])
        best = np.argpartition(-values, _BEST_OF_EACH, axis=0)[:_BEST_OF_EACH].ravel()
        kept = dict.fromkeys(best.tolist())
        rest = [n for n in reversed(range(len(tried))) if n not in kept]
        room = max(0, _MOST_ROWS - len(kept))
        kept |= dict.fromkeys(rest[: room // 2])
        # Evenly from the rest, so that the model goes on knowing what was bad.
        older = rest[room // 2 :]
        kept |= dict.fromkeys(older[:: max(1, math.ceil(len(older) / max(1, room - room // 2)))])
        return [tried[n] for n in sorted(kept)] + failed

    def _observed(self, kept: Sequence[Configuration]) -> Observed:
        failed = np.full(len(self.sizes), _FAILED)
        unknown = _Mean(1, failed)
        means = [self._means.get(c, unknown) for c in kept]
        values = np.array([np.zeros_like(failed), *(mean.value for mean in means)])
        self._scale = np.maximum(np.sqrt(np.mean(values**2, axis=0)), _LEAST_SCALE)
        rows = self.encoding.rows([DEFAULT, *kept])
        return Observed(
            rows=rows,
            alike=self._covariance.liken(rows, rows),
            means=values / self._scale,
            share=1 / np.array([_DEFAULT_RUNS, *(float(mean.runs) for mean in means)]),
            noise=self._noise() / np.outer(self._scale, self._scale),
        )

    def _noise(self) -> Matrix:
        """Covariance of a run between sizes: half as measured, half with one correlation."""
        found, spread = self._scatter / self._freedom, np.outer(self.noise, self.noise)
        count = len(found)
        common = ((found / spread).sum() - count) / max(1, count * count - count)
        common = float(np.clip(common, 0.0, 0.95))
        plain = (1 - common) * np.eye(count) + common
        shrunk: Matrix = (found + plain * spread) / 2
        return shrunk


def _interpolate_gaps(values: Matrix, at: Matrix) -> Matrix:
    """Rows with their gaps (NaN) filled: linearly between the known columns on both sides.

    Outside of these, the nearest known column's value stands. All rows at once: one by one,
    20,000 of them take 0.2 s.

    Args:
        values: rows of which each has a value at least.
        at: where the columns are, in ascending order.
    """
    known, end = ~np.isnan(values), len(at)
    last = np.maximum.accumulate(np.where(known, np.arange(end), -1), axis=1)
    following = np.minimum.accumulate(np.where(known, np.arange(end), end)[:, ::-1], axis=1)
    rows, columns = np.nonzero(~known)
    left, right = last[rows, columns], following[:, ::-1][rows, columns]
    left, right = np.where(left < 0, right, left), np.where(right == end, left, right)
    low, high = values[rows, left], values[rows, right]
    share = (at[columns] - at[left]) / np.where(left < right, at[right] - at[left], 1.0)
    filled = values.copy()
    filled[rows, columns] = low + share * (high - low)
    return filled
