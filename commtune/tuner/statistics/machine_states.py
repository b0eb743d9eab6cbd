"""Finds hidden machine states in the canary, by Otsu's threshold.

A virtual machine whose host moves its cores has two or three speeds, up to 3x apart, that
alternate within seconds. The benchmark's core-to-core round trip around each size (the canary)
shows the state of a measurement. No MPI variable can change it, so comparisons within a state
favour no configuration.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

FAST, MIDDLE, SLOW, MIXED, ALL = "fast", "middle", "slow", "mixed", "all"
_NAMES = {1: (ALL,), 2: (FAST, SLOW), 3: (FAST, MIDDLE, SLOW)}

#: Two groups are accepted as states only if their means differ by this factor, and by this many
#: standard deviations within groups.
_LEAST_RATIO = 1.6
_LEAST_SEPARATION = 3.0
#: The fewest round trips that are split.
_FEWEST_VALUES = 12
#: The share of the values that a state must have, so that a few outliers are none.
_LEAST_SHARE = 0.05


@dataclass(frozen=True)
class MachineStates:
    """The machine states, which classify measurements by their canaries.

    Attributes:
        thresholds_s: round trips that separate the states, ascending; empty for one state, at
            most two.
    """

    thresholds_s: tuple[float, ...] = ()

    def name(self, before_s: float | None, after_s: float | None) -> str:
        """Returns ``fast``, ``middle`` or ``slow``; ``mixed`` for a change; ``all`` for one."""
        if not self.thresholds_s:
            return ALL
        sides = {bisect(self.thresholds_s, value) for value in (before_s, after_s) if value}
        # Without a canary, where others have one, the state is unknown: not to be compared.
        return self.names[sides.pop()] if len(sides) == 1 else MIXED

    def place(self, before_s: float | None, after_s: float | None) -> float | None:
        """Returns the state's number from 0, the fastest; if it changed, the mean of both.

        ``None`` without a canary.
        """
        if not self.thresholds_s:
            return 0.0
        places = [bisect(self.thresholds_s, value) for value in (before_s, after_s) if value]
        return fmean(places) if places else None

    @property
    def names(self) -> tuple[str, ...]:
        """The states that measurements are compared within, fastest first."""
        return _NAMES[len(self.thresholds_s) + 1]


def fit_states(canaries_s: Sequence[float]) -> MachineStates:
    """Finds one to three states in canary round trips (seconds).

    Otsu's threshold (1979) on the logarithms: the split with the least variance within groups,
    accepted only if the groups are well separated. One group may be split once more.
    """
    import numpy as np  # 0.1 s, for which commands that only name states don't wait

    logs = np.sort(np.log([value for value in canaries_s if value > 0]))
    split = _split(logs)
    if split is None or not _has_enough(logs, split, len(logs)):
        return MachineStates()
    sides = [logs[:split], logs[split:]]
    again = [_split(side) for side in sides]
    thresholds = [_between(logs, split)]
    for side, inner in zip(sides, again, strict=True):
        if inner is not None and len(thresholds) < 2 and _has_enough(side, inner, len(logs)):
            thresholds.append(_between(side, inner))
    return MachineStates(tuple(sorted(thresholds)))


def _has_enough(side: NDArray[Any], split: int, total: int) -> bool:
    """Whether the smaller group has enough values to be a state."""
    return min(split, len(side) - split) >= _LEAST_SHARE * total


def _split(logs: NDArray[Any]) -> int | None:
    """Returns the index at which sorted values fall into two accepted groups, or ``None``."""
    if len(logs) < _FEWEST_VALUES:
        return None
    split = _otsu(logs)
    low, high = logs[:split], logs[split:]
    distance = high.mean() - low.mean()
    width = math.sqrt((len(low) * low.var() + len(high) * high.var()) / len(logs))
    return split if distance >= max(math.log(_LEAST_RATIO), _LEAST_SEPARATION * width) else None


def _between(logs: NDArray[Any], split: int) -> float:
    return math.exp((logs[split - 1] + logs[split]) / 2)


def _otsu(ordered: NDArray[Any]) -> int:
    """Returns the index of the first value of the upper group, by Otsu's method."""
    import numpy as np

    split, sums = np.arange(1, len(ordered)), ordered.cumsum()
    lower, upper = sums[:-1] / split, (sums[-1] - sums[:-1]) / split[::-1]
    return 1 + int(np.argmax(split * split[::-1] * (upper - lower) ** 2))
