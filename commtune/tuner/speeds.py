"""Hidden machine speeds, told apart by the canary.

A virtual machine whose host moves its cores about has two speeds, up to 3x apart, that alternate
within seconds. The benchmark's core-to-core round trip around each size (the canary) tells which
one a measurement had. It depends on the machine only: no MPI variable can change it, so comparing
inside a speed can't favour a configuration.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

FAST, SLOW, MIXED, ALL = "fast", "slow", "mixed", "all"

#: Two speeds are believed only this far apart and this well separated, else all runs are one.
_LEAST_RATIO = 1.6
_LEAST_SEPARATION = 3.0
_FEWEST_VALUES = 12


@dataclass(frozen=True)
class Speeds:
    """Which speed a measurement had.

    Attributes:
        threshold_s: canaries below are fast, above slow; ``None`` where the machine has one speed.
    """

    threshold_s: float | None = None

    def name(self, before_s: float | None, after_s: float | None) -> str:
        """``fast``, ``slow``, ``mixed`` (flipped during the size), or ``all`` (one speed only)."""
        if self.threshold_s is None:
            return ALL
        sides = {_side(value, self.threshold_s) for value in (before_s, after_s) if value}
        # No canary where others have one: nothing tells, so it must not be compared.
        return sides.pop() if len(sides) == 1 else MIXED

    @property
    def names(self) -> tuple[str, ...]:
        """The speeds that measurements are compared within."""
        return (ALL,) if self.threshold_s is None else (FAST, SLOW)


def fit(canaries_s: Sequence[float]) -> Speeds:
    """Finds two speeds in canary round trips (seconds), or one where there are not two.

    Otsu's threshold on the logarithms: the split with the least variance inside the two sides,
    believed only where the sides' means are far apart for their width.
    """
    logs = sorted(math.log(value) for value in canaries_s if value > 0)
    if len(logs) < _FEWEST_VALUES:
        return Speeds()
    split = _otsu(logs)
    low, high = logs[:split], logs[split:]
    if not low or not high:
        return Speeds()
    distance = _mean(high) - _mean(low)
    width = math.sqrt((_squares(low) + _squares(high)) / len(logs))
    if distance < math.log(_LEAST_RATIO) or distance < _LEAST_SEPARATION * width:
        return Speeds()
    return Speeds(threshold_s=math.exp((low[-1] + high[0]) / 2))


def _side(value_s: float, threshold_s: float) -> str:
    return FAST if value_s < threshold_s else SLOW


def _otsu(ordered: Sequence[float]) -> int:
    """Index of the first value of the upper side."""
    total, count = math.fsum(ordered), len(ordered)
    best, best_split, running = -1.0, 0, 0.0
    for split in range(1, count):
        running += ordered[split - 1]
        lower, upper = running / split, (total - running) / (count - split)
        between = split * (count - split) * (upper - lower) ** 2
        if between > best:
            best, best_split = between, split
    return best_split


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _squares(values: Sequence[float]) -> float:
    mean = _mean(values)
    return math.fsum((value - mean) ** 2 for value in values)
