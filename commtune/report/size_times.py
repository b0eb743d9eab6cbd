"""Times of all runs of a campaign, counted as columns: a long one has millions of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from commtune.model import Configuration, Outcome, Phase, Run, SizeTimes
from commtune.tuner.statistics.evidence import TUNED, Evidence, fit_evenly
from commtune.tuner.statistics.machine_states import MIXED, MachineStates

_Places = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]


class TimedRuns:
    """Runs with their times.

    Attributes:
        speeds: the machine's states, as the tuner saw them.
    """

    def __init__(self, runs: Sequence[Run], times: SizeTimes) -> None:
        self.runs = runs
        self._run, self._bytes = np.asarray(times.run), np.asarray(times.bytes)
        self._median_s = np.asarray(times.median_s)
        self._before_s = np.asarray(times.canary_s)
        self._after_s = np.asarray(times.canary_after_s)
        self.speeds = self._fit()
        self._state = self._states()

    def _fit(self) -> MachineStates:
        evidence = Evidence.of_runs(self.runs)
        places = {run.run_id: place for place, run in enumerate(self.runs)}
        canaries: list[float] = []
        for phase in TUNED:
            of_phase = np.zeros(len(self.runs), dtype=bool)
            of_phase[[places[run.run_id] for run in evidence.good(phase)]] = True
            canaries += self._before_s[of_phase[self._run] & ~np.isnan(self._before_s)].tolist()
        return fit_evenly(canaries)

    def _states(self) -> _Places:
        """As ``MachineStates.name`` tells them, by number; -1 for ``mixed``."""
        if not self.speeds.thresholds_s:
            return np.zeros(len(self._run), dtype=np.int64)
        before, after = (
            np.where(
                np.isnan(canary_s) | (canary_s == 0),
                -1,
                np.searchsorted(self.speeds.thresholds_s, canary_s, side="right"),
            )
            for canary_s in (self._before_s, self._after_s)
        )
        agreed = np.where(before == after, before, -1)
        return np.where(before < 0, after, np.where(after < 0, before, agreed))

    def of_default(self, operation: str) -> Iterator[tuple[Run, int, float, str]]:
        """Good runs of the default: run, size in bytes, median in seconds, speed."""
        names = (*self.speeds.names, MIXED)  # the last of them is number -1
        rows = self._rows(lambda run: run.configuration.is_default and run.operation == operation)
        for row in rows.tolist():
            size, median_s = int(self._bytes[row]), float(self._median_s[row])
            yield self.runs[self._run[row]], size, median_s, names[self._state[row]]

    def search_logs(self, low: int, high: int) -> dict[Configuration, float]:
        """Mean logarithm of each configuration's times in the search, against the default's.

        A mean over its runs and over sizes from ``low`` to below ``high`` bytes, at each size and
        speed against the default's median there: repeats are no new evidence.
        """
        rows = self._rows(lambda run: run.phase is Phase.SEARCH)
        size, state = self._bytes[rows], self._state[rows]
        rows = rows[(low <= size) & (size < high) & (state >= 0)]
        runs, cells = self._run[rows], self._bytes[rows] * 4 + self._state[rows]
        seconds, logs = self._median_s[rows], np.full(len(rows), np.nan)
        is_default = self._flags(lambda run: run.configuration.is_default)[runs]
        for cell in np.unique(cells):
            here = cells == cell
            if (here & is_default).any():
                logs[here] = np.log(seconds[here] / np.median(seconds[here & is_default]))
        number: dict[Configuration, int] = {}
        numbers = [number.setdefault(run.configuration, len(number)) for run in self.runs]
        known = ~np.isnan(logs)
        chosen = np.asarray(numbers, dtype=np.int64)[runs[known]]
        counts = np.bincount(chosen, minlength=len(number))
        sums = np.bincount(chosen, logs[known], minlength=len(number))
        return {one: float(sums[n] / counts[n]) for one, n in number.items() if counts[n]}

    def _rows(self, is_meant: Callable[[Run], bool]) -> _Places:
        """Rows of the good runs that are meant."""
        chosen = self._flags(lambda run: run.outcome is Outcome.OK and is_meant(run))
        return np.flatnonzero(chosen[self._run])

    def _flags(self, is_meant: Callable[[Run], bool]) -> _Flags:
        return np.fromiter(map(is_meant, self.runs), dtype=bool, count=len(self.runs))
