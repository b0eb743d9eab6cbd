"""Estimates how much each variable changed the times of the search: a description, no evidence.

Configurations of a search share values, so a mean by value would credit a variable with the
effects of others. Therefore all variables are fitted together: the log time of a configuration as
a sum of one effect for each value (ridge regression on centred one-hot columns, with clipped
residuals). What noise alone gives is found by fitting permuted residuals of that fit (Freedman &
Lane, J. Business & Economic Statistics 1, 1983), which keep the noise and the design's imbalance.

Interactions are not seen, and these runs also chose the winners, so large effects are partly luck.
Ablation measures anew.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

#: Values of fewer configurations are fitted, but not compared.
_FEWEST = 3
#: With fewer configurations there is no result.
_FEWEST_ROWS = 20
#: The ridge penalty, in configurations: the effect of a value seen once is halved.
_RIDGE = 1.0
#: Permutations of the residuals.
_SHUFFLES = 200
#: Residuals are clipped at this many robust standard deviations (from the median absolute
#: deviation), in this many rounds.
_CLIP_SDS, _ROUNDS, _MAD_TO_SD = 3.0, 10, 1.4826
_QUANTILE = 0.95

_Array = npt.NDArray[np.float64]
#: Variables with their values; ``None`` for unset.
_Assignment = Mapping[str, str | None]


@dataclass(frozen=True)
class Importance:
    """The effect of a variable in the search.

    Attributes:
        spread: time with its slowest value over time with its fastest, less 1 (0.3 is 30 %).
        noise: the 95 % quantile of that if the variable does nothing; with 20 to 40
            configurations and a variable of eight values, the 90 % quantile (simulated).
        fastest, slowest: the values; ``None`` for unset.
    """

    name: str
    spread: float
    noise: float
    fastest: str | None
    slowest: str | None

    @property
    def stands_out(self) -> bool:
        """Whether the effect is larger than that of noise."""
        return self.spread > self.noise


class TriedValues:
    """Configurations as a matrix of zeros and ones, with a column for each value of a variable."""

    def __init__(self, assignments: Sequence[_Assignment]) -> None:
        numbers: dict[tuple[str, str | None], int] = {}
        columns = [
            numbers.setdefault(item, len(numbers)) for one in assignments for item in one.items()
        ]
        rows = np.repeat(np.arange(len(assignments)), [len(one) for one in assignments])
        names = sorted({name for name, _ in numbers})
        for name in names:
            numbers.setdefault((name, None), len(numbers))
        self.matrix = np.zeros((len(assignments), len(numbers)))
        self.matrix[rows, columns] = 1.0
        self.columns = {
            name: {value: column for (of, value), column in numbers.items() if of == name}
            for name in names
        }
        for of_variable in self.columns.values():
            is_set = self.matrix[:, list(of_variable.values())].any(axis=1)
            self.matrix[~is_set, of_variable[None]] = 1.0


def variable_importance(tried: TriedValues, log_times: npt.ArrayLike) -> list[Importance]:
    """Estimates the importance of each variable with two values that were tried often enough.

    Args:
        log_times: the log time of each configuration: its mean over runs and sizes, after the
            level of each machine state and size was subtracted. NaN for those without any.

    Returns:
        The variables, by decreasing spread; empty with too few configurations.
    """
    times = np.asarray(log_times, dtype=np.float64)
    known = ~np.isnan(times)
    matrix = tried.matrix if known.all() else tried.matrix[known]
    seen = matrix.sum(axis=0)
    enough = {
        name: {value: column for value, column in columns.items() if seen[column] >= _FEWEST}
        for name, columns in tried.columns.items()
    }
    compared = {name: columns for name, columns in enough.items() if len(columns) > 1}
    if not compared or len(matrix) < _FEWEST_ROWS:
        return []
    fit = _Fit(matrix)
    effects, residuals = _fit_robustly(fit, times[known] - times[known].mean())
    random = np.random.default_rng(0)
    noise = fit.effects(np.stack([random.permutation(residuals) for _ in range(_SHUFFLES)]))
    found = [_importance(name, columns, effects, noise) for name, columns in compared.items()]
    return sorted(found, key=lambda item: (-item.spread, item.name))


class _Fit:
    """A ridge regression on the columns of a matrix, each less its mean."""

    def __init__(self, matrix: _Array) -> None:
        self.matrix, self.means = matrix, matrix.mean(axis=0)
        normal = matrix.T @ matrix - len(matrix) * np.outer(self.means, self.means)
        self._inverse = np.linalg.inv(normal + _RIDGE * np.eye(len(normal)))

    def effects(self, observed: _Array) -> _Array:
        """Returns the effect of each column on observations; of several rows of them, by row."""
        sums = observed @ self.matrix - observed.sum(axis=-1, keepdims=True) * self.means
        return np.asarray(sums @ self._inverse, dtype=np.float64)

    def fitted(self, effects: _Array) -> _Array:
        """Returns the observations that effects alone would give."""
        return np.asarray(self.matrix @ effects - self.means @ effects, dtype=np.float64)

    def inflation(self) -> float:
        """Returns the factor by which a fit of many values makes residuals too small.

        Its last part is about Student's quantile over the normal one, for few degrees of freedom.
        """
        rows = len(self.matrix)
        fitted = len(self.means) - _RIDGE * float(np.trace(self._inverse))  # degrees of freedom
        left = max(1.0, rows - 1 - fitted)
        return math.sqrt(rows / left) * (1 + 1.5 / left)


def _fit_robustly(fit: _Fit, observed: _Array) -> tuple[_Array, _Array]:
    """Fits coefficients and residuals robustly: outlying residuals are clipped (Huber).

    A run disturbed by other load may take a hundred times as long, and would make all of its
    values seem slow.
    """
    fitted = np.full_like(observed, np.median(observed))
    for _ in range(_ROUNDS):
        effects = fit.effects(fitted + _clip_residuals(observed - fitted))
        fitted = fit.fitted(effects)
    return effects, _clip_residuals(observed - fitted) * fit.inflation()


def _clip_residuals(residuals: _Array) -> _Array:
    """Clips residuals at three robust standard deviations from their median."""
    middle = float(np.median(residuals))
    reach = _CLIP_SDS * _MAD_TO_SD * float(np.median(np.abs(residuals - middle)))
    return np.clip(residuals, middle - reach, middle + reach)


def _importance(
    name: str, columns: Mapping[str | None, int], effects: _Array, noise: _Array
) -> Importance:
    values = sorted(columns, key=str)
    places = [columns[value] for value in values]
    own = effects[places]
    by_chance = np.ptp(noise[:, places], axis=1)
    return Importance(
        name=name,
        spread=float(np.expm1(np.ptp(own))),
        noise=float(np.expm1(np.quantile(by_chance, _QUANTILE))),
        fastest=values[int(own.argmin())],
        slowest=values[int(own.argmax())],
    )
