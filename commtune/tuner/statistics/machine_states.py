"""Hidden machine states, told apart by the canary.

A virtual machine whose host moves its cores about has two or three speeds, up to 3x apart, that
alternate within seconds. The benchmark's core-to-core round trip around each size (the canary)
tells which one a measurement had. It depends on the machine only: no MPI variable can change it,
so comparing inside a speed can't favour a configuration.
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

#: Two speeds are believed only this far apart and this well separated, else all runs are one.
_LEAST_RATIO = 1.6
_LEAST_SEPARATION = 3.0
_FEWEST_VALUES = 12
#: The share of values that a speed must have: a few strays are not a speed.
_LEAST_SHARE = 0.05


@dataclass(frozen=True)
class MachineStates:
    """Which speed a measurement had.

    Attributes:
        thresholds_s: canaries between which the speeds change, ascending; none where the machine
            has one speed, at most two.
    """

    thresholds_s: tuple[float, ...] = ()

    def name(self, before_s: float | None, after_s: float | None) -> str:
        """``fast``, ``middle``, ``slow``; ``mixed`` if it changed; ``all`` if there is one."""
        if not self.thresholds_s:
            return ALL
        sides = {bisect(self.thresholds_s, value) for value in (before_s, after_s) if value}
        # No canary where others have one: nothing tells, so it must not be compared.
        return self.names[sides.pop()] if len(sides) == 1 else MIXED

    def place(self, before_s: float | None, after_s: float | None) -> float | None:
        """The number of the state, the fastest 0; half way if it changed, ``None``: no canary."""
        if not self.thresholds_s:
            return 0.0
        places = [bisect(self.thresholds_s, value) for value in (before_s, after_s) if value]
        return fmean(places) if places else None

    @property
    def names(self) -> tuple[str, ...]:
        """The speeds that measurements are compared within, fastest first."""
        return _NAMES[len(self.thresholds_s) + 1]


def fit_states(canaries_s: Sequence[float]) -> MachineStates:
    """Finds two or three speeds in canary round trips (seconds), or one where there are not more.

    Otsu's threshold on the logarithms: the split with the least variance inside the two sides,
    believed only where the sides' means are far apart for their width. The wider side may split
    once more.
    """
    import numpy as np  # 0.1 s, for which commands that only name states don't wait

    logs = np.sort(np.log([value for value in canaries_s if value > 0]))
    split = _split(logs)
    if split is None or not _is_speed(logs, split, len(logs)):
        return MachineStates()
    sides = [logs[:split], logs[split:]]
    again = [_split(side) for side in sides]
    thresholds = [_between(logs, split)]
    for side, inner in zip(sides, again, strict=True):
        if inner is not None and len(thresholds) < 2 and _is_speed(side, inner, len(logs)):
            thresholds.append(_between(side, inner))
    return MachineStates(tuple(sorted(thresholds)))


def _is_speed(side: NDArray[Any], split: int, total: int) -> bool:
    """Whether the smaller part has enough values to be a speed, and not a few strays."""
    return min(split, len(side) - split) >= _LEAST_SHARE * total


def _split(logs: NDArray[Any]) -> int | None:
    """Where sorted values fall into two groups that are believed; else ``None``."""
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
    """Index of the first value of the upper side."""
    import numpy as np

    split, sums = np.arange(1, len(ordered)), ordered.cumsum()
    lower, upper = sums[:-1] / split, (sums[-1] - sums[:-1]) / split[::-1]
    return 1 + int(np.argmax(split * split[::-1] * (upper - lower) ** 2))
