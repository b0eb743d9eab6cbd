"""What the search knows of every configuration that it ran: the interface to what follows it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from commtune.model import Configuration, Estimand, Phase, Run
from commtune.tuner.statistics.evidence import Cell, Evidence, default_times, log_gains
from commtune.tuner.statistics.machine_states import ALL, MachineStates

#: Gains of a machine state are scaled by this quantile of them, where there are enough, and
#: where it is a gain at all.
_GOOD, _FEW, _LEAST_LEVEL = 0.9, 10, 0.05

#: Log speedup over the default by size (bytes), of one run.
Speedups = Mapping[int, float]


@dataclass(frozen=True)
class Standing:
    """What is known of a configuration's speedup; it picks candidates and is never a claim.

    Attributes:
        runs: good runs of the search.
        mean: log speedup over the default, by size in bytes.
        error: its standard error, by size in bytes.
    """

    configuration: Configuration
    runs: int
    mean: Mapping[int, float]
    error: Mapping[int, float]


class SpeedupReader:
    """Reads log speedups from runs: against the default's median in the same machine state.

    Where speedups are about means, a run counts by the time that it saves of the default's mean,
    as a share: of that, means are right, and of ratios near 1 it is the logarithm.
    """

    def __init__(self, estimand: Estimand = Estimand.MEDIAN) -> None:
        self._estimand = estimand
        self.default_s: Mapping[Cell, float] = {}
        self._states = MachineStates()
        self._factors: Mapping[Cell, float] = {}

    def rebuild(self, evidence: Evidence) -> list[tuple[Configuration, Speedups]]:
        """Works the default out anew; the speedups of all good runs of the search, in order."""
        runs = list(evidence.good(Phase.SEARCH))
        self._states = evidence.speeds()
        self.default_s = default_times(runs, self._states, self._estimand)
        self._factors = {}
        if len(self._states.names) > 1:
            self._factors = _even_out([self._gains(run) for run in runs])
        return [(run.configuration, self.read(run)) for run in runs]

    def read(self, run: Run) -> Speedups:
        """Log speedup by size (bytes), of one run; sizes that can't be compared are absent."""
        if self._estimand is Estimand.MEDIAN and not self._states.thresholds_s:
            return {  # most machines: a search asks this of all its runs again
                m.bytes: math.log(self.default_s[m.bytes, ALL] / m.median_s)
                for m in run.measurements
                if (m.bytes, ALL) in self.default_s
            }
        gains = self._gains(run)
        return {cell[0]: gain * self._factors.get(cell, 1.0) for cell, gain in gains.items()}

    def _gains(self, run: Run) -> dict[Cell, float]:
        gains = log_gains(run, self._states, self.default_s)
        if self._estimand is Estimand.MEAN:
            return {cell: -math.expm1(-gain) for cell, gain in gains.items()}
        return gains


def _even_out(gains: Sequence[Mapping[Cell, float]]) -> dict[Cell, float]:
    """Factors that bring the gains of each machine state to those of all.

    A setting may gain 1.4x at one speed and 2.9x at another. Without this, the speed that a run
    happened to have would outweigh its configuration. Compared is what good configurations gain.
    """
    found: defaultdict[Cell, list[float]] = defaultdict(list)
    for cells in gains:
        for cell, gain in cells.items():
            found[cell].append(gain)
    level = {
        cell: sorted(values)[int(_GOOD * (len(values) - 1))]
        for cell, values in found.items()
        if len(values) >= _FEW
    }
    factors: dict[Cell, float] = {}
    for size in {size for size, _ in level}:
        here = {cell: value for cell, value in level.items() if cell[0] == size}
        if min(here.values()) > _LEAST_LEVEL:
            counts = [len(found[cell]) for cell in here]
            mean = math.fsum(map(math.prod, zip(counts, here.values(), strict=True)))
            mean /= sum(counts)
            factors |= {cell: min(2.0, max(0.5, mean / value)) for cell, value in here.items()}
    return factors
