"""The surrogate model of the search: a Gaussian process over configurations and sizes.

It predicts the table of log speedups (configurations x sizes) from the runs so far, learns the
noise of a run from repeated configurations, and drops idle parameters. The process itself is in
``covariance``; this module prepares the data for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress

import numpy as np

from commtune.model import DEFAULT, Configuration
from commtune.spaces.space import Space
from commtune.tuner.search.covariance import Covariance, Flags, Observed, Posterior
from commtune.tuner.search.encoding import EncodedValue, Encoding, Matrix, Rows
from commtune.tuner.search.means import MeanTable
from commtune.tuner.search.reducing import Reduction
from commtune.tuner.search.standings import Speedups, Standing, find_center
from commtune.tuner.search.trend import find_trend
from commtune.tuner.search.value_tests import find_active_values

#: Log speedups are clipped from below at the first value: one slow run, or how slow something is,
#: must not decide what the model expects of similar configurations. With a lower limit, fewer
#: speedups are found under noise (docs/search-trials.md, clipping slow runs). A failure counts as
#: the second value at every size.
_CLIPPED_AT, _FAILED = -0.15, -0.7
#: The prior of a run's noise: its standard deviation (logarithm), its correlation between sizes,
#: and its weight in runs. Deviations are clipped at this many standard deviations, so that a few
#: disturbed runs don't pass for general noise.
_PRIOR_NOISE, _PRIOR_CORRELATION, _PRIOR_RUNS, _CLIP_SDS = 0.1, 0.6, 8.0, 3.0
#: Each size is divided by the root mean square of its log speedups, but by no less than this.
_LEAST_SCALE = 0.02
#: The weight, in runs, of the model's prediction for a configuration against its own mean: the
#: variance of what the model can't predict of it is a priori that of a mean of this many runs.
_PREDICTION_RUNS = 3.0
#: The most configurations in the fit, and the number of latest runs whose trend is removed; the
#: most from which hyperparameters are learnt; and the growth of the number of configurations
#: after which they are learnt again. These bound the time of a proposal.
_MOST_ROWS, _MOST_LEARNT, _LEARN_AGAIN = 300, 150, 1.5
#: Configurations with the best means at each size that are always in the fit.
_BEST_OF_EACH = 6
#: Configurations that are predicted in one batch; limits the memory of the matrices.
_AT_ONCE = 2000
#: With fewer configurations no idle parameters are dropped if there is time for ablation: they
#: don't separate the effects of parameters.
_FEWEST_FOR_SELECTION = 16


class TableModel:
    """A Gaussian process over configurations and sizes (see ``Covariance``).

    The cost of a proposal doesn't grow with the number of trials: in large campaigns the fit is
    of a subset, the best at each size, the latest, and some of the others.

    Args:
        sizes: message sizes, bytes, ascending.
    """

    def __init__(self, space: Space, sizes: Sequence[int]) -> None:
        self.encoding = Encoding(space)
        self.sizes = np.array(sizes, dtype=np.float64)
        self._bytes = tuple(sizes)
        self._covariance = Covariance(self.encoding, self.sizes)
        self._learnt_at = 0
        #: The idle values. Runs that are added from now on and differ only in these count as runs
        #: of one configuration.
        self.idle: tuple[EncodedValue, ...] = ()
        #: A cache, by idle values: the same are often found idle again.
        self._reductions: dict[tuple[EncodedValue, ...], Reduction] = {}
        self.forget_all()

    def forget_all(self) -> None:
        """Forgets all runs; the hyperparameters stay."""
        count = len(self.sizes)
        prior = (1 - _PRIOR_CORRELATION) * np.eye(count) + _PRIOR_CORRELATION
        self._scatter = _PRIOR_RUNS * _PRIOR_NOISE**2 * prior
        self._freedom = _PRIOR_RUNS
        self._means = MeanTable(count)
        self._failed: dict[Configuration, None] = {}
        self._posterior: Posterior | None = None
        #: Whether the posterior is that of all runs so far.
        self._is_current = False
        self._scale = np.ones(count)
        #: The number of runs that were added.
        self.runs = 0
        #: The configurations with a run that are in the fit, without the default.
        self.fitted: list[Configuration] = []

    @property
    def tried(self) -> int:
        """The number of configurations with a run."""
        return len(self._means)

    def runs_of(self, configuration: Configuration) -> int:
        """Returns the number of runs that were added for a configuration."""
        return self._means.runs_of(configuration)

    @property
    def noise(self) -> Matrix:
        """The standard deviation of one run's log speedup at each size."""
        found: Matrix = np.sqrt(self._scatter.diagonal() / self._freedom)
        return found

    def add(self, runs: Sequence[tuple[Configuration, Speedups]]) -> None:
        """Adds runs, without their idle parameters, and updates the noise; doesn't fit.

        Args:
            runs: configurations with their log speedups by size; NaN where not comparable.
        """
        known, values = self.complete(runs)
        self._is_current = False
        self.runs += len(known)
        small = [self.drop_idle(configuration) for configuration in known]
        deviations, counts = self._means.add(small, np.maximum(values, _CLIPPED_AT))
        if len(deviations):
            self._update_noise(deviations, 1 - 1 / counts)

    def _update_noise(self, deviations: Matrix, weights: Matrix) -> None:
        """Adds clipped deviations of runs, from the means of those before them, to the noise.

        With the weight (n - 1) / n for the n-th run, squared deviations are unbiased.
        """
        freedom = self._freedom + np.arange(len(deviations))[:, None]
        squares = whole = weights * deviations**2
        for _ in deviations:  # the limit of a run depends on the clipped ones before it: iterate
            before = np.cumsum(np.vstack([self._scatter.diagonal(), squares[:-1]]), axis=0)
            last, squares = squares, np.minimum(whole, _CLIP_SDS**2 * weights * before / freedom)
            if np.array_equal(last, squares):
                break
        near = np.copysign(np.sqrt(squares), deviations)
        self._scatter += near.T @ near
        self._freedom += len(deviations)

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
        """Subtracts the trend of the machine from log speedups (see ``find_trend``).

        The trend is that of residuals against the model as it is, so nothing is subtracted
        before runs were added. It is shifted so that the default's median stays 0. Only the
        latest 300 runs are corrected; of these, runs that can't be compared are dropped.

        Args:
            runs: in the order in which they were made.
        """
        if not self.runs:
            return list(runs)
        late = self._subtract_trend(runs[-_MOST_ROWS:], self._fit_as_it_is())
        return [*runs[:-_MOST_ROWS], *late]

    def remove_trend_from_all(
        self, runs: Sequence[tuple[Configuration, Speedups]]
    ) -> list[tuple[Configuration, Speedups]]:
        """Subtracts the trend from all runs, so many at a time (see ``remove_trend``)."""
        if not self.runs:
            return list(runs)
        fitted = self._fit_as_it_is()
        parts = (runs[start : start + _MOST_ROWS] for start in range(0, len(runs), _MOST_ROWS))
        return [run for part in parts for run in self._subtract_trend(part, fitted)]

    def _subtract_trend(
        self, runs: Sequence[tuple[Configuration, Speedups]], fitted: Posterior
    ) -> list[tuple[Configuration, Speedups]]:
        known, values = self.complete(runs)
        if not known:
            return list(runs)
        counted = [self.drop_idle(configuration) for configuration in known]
        trend = find_trend(values - self._expect(counted, fitted))
        defaults = (values - trend)[[configuration.is_default for configuration in counted]]
        if len(defaults):
            trend += find_center(defaults)
        seen = (row for _, row in runs if not np.isnan(row).all())
        return [(one, row - off) for one, row, off in zip(known, seen, trend, strict=True)]

    def _fit_as_it_is(self) -> Posterior:
        """Fits to all runs so far, with the hyperparameters as they are."""
        if self._posterior is not None and self._is_current:
            return self._posterior
        return Posterior(self._covariance, self._observe(self._choose_fitted()))

    def _expect(self, configurations: Sequence[Configuration], fitted: Posterior) -> Matrix:
        """Predicts log speedups by size."""
        mean = fitted.predict_mean(self.encoding.rows(configurations)) * self._scale
        # A run may belong to a configuration that has none in the model: those added had other
        # idle parameters, or no machine state in which they could be compared.
        nothing = 0, np.zeros(len(self.sizes))
        return _shrink_means(mean, *self._means.look_up(configurations, nothing))

    def add_failed(self, configuration: Configuration) -> None:
        """Adds a failure, as a slow run at every size, if the configuration has no run."""
        if configuration not in self._means:
            self._failed[configuration] = None
            self._is_current = False

    def find_idle(self, *, is_strict: bool = False) -> None:
        """Finds the idle parameters by the evidence for each (see ``Covariance.find_idle``).

        Where only the test of single values finds a parameter active (``find_active_values``), its
        values that show nothing are idle.

        None are dropped after few configurations, nor where that would leave only the default:
        the best configurations are to be run again all the same.

        Args:
            is_strict: whether time is too short to ablate all. Then more evidence is needed. If
                none has enough, the likeliest value stays, since the speedup of a single value
                is its own.
        """
        if self.tried < _FEWEST_FOR_SELECTION and not is_strict:
            return
        self._learnt_at = 0
        self.fit()
        observed = self._observe(self.fitted)
        idle = self._covariance.find_idle(observed, is_strict=is_strict)
        known = [DEFAULT, *self.fitted]
        runs, means = self._means.look_up(known, (0, np.zeros(len(self.sizes))))
        tested = find_active_values(self.encoding.rows(known), means, runs)
        if active := {owner for owner, _ in tested.active}.intersection(idle):
            idle = self._covariance.find_idle(observed, sorted(active), is_strict=is_strict)
        items = self.encoding.encoded_values
        whole = [item for n in idle for item in items if item[0] == n]
        self.idle = (*whole, *(item for item in tested.idle if item[0] in active))
        if all(self.drop_idle(configuration).is_default for configuration in self.fitted):
            rest = (item for item in items if item != tested.likeliest)
            self.idle = tuple(rest) if is_strict else ()

    def find_possibly_best(self) -> dict[Configuration, Flags]:
        """Flags the sizes at which each fitted configuration may be best, within its error."""
        self.fit()
        known = [DEFAULT, *self.fitted]
        mean, error = self.predict(self.encoding.rows(known))
        return dict(zip(known, mean + error >= (mean - error).max(axis=0), strict=True))

    def drop_idle(self, configuration: Configuration) -> Configuration:
        """Returns a configuration without its idle values, except those that others need."""
        if not self.idle:
            return configuration
        if self.idle not in self._reductions:
            self._reductions[self.idle] = Reduction(self.encoding, self.idle)
        return self._reductions[self.idle].reduce(configuration)

    def fit(self) -> None:
        """Fits the process to the runs so far; learns hyperparameters if there are many more."""
        is_due = len(self._means) >= _LEARN_AGAIN * self._learnt_at
        if self._is_current and not is_due:
            return
        kept = self._choose_fitted()
        self.fitted = [c for c in kept if c in self._means]
        if is_due:
            thinned = kept[:: max(1, math.ceil(len(kept) / _MOST_LEARNT))]
            self._covariance.learn(self._observe(thinned))
            self._learnt_at = len(self._means)
        self._posterior = Posterior(self._covariance, self._observe(kept))
        self._is_current = True

    def predict(self, rows: Rows) -> tuple[Matrix, Matrix]:
        """Predicts log speedups and their standard errors, configurations x sizes."""
        mean, variance = self._fitted_posterior().predict(rows)
        return mean * self._scale, np.sqrt(variance) * self._scale

    def predict_mean(self, rows: Rows) -> Matrix:
        """Predicts log speedups alone, as ``predict`` does."""
        return self._fitted_posterior().predict_mean(rows) * self._scale

    def _fitted_posterior(self) -> Posterior:
        if self._posterior is None:
            self.fit()
        assert self._posterior is not None
        return self._posterior

    def predict_lead(self, large: Configuration, small: Configuration) -> Matrix:
        """Predicts by size what one configuration gains over another, in standard errors."""
        rows = self.encoding.rows([large, small])
        mean, variance = self._fitted_posterior().predict_difference(rows)
        found: Matrix = mean / np.sqrt(variance)
        return found

    def prior_correlation(self, rows: Rows, other: Rows) -> Matrix:
        """Returns the prior correlation between the effects of two lists of configurations."""
        own = np.outer(
            self._covariance.prior_variance(rows), self._covariance.prior_variance(other)
        )
        similarity = self._covariance.compare_rows(rows, other)
        found: Matrix = self._covariance.between_rows(similarity) / np.sqrt(np.maximum(own, 1e-12))
        return found

    def list_single_run_leaders(self, deviations: float) -> list[Configuration]:
        """Lists configurations whose only run is this many deviations ahead of the best."""
        single = [c for c in self.fitted if self.runs_of(c) == 1]
        if not single:
            return []
        mean, error = self.predict(self.encoding.rows(self.fitted))
        mark = np.maximum((mean - error).max(axis=0), 0.0) + deviations * self.noise
        _, values = self._means.look_up(single, (0, mark))
        return list(compress(single, (values > mark).any(axis=1).tolist()))

    def standings(self) -> tuple[Standing, ...]:
        """Estimates every configuration with a run, without the default."""
        return self.estimate_standings(self._means.others)

    def estimate_standings(self, asked: Sequence[Configuration]) -> tuple[Standing, ...]:
        """Estimates configurations, which may have no run."""
        if not asked:
            return ()
        self.fit()
        # In batches: for thousands, the matrices would take more memory than all runs.
        places = range(0, len(asked), _AT_ONCE)
        parts = [self.predict(self.encoding.rows(asked[n : n + _AT_ONCE])) for n in places]
        mean, error = map(np.vstack, zip(*parts, strict=True))
        runs, own_means = self._means.look_up(asked, (0, np.zeros(len(self.sizes))))
        mean = _shrink_means(mean, runs, own_means)
        own = self.noise / np.sqrt(runs + _PREDICTION_RUNS)
        error = np.hypot(error, own)
        return tuple(
            Standing(
                configuration,
                dict(zip(self._bytes, means.tolist(), strict=True)),
                dict(zip(self._bytes, errors.tolist(), strict=True)),
            )
            for configuration, means, errors in zip(asked, mean, error, strict=True)
        )

    def _choose_fitted(self) -> list[Configuration]:
        """Chooses configurations for the fit: the best at each size, the latest, some others."""
        tried, failed = self._means.others, list(self._failed)[-_MOST_ROWS // 10 :]
        if len(tried) <= _MOST_ROWS:
            return tried + failed
        values = self._means.values_of_others
        best = np.unique(np.argpartition(-values, _BEST_OF_EACH, axis=0)[:_BEST_OF_EACH])
        rest = np.delete(np.arange(len(tried)), best)[::-1]
        room = max(0, _MOST_ROWS - len(best))
        latest, older = rest[: room // 2], rest[room // 2 :]
        # Evenly from the rest, so that the model still knows what was slow.
        some = older[:: max(1, math.ceil(len(older) / max(1, room - room // 2)))]
        return [tried[n] for n in np.sort(np.r_[best, latest, some]).tolist()] + failed

    def _observe(self, kept: Sequence[Configuration]) -> Observed:
        runs, means = self._means.look_up(kept, (1, np.full(len(self.sizes), _FAILED)))
        self._is_current = False  # since the scale is no longer that of the posterior
        square = (means**2).sum(axis=0) / (len(means) + 1)
        self._scale = np.maximum(np.sqrt(square), _LEAST_SCALE)
        rows = self.encoding.rows(kept)
        return Observed(
            rows=rows,
            similarity=self._covariance.compare_rows(rows, rows),
            means=means / self._scale,
            share=1 / runs.ravel(),
            common=1 / max(1, self._means.runs_of(DEFAULT)),
            noise=self._estimate_noise() / np.outer(self._scale, self._scale),
        )

    def _estimate_noise(self) -> Matrix:
        """Estimates a run's noise covariance, shrunk half-way to one with equal correlations."""
        found, spread = self._scatter / self._freedom, np.outer(self.noise, self.noise)
        count = len(found)
        common = ((found / spread).sum() - count) / max(1, count * count - count)
        common = float(np.clip(common, 0.0, 0.95))
        plain = (1 - common) * np.eye(count) + common
        shrunk: Matrix = (found + plain * spread) / 2
        return shrunk


def _shrink_means(mean: Matrix, runs: Matrix, seen: Matrix) -> Matrix:
    """Shrinks configurations' own means towards predicted ones, less with more runs."""
    return mean + runs / (runs + _PREDICTION_RUNS) * (seen - mean)


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
