"""Log speedups of runs over the default, and the estimates that the search hands on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commtune.model import Configuration, Estimand, Phase, Run, SizeTimes
from commtune.tuner.search.encoding import Matrix
from commtune.tuner.statistics.evidence import Evidence, number_states
from commtune.tuner.statistics.machine_states import MachineStates

#: Gains (log speedups) of a machine state are scaled by this quantile of theirs, if the state has
#: at least this many runs, and the quantile is above the third value in every state.
_LEVEL_QUANTILE, _FEWEST_RUNS, _LEAST_LEVEL = 0.9, 10, 0.05
#: Of fewer runs of the default, one that was disturbed is the median.
_FEWEST_OF_DEFAULT = 3

#: The most rows from which a center is estimated.
_MOST_IN_CENTER = 100

#: A run's log speedup over the default at each size of the campaign; NaN where not comparable.
Speedups = Matrix
_Table = NDArray[Any]
_Cell = tuple[int, int]


@dataclass(frozen=True)
class Standing:
    """The estimated speedup of a configuration; it chooses candidates and is never a claim.

    Attributes:
        mean: log speedup over the default, by size in bytes.
        error: its standard error, by size in bytes.
    """

    configuration: Configuration
    mean: Mapping[int, float]
    error: Mapping[int, float]

    def lower_end(self, size: int) -> float:
        """Returns the log speedup at a size (bytes), less one standard error."""
        return self.mean[size] - self.error[size]


class SpeedupReader:
    """Computes log speedups of runs over the default's center in the same machine state.

    With the estimand ``mean``, a run counts by the share of the default's mean time that it
    saves: averages of that are unbiased, and for ratios near 1 it is close to the logarithm.

    Args:
        sizes: bytes, ascending.
    """

    def __init__(self, sizes: Sequence[int], estimand: Estimand = Estimand.MEDIAN) -> None:
        self._sizes = np.array(sizes)
        self._estimand = estimand
        self._states = MachineStates()
        #: Machine states x sizes: seconds of the default, and factors of the log speedups.
        self.default_s, self._factors = np.full((2, 1, len(sizes)), np.nan)
        self._is_enough = np.zeros((1, len(sizes)), dtype=bool)
        #: The best of all single runs, where there are enough of the default; for the eye only.
        self.best = 0.0

    def rebuild(self, evidence: Evidence) -> list[tuple[Configuration, Speedups]]:
        """Computes the default's times anew, and the speedups of all good runs, in order."""
        self._states = evidence.speeds()
        known = [run.configuration for run in evidence.good(Phase.SEARCH)]
        is_default = [one.is_default for one in known]
        times, is_good = evidence.times(Phase.SEARCH)
        time_s, state = (table[is_good] for table in self._read_times(times, len(is_good)))
        shape = len(self._states.names), len(self._sizes)
        self.default_s, self._factors = np.ones((2, *shape))
        self._is_enough = np.zeros(shape, dtype=bool)
        for cell, here in _list_cells(time_s[is_default], state[is_default], shape):
            self.default_s[cell] = self._center(here) if len(here) else np.nan
            self._is_enough[cell] = len(here) >= _FEWEST_OF_DEFAULT
        gains = self._gains(time_s, state)
        if len(self._states.names) > 1:
            self._factors = _scale_states(gains, state, shape)
            gains *= self._factors[state, np.arange(len(self._sizes))]
        is_other = ~np.array(is_default, dtype=bool)
        self.best = self._best_of(gains[is_other], state[is_other], 0.0)
        return list(zip(known, gains, strict=True))

    def read(self, run: Run) -> Speedups:
        """Computes the speedups of one run."""
        times = SizeTimes()
        times.add(0, run.measurements)
        time_s, state = self._read_times(times, 1)
        gains = self._gains(time_s, state)
        if not run.configuration.is_default:
            self.best = self._best_of(gains, state, self.best)
        found: Speedups = gains[0]
        return found

    def _center(self, times_s: Matrix) -> float:
        if self._estimand is Estimand.MEAN:
            return float(times_s.mean())
        return float(np.exp(find_center(np.log(times_s))))

    def _best_of(self, gains: Matrix, state: _Table, known: float) -> float:
        is_enough = self._is_enough[state, np.arange(len(self._sizes))]
        return float(np.fmax.reduce(gains[is_enough], initial=known))

    def _read_times(self, times: SizeTimes, runs: int) -> tuple[_Table, _Table]:
        """Returns times (seconds; NaN for none that counts) and machine states, runs x sizes."""
        size = np.array(times.bytes)
        column = np.searchsorted(self._sizes, size).clip(max=len(self._sizes) - 1)
        state = number_states(self._states, times)
        known = (self._sizes[column] == size) & (state >= 0)
        places = np.array(times.run)[known], column[known]
        time_s = np.full((runs, len(self._sizes)), np.nan)
        states = np.zeros_like(time_s, dtype=np.intp)
        time_s[places], states[places] = np.array(times.time_s)[known], state[known]
        return time_s, states

    def _gains(self, time_s: _Table, state: _Table) -> Matrix:
        cells = state, np.arange(len(self._sizes))
        gains: Matrix = np.log(self.default_s[cells] / time_s)
        if self._estimand is Estimand.MEAN:
            gains = -np.expm1(-gains)
        gains *= self._factors[cells]
        return gains


def find_center(values: Matrix) -> Matrix:
    """Estimates the center of each column by Hodges & Lehmann (1963): the median of pairs' means.

    Where runs have two speeds, a median has one or the other, by chance. Of three values, one
    that was disturbed would move this center, so it is their median. Of many rows, some are used,
    evenly spread, since the pairs of thousands would take seconds.
    """
    if len(values) <= _FEWEST_OF_DEFAULT:
        few: Matrix = np.median(values, axis=0)
        return few
    values = values[:: math.ceil(len(values) / _MOST_IN_CENTER)]
    one, other = np.triu_indices(len(values))
    found: Matrix = np.median((values[one] + values[other]) / 2, axis=0)
    return found


def _list_cells(values: _Table, state: _Table, shape: _Cell) -> Iterator[tuple[_Cell, Matrix]]:
    """Yields the values (not NaN) of each machine state and size."""
    for one, size in np.ndindex(shape):
        known = (state[:, size] == one) & ~np.isnan(values[:, size])
        yield (one, size), values[known, size]


def _scale_states(gains: Matrix, state: _Table, shape: _Cell) -> Matrix:
    """Returns factors that scale the gains of each machine state to the mean over states.

    A setting may gain 1.4x in one state and 2.9x in another. Without this, the state that a run
    happened to have would outweigh its configuration. The level of a state is a high quantile,
    the gain of good configurations.
    """
    runs, level = np.zeros((2, *shape))
    for cell, here in _list_cells(gains, state, shape):
        if len(here) >= _FEWEST_RUNS:
            place = int(_LEVEL_QUANTILE * (len(here) - 1))
            runs[cell], level[cell] = len(here), np.partition(here, place)[place]
    mean = (runs * level).sum(axis=0) / np.maximum(runs.sum(axis=0), 1)
    is_gain = np.where(runs > 0, level, np.inf).min(axis=0) > _LEAST_LEVEL
    known = is_gain & (runs > 0)
    return np.where(known, (mean / np.where(known, level, 1.0)).clip(0.5, 2.0), 1.0)
