"""A Gaussian process over the table of log speedups, its covariance and its posterior.

The table is configurations x sizes. Its covariance is a Kronecker product of a factor between
configurations and one between sizes; so is the noise, of the runs of each configuration and the
covariance of a run between sizes. Hence likelihood and posterior follow from one
eigendecomposition of each factor (Rasmussen & Williams 2006; Rakitsch et al. 2013).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from commtune.tuner.search.encoding import Encoding, Matrix, Rows

Flags = NDArray[np.bool_]
# Places in the vector of hyperparameters: output scale, variance of a configuration's own effect,
# length scale (powers of two of the size), and correlation that all sizes share; then one weight
# for each parameter of the space.
_SCALE, _OWN, _LENGTH_SCALE, _COMMON, _WEIGHTS = 0, 1, 2, 3, 4
#: A change of these leaves the eigenvectors of the factor between configurations as they are.
_SAME_EIGENVECTORS = (_SCALE, _LENGTH_SCALE, _COMMON)
#: Where learning starts, and its bounds.
_START = (1.0, 0.05, 4.0, 0.3)
_LEAST = (1e-3, 0.003, 0.5, 0.05)
_MOST = (100.0, 2.0, 50.0, 0.9)
_LEAST_WEIGHT, _MOST_WEIGHT = 0.003, 10.0
#: Factors by which coordinate descent changes hyperparameters, one sweep over all for each. So
#: coarse on purpose: a fit to convergence fits the noise of few runs (docs/search-trials.md).
_STEPS = (3.0, 1.8)
#: Columns that are added to a decomposition before it is made anew: each of them makes the next
#: step a little more expensive.
_MOST_ADDED = 20
#: A parameter is idle unless it increases the log marginal likelihood of the runs by this much,
#: or by the second value where time is short (docs/search-trials.md, evidence for a
#: variable). Meanwhile each configuration is granted an effect of its own with at least the third
#: as variance, so that what no parameter explains does not pass for the effect of one.
_LEAST_EVIDENCE, _LEAST_EVIDENCE_ALONE, _LEAST_OWN = 3.0, 6.0, 0.02
#: Shares of that variance which interactions of the parameters kept so far may explain. What is
#: left for each configuration is at least this share of a run's noise (variance).
_INTERACTION_SHARES, _LEAST_OWN_NOISE = (0.0, 0.5, 0.8, 0.95, 0.99), 0.1
#: The prior of weights: log likelihood lost for each factor of e from where a weight starts.
_WEIGHT_PENALTY = 0.3


@dataclass(frozen=True)
class _Similarity:
    """The similarity between two lists of configurations, whatever the hyperparameters.

    Attributes:
        left, right: factors (rows x values, values x rows, over all values of all parameters)
            whose product sums the similarity of two configurations' values over parameters.
        own: similarity of their own effects: 1 if both are the same and not the default, else 0.
    """

    left: Matrix
    right: Matrix
    own: Matrix


@dataclass(frozen=True)
class Observed:
    """The mean log speedups of configurations, in units of each size's scale.

    Attributes:
        similarity: of these rows to one another.
        share: variance of each mean as a share of a run's, one over its number of runs.
        common: the same of the error that all means share, that of the default's time.
        noise: covariance of one run between sizes.
    """

    rows: Rows
    similarity: _Similarity
    means: Matrix
    share: Matrix
    common: float
    noise: Matrix

    @cached_property
    def whitening(self) -> Matrix:
        """The symmetric root of the inverse of the noise."""
        values, vectors = np.linalg.eigh(self.noise)
        found: Matrix = (vectors / np.sqrt(values)) @ vectors.T
        return found

    @cached_property
    def root_runs(self) -> Matrix:
        """The square root of the number of runs of each mean."""
        return 1 / np.sqrt(self.share)

    def decorrelate_rows(self, matrix: Matrix) -> Matrix:
        """Makes the errors of rows, scaled by ``root_runs``, independent of one another.

        Multiplies by the root of the inverse of 1 plus a matrix of rank 1 (Sherman & Morrison).
        """
        square = max(float(self.root_runs @ self.root_runs), 1e-12)
        shrunk = (1 - 1 / np.sqrt(1 + self.common * square)) / square
        found: Matrix = matrix - np.outer(shrunk * self.root_runs, self.root_runs @ matrix)
        return found


class Covariance:
    """The covariance functions, and their hyperparameters.

    Between configurations it is an additive kernel, a weighted sum over the parameters that both
    set, plus a configuration's own effect, which covers interactions of parameters. The default
    has no variance, so a parameter does nothing unless runs show otherwise.
    """

    def __init__(self, encoding: Encoding, sizes: Matrix) -> None:
        counts = [len(similarity) for similarity in encoding.similarity]
        #: For each value of each parameter: the parameter, and the value's number there.
        known = [(n, place) for n, count in enumerate(counts) for place in range(count)]
        self._owner, self._place = np.array(known, dtype=np.intp).reshape(-1, 2).T
        self._value_similarity = np.zeros((len(self._owner), len(self._owner)))
        for n, similarity in enumerate(encoding.similarity):
            self._value_similarity[np.ix_(self._owner == n, self._owner == n)] = similarity
        self._size_distances = np.abs(np.subtract.outer(*[np.log2(np.maximum(sizes, 1.0))] * 2))
        #: Smaller in a large space, whose configurations set many parameters that matter less.
        self._usual_weight = min(0.3, 2.0 / max(1, len(counts)))
        self.values = np.array([*_START, *[self._usual_weight] * len(counts)])
        self._least = np.array([*_LEAST, *[_LEAST_WEIGHT] * len(counts)])
        self._most = np.array([*_MOST, *[_MOST_WEIGHT] * len(counts)])

    def compare_rows(self, one: Rows, other: Rows) -> _Similarity:
        """Compares the configurations of two lists of rows."""
        left, right = self._indicators(one), self._indicators(other)
        common = left @ right.T
        is_set = np.outer(one.any(axis=1), np.ones(len(other), dtype=bool))
        own: Matrix = (is_set & (common == one.shape[1])).astype(np.float64)
        return _Similarity(left @ self._value_similarity, right.T, own)

    def _indicators(self, rows: Rows) -> Matrix:
        found: Matrix = (rows[:, self._owner] == self._place).astype(np.float64)
        return found

    def between_rows(self, similarity: _Similarity) -> Matrix:
        """Returns the covariance between the configurations of two lists of rows."""
        weights = self.values[_WEIGHTS:][self._owner]
        return self._sum((similarity.left * weights) @ similarity.right, similarity.own)

    def prior_variance(self, rows: Rows) -> Matrix:
        """Returns the prior variance of each configuration."""
        is_set = (rows > 0).astype(np.float64)
        return self._sum(is_set @ self.values[_WEIGHTS:], np.asarray(rows.any(axis=1)))

    def _sum(self, common: Matrix, own: Matrix | Flags) -> Matrix:
        scale, of_own = self.values[: _OWN + 1]
        found: Matrix = scale * (common + of_own * own)
        return found

    def sizes(self) -> Matrix:
        """Returns the covariance between sizes: one part is constant, one decays with distance."""
        reach, common = self.values[_LENGTH_SCALE], self.values[_COMMON]
        found: Matrix = common + (1 - common) * np.exp(-self._size_distances / reach)
        return found

    def learn(self, observed: Observed) -> None:
        """Fits the hyperparameters: two sweeps of coordinate descent on their log posterior."""
        for step in _STEPS:
            now = Posterior(self, observed)
            for place, before in enumerate(self.values.tolist()):
                for factor in (step, 1 / step):
                    moved = np.clip(before * factor, self._least[place], self._most[place])
                    if moved != before and (found := self._move(now, observed, place, moved)):
                        now = found
                        break

    def _move(
        self, now: Posterior, observed: Observed, place: int, moved: float
    ) -> Posterior | None:
        """Changes a hyperparameter if that makes the log posterior grow; returns it then."""
        before, self.values[place] = self.values[place], moved
        if place < _WEIGHTS:
            found = Posterior(self, observed, now if place in _SAME_EIGENVECTORS else None)
            if found.log_likelihood > now.log_likelihood:
                return found
        else:
            added = self._factors(observed.similarity, place - _WEIGHTS, moved - before)
            now_drawn, drawn = np.abs(np.log(np.array([before, moved]) / self._usual_weight))
            if now.likelihood_growth(*added) > _WEIGHT_PENALTY * float(drawn - now_drawn):
                now.add(*added)
                return now if now.added <= _MOST_ADDED else Posterior(self, observed)
        self.values[place] = before
        return None

    def _factors(self, similarity: _Similarity, n: int, weight: float) -> tuple[Matrix, Matrix]:
        """Factorizes the covariance between configurations that a parameter's weight adds."""
        mine = self._owner == n
        return self.values[_SCALE] * weight * similarity.left[:, mine], similarity.right[mine]

    def find_idle(
        self, observed: Observed, active: Sequence[int] = (), *, is_strict: bool
    ) -> list[int]:
        """Finds the parameters (by number) that the runs give too little evidence for.

        Forward selection by marginal likelihood. Backward elimination may drop the parameter that
        matters, where many occur together. The last returned has the most evidence. Interactions
        of those that are kept don't count as noise (see ``_fit_interactions``).

        Args:
            active: parameters that are not idle, whatever their evidence.
            is_strict: whether time is too short to ablate all, so that more evidence is needed.
        """
        least = _LEAST_EVIDENCE_ALONE if is_strict else _LEAST_EVIDENCE
        before = self.values.copy()
        self.values[_OWN] = max(self.values[_OWN], _LEAST_OWN)
        known, weights = before[_WEIGHTS:], self.values[_WEIGHTS:]
        weights[:] = 0.0
        weights[[*active]] = known[[*active]]
        idle, share = np.flatnonzero(weights == 0).tolist(), 0.0
        while idle:
            now, share = self._fit_interactions(observed, weights > 0, share)
            growth = {
                n: now.likelihood_growth(*self._factors(observed.similarity, n, known[n]))
                for n in idle
            }
            idle.sort(key=growth.__getitem__)
            if growth[idle[-1]] < least:
                break
            place = idle.pop()
            weights[place] = known[place]
        self.values[:] = before
        return idle

    def _fit_interactions(
        self, observed: Observed, kept: Flags, least_share: float
    ) -> tuple[Posterior, float]:
        """Finds the most likely share of interactions in own effects; returns the posterior too.

        Configurations that set the kept parameters alike share what these bring together.
        Without that, a large interaction is taken for a large effect of each configuration, which
        hides smaller effects of other parameters.

        Args:
            kept: flags of parameters.
            least_share: where the search for the share begins; it ends at the first maximum.
        """
        similarity, rows = observed.similarity, observed.rows[:, kept]
        groups: dict[bytes, int] = {}
        group = np.array([groups.setdefault(row.tobytes(), len(groups)) for row in rows])
        alike = (group[:, None] == group) & np.any(rows, axis=1)[:, None]
        least = _LEAST_OWN_NOISE * float(np.diag(observed.noise).mean())
        least /= self.values[_SCALE] * self.values[_OWN]
        best: tuple[Posterior, float] | None = None
        for share in (share for share in _INTERACTION_SHARES if share >= least_share):
            own = max(1 - share, least) * similarity.own + share * alike
            found = Posterior(self, replace(observed, similarity=replace(similarity, own=own)))
            if best is not None and found.log_likelihood <= best[0].log_likelihood:
                break
            best = found, share
        assert best is not None
        return best


class Posterior:
    """The posterior of the process, given observed means.

    Args:
        known: a posterior of the same means whose hyperparameters differ only in
            ``_SAME_EIGENVECTORS``; its decomposition is used again.
    """

    def __init__(
        self, covariance: Covariance, observed: Observed, known: Posterior | None = None
    ) -> None:
        self._covariance, self._rows = covariance, observed.rows
        whitening = observed.whitening
        self._sizes = covariance.sizes()
        size_values, size_vectors = np.linalg.eigh(whitening @ self._sizes @ whitening)
        self._size_values = np.maximum(size_values, 0)
        scale = covariance.values[_SCALE]
        if known is None:
            between = covariance.between_rows(observed.similarity) / scale
            between *= np.outer(observed.root_runs, observed.root_runs)
            between = observed.decorrelate_rows(observed.decorrelate_rows(between).T)
            self._row_values, self._row_vectors = np.linalg.eigh(between)
        else:
            self._row_values, self._row_vectors = known._row_values, known._row_vectors
        self._turned = observed.root_runs[:, None] * observed.decorrelate_rows(self._row_vectors)
        self._variances = 1 + scale * np.outer(np.maximum(self._row_values, 0), self._size_values)
        seen = self._turned.T @ observed.means @ whitening @ size_vectors
        self._solved = seen / self._variances
        self._size_projection = self._sizes @ whitening @ size_vectors
        #: What was added between rows since, and by how much the log likelihood grew.
        self._left, self._right = self._turned[:, :0], self._turned[:0]
        self._grown = 0.0
        self.log_likelihood = -0.5 * float((seen * self._solved + np.log(self._variances)).sum())

    def predict(self, rows: Rows) -> tuple[Matrix, Matrix]:
        """Predicts mean and variance: one row a configuration, one column a size."""
        prior = np.outer(self._covariance.prior_variance(rows), np.diag(self._sizes))
        return self._predict(self._compare(rows), prior)

    def predict_difference(self, rows: Rows) -> tuple[Matrix, Matrix]:
        """Predicts mean and variance of the first of two rows less the second, by size."""
        one, other = self._compare(rows)
        between = self._covariance.between_rows(self._covariance.compare_rows(rows, rows))
        prior = (between[0, 0] + between[1, 1] - 2 * between[0, 1]) * np.diag(self._sizes)
        return self._predict(one - other, prior)

    def _predict(self, near: Matrix, prior: Matrix) -> tuple[Matrix, Matrix]:
        """Returns mean and variance from covariances with what is known, and the prior."""
        known = near**2 @ (1 / self._variances) @ (self._size_projection**2).T
        mean = near @ self._solved @ self._size_projection.T
        return mean, np.maximum(prior - known, 1e-10)

    def predict_mean(self, rows: Rows) -> Matrix:
        """Predicts the mean alone, as ``predict`` does."""
        found: Matrix = self._compare(rows) @ self._solved @ self._size_projection.T
        return found

    def _compare(self, rows: Rows) -> Matrix:
        similarity = self._covariance.compare_rows(rows, self._rows)
        found: Matrix = self._covariance.between_rows(similarity) @ self._turned
        return found

    def likelihood_growth(self, left: Matrix, right: Matrix) -> float:
        """Returns the growth of the log likelihood if ``left @ right`` is added between rows.

        By Woodbury's identity, at the cost of the few columns of ``left``, not of all rows.
        """
        return self._growth(*self._join(left, right)) - self._grown

    def add(self, left: Matrix, right: Matrix) -> None:
        """Adds ``left @ right`` between rows; only ``likelihood_growth`` takes notice.

        While few columns are added, this costs less than a new decomposition.
        """
        self._left, self._right = self._join(left, right)
        self._grown = self._growth(self._left, self._right)

    @property
    def added(self) -> int:
        """The number of columns that were added."""
        return len(self._right)

    def _join(self, left: Matrix, right: Matrix) -> tuple[Matrix, Matrix]:
        turned = self._turned
        return np.hstack([self._left, turned.T @ left]), np.vstack([self._right, right @ turned])

    def _growth(self, left: Matrix, right: Matrix) -> float:
        weights = (self._size_values / self._variances).T[:, None, :]
        inner = np.eye(len(right)) + right * weights @ left
        seen, moved = self._solved.T @ right.T, (self._solved * self._size_values).T @ left
        known = np.linalg.solve(inner, seen[:, :, None])[:, :, 0]
        return 0.5 * float((moved * known).sum() - np.linalg.slogdet(inner)[1].sum())
