"""How much each variable moved the times of the search: a description, not evidence.

The search tries what it hopes for, so configurations share values, and a mean per value would
credit a variable with what its company does. Therefore all variables are fitted together: the
logarithm of a configuration's time as a sum of one effect for each value (ridge regression over
one-hot columns, outliers drawn in). What noise alone would give is found by shuffling the
residuals of that fit and fitting again (Freedman and Lane, J. Business & Economic Statistics 1,
1983): the effects are gone, the noise and the imbalance of the design stay.

Effects of two variables that only work together are not seen, and the runs are those that chose
the winners, so a large effect is partly luck. Ablation measures anew; this only looks back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

#: A value that fewer configurations had is fitted, but not spoken of.
_FEWEST = 3
#: Fewer configurations than this tell nothing.
_FEWEST_ROWS = 20
#: Weight of "no effect", in configurations: a value seen once is drawn half-way towards it.
_RIDGE = 1.0
_SHUFFLES = 200
#: Residuals are drawn in to so many robust standard deviations, in so many rounds.
_FAR, _ROUNDS, _MAD_TO_SD = 3.0, 10, 1.4826
_QUANTILE = 0.95

_Array = npt.NDArray[np.float64]
#: Variables with their values; ``None`` for unset.
_Assignment = Mapping[str, str | None]


@dataclass(frozen=True)
class Importance:
    """What a variable did in the search.

    Attributes:
        spread: time under its slowest value over time under its fastest, less 1 (0.3 is 30 %).
        noise: what that would be in 19 of 20 cases if the variable did nothing; of 20 to 40
            configurations, with a variable of eight values, in 9 of 10 (simulated).
        fastest, slowest: the values; ``None`` for unset.
    """

    name: str
    spread: float
    noise: float
    fastest: str | None
    slowest: str | None

    @property
    def stands_out(self) -> bool:
        """Whether the variable did more than noise would."""
        return self.spread > self.noise


def variable_importance(
    assignments: Sequence[_Assignment], log_times: Sequence[float]
) -> list[Importance]:
    """Importance of every variable with two values that were tried often enough.

    Args:
        assignments: one for each configuration that was tried.
        log_times: logarithm of the time of each, in the same order: its mean over runs and
            sizes, the common level of a machine state or a size taken off.

    Returns:
        The variables, by falling spread; empty where there is too little to fit.
    """
    columns = _columns(assignments)
    spoken_of = {name: values for name, values in columns.items() if len(values) > 1}
    if not spoken_of or len(log_times) < _FEWEST_ROWS:
        return []
    design, index = _design_of(assignments)
    observed = np.asarray(log_times, dtype=np.float64)
    observed = observed - observed.mean()
    effects, residuals = _robust(design, observed)
    random = np.random.default_rng(0)
    shuffled = np.stack([random.permutation(residuals) for _ in range(_SHUFFLES)], axis=1)
    noise = _fit(design, shuffled)
    found = [
        _importance(name, values, index, effects, noise) for name, values in spoken_of.items()
    ]
    return sorted(found, key=lambda item: (-item.spread, item.name))


def _columns(assignments: Sequence[_Assignment]) -> dict[str, list[str | None]]:
    """The values of each variable that enough configurations had."""
    names = sorted({name for assignment in assignments for name in assignment})
    found = {}
    for name in names:
        seen = Counter(assignment.get(name) for assignment in assignments)
        enough = [value for value, count in seen.items() if count >= _FEWEST]
        found[name] = sorted(enough, key=str)
    return found


def _design_of(
    assignments: Sequence[_Assignment],
) -> tuple[_Array, dict[tuple[str, str | None], int]]:
    """One centred column for each value that occurs, and where it is."""
    names = sorted({name for assignment in assignments for name in assignment})
    index: dict[tuple[str, str | None], int] = {}
    rows = [
        [index.setdefault((name, assignment.get(name)), len(index)) for name in names]
        for assignment in assignments
    ]
    design = np.zeros((len(assignments), len(index)))
    design[np.arange(len(rows))[:, None], np.asarray(rows)] = 1.0
    return design - design.mean(axis=0), index


def _fit(design: _Array, observed: _Array) -> _Array:
    """Ridge coefficients: one column for each column of ``observed``."""
    normal = design.T @ design + _RIDGE * np.eye(design.shape[1])
    return np.asarray(np.linalg.solve(normal, design.T @ observed), dtype=np.float64)


def _robust(design: _Array, observed: _Array) -> tuple[_Array, _Array]:
    """Coefficients and residuals, with what is far from the fit drawn in towards it.

    A run among other load may take a hundred times as long, and would make any value slow that
    it happened to have.
    """
    fitted = np.full_like(observed, np.median(observed))
    for _ in range(_ROUNDS):
        residuals = _drawn_in(observed - fitted)
        effects = _fit(design, (fitted + residuals)[:, None])
        fitted = (design @ effects)[:, 0]
    return effects, _drawn_in(observed - fitted) * _widening(design)


def _widening(design: _Array) -> float:
    """What a fit of many values to few configurations makes residuals too small by.

    The last factor is near that of Student's quantile over the normal one: few degrees of freedom
    don't tell the noise well.
    """
    rows = len(design)
    left = max(1.0, rows - 1 - float(np.trace(design @ _fit(design, np.eye(rows)))))
    return float(np.sqrt(rows / left)) * (1 + 1.5 / left)


def _drawn_in(residuals: _Array) -> _Array:
    """Values with those far from the middle, by robust standard deviations, drawn in to there."""
    middle = float(np.median(residuals))
    reach = _FAR * _MAD_TO_SD * float(np.median(np.abs(residuals - middle)))
    return np.clip(residuals, middle - reach, middle + reach)


def _importance(
    name: str,
    values: Sequence[str | None],
    index: Mapping[tuple[str, str | None], int],
    effects: _Array,
    noise: _Array,
) -> Importance:
    places = [index[name, value] for value in values]
    own = effects[places, 0]
    by_chance = np.ptp(noise[places], axis=0)
    return Importance(
        name=name,
        spread=float(np.expm1(np.ptp(own))),
        noise=float(np.expm1(np.quantile(by_chance, _QUANTILE))),
        fastest=values[int(own.argmin())],
        slowest=values[int(own.argmax())],
    )
