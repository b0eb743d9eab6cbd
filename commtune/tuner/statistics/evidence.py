"""The runs of a campaign so far, indexed by phase, with the machine states that they show."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress

import numpy as np
from numpy.typing import NDArray

from commtune.model import Outcome, Phase, Run, SizeTimes
from commtune.tuner.statistics.machine_states import MIXED, MachineStates, fit_states


def select_operation(runs: Iterable[Run], operation: str) -> Iterator[Run]:
    """Yields the runs of an operation; of runs of several operations, its part."""
    for run in runs:
        if operation in (run.operation, *run.then):
            yield run.only_of(operation) if run.then else run


#: Machine states are fitted again after the number of runs has grown by this factor and number,
#: to at most this many canaries.
_REFIT, _REFIT_RUNS, _MOST_CANARIES = 1.02, 8, 4000
#: Runs after which a configuration that never worked is given up.
_MOST_FAILURES = 3
#: Phases that measure the tuned operation, in the order in which their canaries are looked at.
TUNED = (Phase.SEARCH, Phase.ABLATE, Phase.CONFIRM)


def fit_evenly(canaries_s: Sequence[float]) -> MachineStates:
    """Fits machine states to canaries (seconds), of many to evenly chosen ones."""
    return fit_states(canaries_s[:: len(canaries_s) // _MOST_CANARIES + 1])


@dataclass
class _PhaseRuns:
    """The runs of a phase, whether each counts as evidence, and their times."""

    runs: list[Run] = field(default_factory=list)
    is_good: bytearray = field(default_factory=bytearray)
    times: SizeTimes = field(default_factory=SizeTimes)


@dataclass
class Evidence:
    """All stored runs of a campaign, in order.

    Of a run and its re-runs, the last one that was not lost counts.

    Attributes:
        rerun_count: number of runs that replaced another one.
    """

    runs: list[Run] = field(default_factory=list)
    rerun_count: int = 0
    _by_phase: dict[Phase, _PhaseRuns] = field(default_factory=lambda: defaultdict(_PhaseRuns))
    _last: dict[tuple[int, int], tuple[_PhaseRuns, int]] = field(default_factory=dict)
    _speeds: MachineStates = field(default_factory=MachineStates)
    _fitted_at: int = 0

    @classmethod
    def of_runs(cls, runs: Iterable[Run]) -> Evidence:
        found = cls()
        for run in runs:
            found.add(run)
        return found

    def add(self, run: Run) -> None:
        self.runs.append(run)
        made = self._by_phase[run.phase]
        if not run.outcome.is_lost:
            if before := self._last.get((run.block, run.position)):
                self.rerun_count += 1
                before[0].is_good[before[1]] = False
            self._last[run.block, run.position] = made, len(made.runs)
        made.times.add(len(made.runs), run.measurements)
        made.is_good.append(run.outcome is Outcome.OK)
        made.runs.append(run)

    def of(self, phase: Phase) -> Sequence[Run]:
        """Returns all runs of a phase, in order, whatever their outcome."""
        return self._by_phase[phase].runs

    def times(self, phase: Phase) -> tuple[SizeTimes, NDArray[np.bool_]]:
        """Returns the times of a phase's runs, by index in ``of``, and which runs are good."""
        made = self._by_phase[phase]
        return made.times, np.array(made.is_good).astype(bool)

    def good(self, *phases: Phase) -> Iterable[Run]:
        """Yields the runs of some phases that count as evidence."""
        made = (self._by_phase[phase] for phase in phases)
        return chain.from_iterable(compress(one.runs, one.is_good) for one in made)

    def wall_s(self, phase: Phase, since: int = 0) -> float:
        """Sums the seconds that a budget pays for a phase: of failed runs, but not of lost ones.

        Args:
            since: number of the first block that counts.
        """
        runs = (r for r in self.of(phase) if r.block >= since and not r.outcome.is_lost)
        return math.fsum(r.wall_s for r in runs)

    def speeds(self, *, anew: bool = False) -> MachineStates:
        """Returns the machine states so far, from runs of the tuned operation.

        Runs of guard operations come later, and must not change a comparison that is repeated.
        The states are fitted now and then only, so that the cost of a run doesn't grow.

        Args:
            anew: fit to all runs up to now, as a campaign that is loaded again does.
        """
        if anew or len(self.runs) > self._fitted_at * _REFIT + _REFIT_RUNS or not self._fitted_at:
            self._speeds = fit_evenly(self.canaries(*TUNED))
            self._fitted_at = len(self.runs)
        return self._speeds

    def canaries(self, *phases: Phase) -> list[float]:
        """Lists the canaries before each size (seconds) of the good runs of some phases."""
        found: list[float] = []
        for phase in phases:
            times, is_good = self.times(phase)
            canary_s = np.array(times.canary_s)
            found += canary_s[is_good[np.array(times.run)] & ~np.isnan(canary_s)].tolist()
        return found


def number_states(states: MachineStates, times: SizeTimes) -> NDArray[np.intp]:
    """Returns the index of each measurement's state in ``states.names``; -1 for ``mixed``."""
    if not states.thresholds_s:
        return np.zeros(len(times.run), dtype=np.intp)
    both = np.array([times.canary_s, times.canary_after_s])
    number = np.searchsorted(states.thresholds_s, both, side="right")
    before, after = np.where(np.isnan(both) | (both == 0), -1, number)
    low, high = np.minimum(before, after), np.maximum(before, after)
    return np.where((low == high) | (low < 0), high, -1)


#: A run is disturbed if others used more than this share of the cores' time, and more seconds of
#: each core than the error of the kernel's counters, which count ticks of 10 ms.
_DISTURBED, _COUNTABLE_S = 0.1, 0.025


def is_disturbed(run: Run) -> bool:
    """Whether background load disturbed a run."""
    load = run.other_load or 0.0
    return load > _DISTURBED and load * run.wall_s > _COUNTABLE_S


def never_works(runs: Sequence[Run]) -> bool:
    """Whether a configuration has three runs or more, and none that worked."""
    return len(runs) >= _MOST_FAILURES and all(run.outcome is not Outcome.OK for run in runs)


#: (size in bytes, machine state): runs are compared within such a cell.
Cell = tuple[int, str]


def cell_times(run: Run, speeds: MachineStates) -> dict[Cell, float]:
    """Returns a run's times (seconds) by size and state, without sizes during which it changed."""
    cells = {
        (m.bytes, speeds.name(m.canary_s, m.canary_after_s)): m.time_s for m in run.measurements
    }
    return {cell: value for cell, value in cells.items() if cell[1] != MIXED}
