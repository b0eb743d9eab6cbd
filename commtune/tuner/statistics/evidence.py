"""What a campaign has measured so far, as the search and the confirmation look at it."""

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


def of_operation(runs: Iterable[Run], operation: str) -> Iterator[Run]:
    """What was measured, or was to be measured, of an operation: by itself or with others."""
    for run in runs:
        if operation in (run.operation, *run.then):
            yield run.only_of(operation) if run.then else run


#: Speeds are fitted again when the runs have grown by this factor and number, and to so many
#: canaries at most.
_REFIT, _REFIT_RUNS, _MOST_CANARIES = 1.02, 8, 4000
_MOST_FAILURES = 3
#: Phases that measure the tuned operation, in the order in which their canaries are looked at.
TUNED = (Phase.SEARCH, Phase.ABLATE, Phase.CONFIRM)


def fit_evenly(canaries_s: Sequence[float]) -> MachineStates:
    """The states that canaries tell, of many by evenly chosen ones."""
    return fit_states(canaries_s[:: len(canaries_s) // _MOST_CANARIES + 1])


@dataclass
class _Made:
    """What was made in a phase: runs, whether each counts, and what they measured."""

    runs: list[Run] = field(default_factory=list)
    is_good: bytearray = field(default_factory=bytearray)
    times: SizeTimes = field(default_factory=SizeTimes)


@dataclass
class Evidence:
    """All stored runs of a campaign, in order.

    Of re-runs (others used the cores meanwhile) the last one counts that came to an end.

    Attributes:
        made_again: runs that were made in the place of another one.
    """

    runs: list[Run] = field(default_factory=list)
    made_again: int = 0
    _by_phase: dict[Phase, _Made] = field(default_factory=lambda: defaultdict(_Made))
    _last: dict[tuple[int, int], tuple[_Made, int]] = field(default_factory=dict)
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
                self.made_again += 1
                before[0].is_good[before[1]] = False
            self._last[run.block, run.position] = made, len(made.runs)
        made.times.add(len(made.runs), run.measurements)
        made.is_good.append(run.outcome is Outcome.OK)
        made.runs.append(run)

    def of(self, phase: Phase) -> Sequence[Run]:
        """All runs of a phase, in order, whatever their outcome."""
        return self._by_phase[phase].runs

    def times(self, phase: Phase) -> tuple[SizeTimes, NDArray[np.bool_]]:
        """What the runs of a phase measured, by place in ``of``; and which of these are good."""
        made = self._by_phase[phase]
        return made.times, np.array(made.is_good).astype(bool)

    def good(self, *phases: Phase) -> Iterable[Run]:
        """The runs that count as evidence, of these phases."""
        made = (self._by_phase[phase] for phase in phases)
        return chain.from_iterable(compress(one.runs, one.is_good) for one in made)

    def wall_s(self, phase: Phase, since: int = 0) -> float:
        """Seconds that a budget pays for runs of a phase: failed ones count, lost ones don't.

        Args:
            since: blocks before this one don't count.
        """
        runs = (r for r in self.of(phase) if r.block >= since and not r.outcome.is_lost)
        return math.fsum(r.wall_s for r in runs)

    def speeds(self, *, anew: bool = False) -> MachineStates:
        """The machine states seen so far, while the tuned operation was measured.

        Guard operations come after the comparison, and must not change it when it is repeated.
        Worked out again when enough runs came in since, so that the cost of a run does not grow.

        Args:
            anew: from all runs up to now, as a campaign that is loaded again would find.
        """
        if anew or len(self.runs) > self._fitted_at * _REFIT + _REFIT_RUNS or not self._fitted_at:
            self._speeds = fit_evenly(self.canaries(*TUNED))
            self._fitted_at = len(self.runs)
        return self._speeds

    def canaries(self, *phases: Phase) -> list[float]:
        """The core-to-core round trips before each size, seconds, of these phases' good runs."""
        found: list[float] = []
        for phase in phases:
            times, is_good = self.times(phase)
            canary_s = np.array(times.canary_s)
            found += canary_s[is_good[np.array(times.run)] & ~np.isnan(canary_s)].tolist()
        return found


def number_states(states: MachineStates, times: SizeTimes) -> NDArray[np.intp]:
    """The place of each measurement's state in ``names``, as ``name`` tells it; -1: ``mixed``."""
    if not states.thresholds_s:
        return np.zeros(len(times.run), dtype=np.intp)
    both = np.array([times.canary_s, times.canary_after_s])
    number = np.searchsorted(states.thresholds_s, both, side="right")
    low, high = np.sort(np.where(np.isnan(both) | (both == 0), -1, number), axis=0)
    return np.where((low == high) | (low < 0), high, -1)


def never_works(runs: Sequence[Run]) -> bool:
    """Whether a configuration failed so often, and never worked, that it won't."""
    return len(runs) >= _MOST_FAILURES and all(run.outcome is not Outcome.OK for run in runs)


#: (size in bytes, speed): what may be compared with one another.
Cell = tuple[int, str]


def median_times(run: Run, speeds: MachineStates) -> dict[Cell, float]:
    """Median seconds of a run by size and speed; sizes during which the speed flipped are out."""
    cells = {
        (m.bytes, speeds.name(m.canary_s, m.canary_after_s)): m.median_s for m in run.measurements
    }
    return {cell: value for cell, value in cells.items() if cell[1] != MIXED}


def list_default_times(runs: Iterable[Run]) -> dict[int, list[float]]:
    """The median of each run of the default by size (bytes), in any machine state, seconds."""
    found: defaultdict[int, list[float]] = defaultdict(list)
    for run in runs:
        if run.configuration.is_default:
            for measured in run.measurements:
                found[measured.bytes].append(measured.median_s)
    return dict(found)
