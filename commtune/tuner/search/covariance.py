"""How effects of configurations hang together, and how they do between sizes.

The table of log speedups (configurations x sizes) is a Gaussian process whose covariance is a
Kronecker product: one factor between configurations, one between sizes. Noise is one too: the
runs of each configuration, and how runs differ at each pair of sizes. So everything follows from
one eigendecomposition of each factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from commtune.tuner.search.encoding import Encoding, Matrix, Rows

Flags = NDArray[np.bool_]
# Places in the vector of hyperparameters; after them one weight a parameter of the space.
_SCALE, _OWN, _REACH, _COMMON, _WEIGHTS = 0, 1, 2, 3, 4
#: What is between rows has the same eigenvectors whatever these are.
_SAME_EIGENVECTORS = (_SCALE, _REACH, _COMMON)
_START = (1.0, 0.05, 4.0, 0.3)
_LEAST = (1e-3, 0.003, 0.5, 0.05)
_MOST = (100.0, 2.0, 50.0, 0.9)
_LEAST_WEIGHT, _MOST_WEIGHT = 0.003, 10.0
#: Steps of the search for hyperparameters, one sweep over all of them a step.
_STEPS = (3.0, 1.8)
#: A parameter does nothing unless the logarithm of the likelihood of the runs grows by this with
#: it; by the second, where no ablation follows that would leave it out. What no parameter explains
#: must not pass for the effect of one that it fell together with: so a configuration may do this
#: much by itself, at least.
_SUPPORT, _SUPPORT_ALONE, _LEAST_OWN = 3.0, 6.0, 0.02
#: How strongly weights are drawn to where they start, per factor of e.
_DRAWN = 0.3


@dataclass(frozen=True)
class Likeness:
    """How alike the configurations of two lists of rows are, whatever the hyperparameters.

    Attributes:
        left, right: how alike two values are, summed over parameters, is a product of these: a
            column, or a row, for each value of each parameter.
        is_equal: whether two are the same, and not the default.
    """

    left: Matrix
    right: Matrix
    is_equal: Flags


@dataclass(frozen=True)
class Observed:
    """Means over the runs of each configuration, in units of each size's scale.

    Attributes:
        alike: of these rows with one another.
        share: of a run's variance that is left in each mean.
        noise: covariance of one run between sizes.
    """

    rows: Rows
    alike: Likeness
    means: Matrix
    share: Matrix
    noise: Matrix


class Covariance:
    """Hyperparameters, and the covariances that follow from them.

    Between configurations it is a sum over the parameters that both set, plus what is a
    configuration's own: there stands what parameters do only together. It is zero for the default:
    a parameter does nothing unless it is seen to.
    """

    def __init__(self, encoding: Encoding, sizes: Matrix) -> None:
        counts = [len(alike) for alike in encoding.alike]
        #: Of each value of each parameter: which parameter's, and its place there.
        known = [(n, place) for n, count in enumerate(counts) for place in range(count)]
        self._owner, self._place = np.array(known, dtype=np.intp).reshape(-1, 2).T
        self._alike = np.zeros((len(self._owner), len(self._owner)))
        for n, alike in enumerate(encoding.alike):
            self._alike[np.ix_(self._owner == n, self._owner == n)] = alike
        self._apart = np.abs(np.subtract.outer(*[np.log2(np.maximum(sizes, 1.0))] * 2))
        #: In a wide space configurations set many parameters, and each matters less.
        self._usual_weight = min(0.3, 2.0 / max(1, len(counts)))
        self.values = np.array([*_START, *[self._usual_weight] * len(counts)])
        self._least = np.array([*_LEAST, *[_LEAST_WEIGHT] * len(counts)])
        self._most = np.array([*_MOST, *[_MOST_WEIGHT] * len(counts)])

    def liken(self, one: Rows, other: Rows) -> Likeness:
        """How alike the configurations of two lists of rows are, parameter by parameter."""
        left, right = self._indicators(one), self._indicators(other)
        common = left @ right.T
        is_set = np.outer(one.any(axis=1), np.ones(len(other), dtype=bool))
        is_equal: Flags = is_set & (common == one.shape[1])
        return Likeness(left @ self._alike, right.T, is_equal)

    def _indicators(self, rows: Rows) -> Matrix:
        found: Matrix = (rows[:, self._owner] == self._place).astype(np.float64)
        return found

    def between(self, alike: Likeness) -> Matrix:
        """The covariance between the configurations of two lists of rows."""
        weights = self.values[_WEIGHTS:][self._owner]
        return self._sum((alike.left * weights) @ alike.right, alike.is_equal)

    def within(self, rows: Rows) -> Matrix:
        """The prior variance of each configuration."""
        is_set = (rows > 0).astype(np.float64)
        return self._sum(is_set @ self.values[_WEIGHTS:], np.asarray(rows.any(axis=1)))

    def _sum(self, common: Matrix, own: Flags) -> Matrix:
        scale, of_own = self.values[: _OWN + 1]
        found: Matrix = scale * (common + of_own * own)
        return found

    def sizes(self) -> Matrix:
        """The covariance between sizes: what all have in common, and what neighbours have."""
        reach, common = self.values[_REACH], self.values[_COMMON]
        found: Matrix = common + (1 - common) * np.exp(-self._apart / reach)
        return found

    def learn(self, observed: Observed) -> None:
        """Fits the hyperparameters by marginal likelihood, one after the other, coarsely."""
        now = Posterior(self, observed)
        for step, place in product(_STEPS, range(len(self.values))):
            before = self.values[place]
            for factor in (step, 1 / step):
                moved = np.clip(before * factor, self._least[place], self._most[place])
                if moved != before and self._growth(now, observed, place, moved) > 0:
                    self.values[place] = moved
                    now = Posterior(self, observed, now if place in _SAME_EIGENVECTORS else None)
                    break

    def _growth(self, now: Posterior, observed: Observed, place: int, moved: float) -> float:
        """By how much a hyperparameter's other value is more plausible (logarithm)."""
        before = self.values[place]
        if place >= _WEIGHTS:
            added = self._of_parameter(observed.alike, place - _WEIGHTS, moved - before)
            now_drawn, drawn = np.abs(np.log(np.array([before, moved]) / self._usual_weight))
            return now.growth_with(*added) - _DRAWN * float(drawn - now_drawn)
        self.values[place] = moved
        found = Posterior(self, observed, now if place in _SAME_EIGENVECTORS else None)
        self.values[place] = before
        return found.log_likelihood - now.log_likelihood

    def _of_parameter(self, alike: Likeness, n: int, weight: float) -> tuple[Matrix, Matrix]:
        """Two factors of what a parameter of this weight adds between configurations."""
        mine = self._owner == n
        return self.values[_SCALE] * weight * alike.left[:, mine], alike.right[mine]

    def find_idle(self, observed: Observed, *, is_last_test: bool) -> list[int]:
        """The parameters without which what was observed is about as likely.

        What makes it likeliest is taken first, and the rest judged beside it: of many that came
        together, leaving out one after the other may drop the one that matters.

        Args:
            is_last_test: no ablation follows, so that more has to speak for a parameter.
        """
        least = _SUPPORT_ALONE if is_last_test else _SUPPORT
        before = self.values.copy()
        self.values[_OWN] = max(self.values[_OWN], _LEAST_OWN)
        known, weights = before[_WEIGHTS:], self.values[_WEIGHTS:]
        weights[:] = 0.0
        idle = list(range(len(known)))
        while idle:
            now = Posterior(self, observed)
            growth = {
                n: now.growth_with(*self._of_parameter(observed.alike, n, known[n])) for n in idle
            }
            idle.sort(key=growth.__getitem__)
            if growth[idle[-1]] < least:
                break
            place = idle.pop()
            weights[place] = known[place]
        self.values[:] = before
        return idle


class Posterior:
    """What the process expects after what was observed.

    Args:
        known: of the same runs, with the same hyperparameters but for ``_SAME_EIGENVECTORS``.
    """

    def __init__(
        self, covariance: Covariance, observed: Observed, known: Posterior | None = None
    ) -> None:
        self._covariance, self._rows = covariance, observed.rows
        values, vectors = np.linalg.eigh(observed.noise)
        white = (vectors / np.sqrt(values)) @ vectors.T
        self._sizes = covariance.sizes()
        of_sizes, by_size = np.linalg.eigh(white @ self._sizes @ white)
        self._of_sizes = np.maximum(of_sizes, 0)
        self._root = 1 / np.sqrt(observed.share)
        scale = covariance.values[_SCALE]
        between = covariance.between(observed.alike) / scale * np.outer(self._root, self._root)
        if known is None:
            self._of_rows, self._by_row = np.linalg.eigh(between)
        else:
            self._of_rows, self._by_row = known._of_rows, known._by_row
        self._grown = 1 + scale * np.outer(np.maximum(self._of_rows, 0), self._of_sizes)
        seen = self._by_row.T @ (observed.means * self._root[:, None]) @ white @ by_size
        self._solved = seen / self._grown
        self._to_sizes = self._sizes @ white @ by_size
        self.log_likelihood = -0.5 * float((seen * self._solved + np.log(self._grown)).sum())

    def predict(self, rows: Rows) -> tuple[Matrix, Matrix]:
        """Mean and variance at each size, one row for each of the configurations."""
        alike = self._covariance.liken(rows, self._rows)
        near = self._covariance.between(alike) * self._root @ self._by_row
        mean = near @ self._solved @ self._to_sizes.T
        prior = np.outer(self._covariance.within(rows), np.diag(self._sizes))
        known = near**2 @ (1 / self._grown) @ (self._to_sizes**2).T
        return mean, np.maximum(prior - known, 1e-10)

    def growth_with(self, left: Matrix, right: Matrix) -> float:
        """By how much the log-likelihood grows if ``left @ right`` is added between rows.

        Of these factors' few columns (Woodbury's identity), not of all rows anew.
        """
        turned = self._root[:, None] * self._by_row
        left, right = turned.T @ left, right @ turned
        weights = (self._of_sizes / self._grown).T[:, None, :]
        inner = np.eye(len(right)) + right * weights @ left
        seen, moved = self._solved.T @ right.T, (self._solved * self._of_sizes).T @ left
        known = np.linalg.solve(inner, seen[:, :, None])[:, :, 0]
        return 0.5 * float((moved * known).sum() - np.linalg.slogdet(inner)[1].sum())
