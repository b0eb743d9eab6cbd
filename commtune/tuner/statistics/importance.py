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

from collections import Counter
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


def variable_importance(
    assignments: Sequence[_Assignment], log_times: Sequence[float]
) -> list[Importance]:
    """Estimates the importance of each variable with two values that were tried often enough.

    Args:
        assignments: one for each configuration that was tried.
        log_times: the log time of each: its mean over runs and sizes, after the level of each
            machine state and size was subtracted.

    Returns:
        The variables, by decreasing spread; empty with too few configurations.
    """
    columns = _columns(assignments)
    compared = {name: values for name, values in columns.items() if len(values) > 1}
    if not compared or len(log_times) < _FEWEST_ROWS:
        return []
    design, index = _build_design(assignments, list(columns))
    observed = np.asarray(log_times, dtype=np.float64)
    observed = observed - observed.mean()
    fit = _prepare_fit(design)
    effects, residuals = _fit_robustly(design, fit, observed)
    random = np.random.default_rng(0)
    shuffled = np.stack([random.permutation(residuals) for _ in range(_SHUFFLES)], axis=1)
    noise = fit @ shuffled
    found = [_importance(name, values, index, effects, noise) for name, values in compared.items()]
    return sorted(found, key=lambda item: (-item.spread, item.name))


def _columns(assignments: Sequence[_Assignment]) -> dict[str, list[str | None]]:
    """Lists the values of each variable that enough configurations had."""
    names = sorted({name for assignment in assignments for name in assignment})
    found = {}
    for name in names:
        seen = Counter(assignment.get(name) for assignment in assignments)
        enough = [value for value, count in seen.items() if count >= _FEWEST]
        found[name] = sorted(enough, key=str)
    return found


def _build_design(
    assignments: Sequence[_Assignment], names: Sequence[str]
) -> tuple[_Array, dict[tuple[str, str | None], int]]:
    """Builds the design matrix, a centred column for each value; returns their indices too."""
    index: dict[tuple[str, str | None], int] = {}
    rows = [
        [index.setdefault((name, assignment.get(name)), len(index)) for name in names]
        for assignment in assignments
    ]
    design = np.zeros((len(assignments), len(index)))
    design[np.arange(len(rows))[:, None], np.asarray(rows)] = 1.0
    return design - design.mean(axis=0), index


def _prepare_fit(design: _Array) -> _Array:
    """Returns the matrix that turns log times into ridge coefficients, columns x rows."""
    normal = design.T @ design + _RIDGE * np.eye(design.shape[1])
    return np.asarray(np.linalg.solve(normal, design.T), dtype=np.float64)


def _fit_robustly(design: _Array, fit: _Array, observed: _Array) -> tuple[_Array, _Array]:
    """Fits coefficients and residuals robustly: outlying residuals are clipped (Huber).

    A run disturbed by other load may take a hundred times as long, and would make all of its
    values seem slow.
    """
    fitted = np.full_like(observed, np.median(observed))
    for _ in range(_ROUNDS):
        effects = fit @ (fitted + _clip_residuals(observed - fitted))
        fitted = design @ effects
    return effects, _clip_residuals(observed - fitted) * _residual_inflation(design, fit)


def _residual_inflation(design: _Array, fit: _Array) -> float:
    """Returns the factor by which a fit of many values makes residuals too small.

    Its last part is about Student's quantile over the normal one, for few degrees of freedom.
    """
    rows = len(design)
    # The trace of design @ fit, without that matrix of rows x rows.
    left = max(1.0, rows - 1 - float(np.sum(design * fit.T)))
    return float(np.sqrt(rows / left)) * (1 + 1.5 / left)


def _clip_residuals(residuals: _Array) -> _Array:
    """Clips residuals at three robust standard deviations from their median."""
    middle = float(np.median(residuals))
    reach = _CLIP_SDS * _MAD_TO_SD * float(np.median(np.abs(residuals - middle)))
    return np.clip(residuals, middle - reach, middle + reach)


def _importance(
    name: str,
    values: Sequence[str | None],
    index: Mapping[tuple[str, str | None], int],
    effects: _Array,
    noise: _Array,
) -> Importance:
    places = [index[name, value] for value in values]
    own = effects[places]
    by_chance = np.ptp(noise[places], axis=0)
    return Importance(
        name=name,
        spread=float(np.expm1(np.ptp(own))),
        noise=float(np.expm1(np.quantile(by_chance, _QUANTILE))),
        fastest=values[int(own.argmin())],
        slowest=values[int(own.argmax())],
    )
