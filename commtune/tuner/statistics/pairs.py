"""Pairs the runs of candidate and default in each block, by size and machine state.

A pair keeps which of its runs was first, since the first run of a block may be slower whatever
its configuration.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from statistics import fmean, median
from typing import TypeVar

from commtune.model import FEWEST_PAIRS, SESSION_SPREAD, Estimand, Outcome, Run
from commtune.tuner.statistics.evidence import Cell, cell_times
from commtune.tuner.statistics.intervals import (
    Estimate,
    combine_strata,
    estimate_adjusted,
    estimate_mean_ratio,
    estimate_ratio,
)
from commtune.tuner.statistics.machine_states import ALL, MachineStates
from commtune.tuner.statistics.rounding import (
    count_digits,
    rounding_error,
    smallest_step,
    step_at,
    step_of_bandwidths,
)

#: Numbers of pairs, too few to trim, of which one outlier is clipped; and at how many median
#: absolute deviations from the median: 5 standard deviations of normal noise.
_CLIPPED_PAIRS, _CLIPPED_AT = range(7, 12), 5 * 1.4826
#: The key of a run in its block: its configuration, or the arm of a comparison.
_Side = TypeVar("_Side")


@dataclass
class Pairs:
    """Times of two sides that ran in the same blocks.

    Attributes:
        times_s: of both, seconds, block by block.
        is_first: whether the first side ran before the other one, block by block.
        shifts: steps between the machine states of the two runs, block by block.
        blocks: number of each block.
        step_s: computes the step (seconds) of which all times are multiples.
    """

    times_s: list[tuple[float, float]] = field(default_factory=list)
    is_first: list[bool] = field(default_factory=list)
    shifts: list[float] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    step_s: Callable[[], float] = float

    def __len__(self) -> int:
        return len(self.times_s)

    @property
    def log_ratios(self) -> list[float]:
        """The log ratios of the first side's time to the other's."""
        return [math.log(one / other) for one, other in self.times_s]

    def middle_s(self, estimand: Estimand = Estimand.MEDIAN) -> tuple[float, float]:
        """Returns the median or the mean of each side by itself, seconds."""
        middle = fmean if estimand is Estimand.MEAN else median
        return middle(one for one, _ in self.times_s), middle(other for _, other in self.times_s)

    @property
    def ratio(self) -> float:
        """The geometric mean of all ratios, outliers included."""
        return math.exp(fmean(self.log_ratios))

    @property
    def log_times(self) -> list[tuple[float, float]]:
        """The logarithms of both sides' times (seconds)."""
        return [(math.log(one), math.log(other)) for one, other in self.times_s]

    def estimate(self) -> Estimate | None:
        """Estimates the mean log ratio; ``None`` for too few pairs."""
        if self.is_across_states:
            return estimate_adjusted(self.log_ratios, self.shifts)
        return estimate_ratio(clip_outliers(self.log_times), self.is_first)

    @property
    def is_across_states(self) -> bool:
        """Whether runs of some pairs were in different machine states."""
        return any(self.shifts)


def clip_outliers(log_times: Sequence[tuple[float, float]]) -> list[float]:
    """Returns log ratios; of 7 to 11 pairs, that of a disturbed run is clipped if outlying.

    A run is disturbed if it is the only one of its side that is too slow for either side, and
    slower than all others by over half of what its ratio is off. Several may be a mode of the
    machine, and so may one that is slow on its own side only. One that stands out by no more than
    the speedup is not disturbed. A block that is slow as a whole has no outlying ratio.
    """
    ratios = [one - other for one, other in log_times]
    if len(ratios) not in _CLIPPED_PAIRS:
        return ratios
    sides = [*zip(*log_times, strict=True)]
    fences = [_find_fences(values) for values in (ratios, *sides)]
    # Where more than half are equal (but for the last bits), nothing is known of the noise.
    if any(high - low < 1e-9 for low, high in fences):
        return ratios
    (low, high), *of_sides = fences
    limit = max(fence for _, fence in of_sides)
    slow = [[place for place, time in enumerate(side) if time > limit] for side in sides]
    single = {(side, places[0]) for side, places in enumerate(slow) if len(places) == 1}
    slowest = max(
        time
        for side, times in enumerate(sides)
        for place, time in enumerate(times)
        if (side, place) not in single
    )
    middle, clipped = median(ratios), list(ratios)
    for side, place in single:
        if sides[side][place] - slowest > abs(ratios[place] - middle) / 2:
            clipped[place] = min(max(ratios[place], low), high)
    return clipped


def _find_fences(values: Sequence[float]) -> tuple[float, float]:
    """Finds the limits beyond which values are outliers."""
    middle = median(values)
    reach = _CLIPPED_AT * median(abs(value - middle) for value in values)
    return middle - reach, middle + reach


def join_pairs(parts: Sequence[Pairs]) -> Pairs:
    """Joins pairs of several machine states, without a step."""
    return Pairs(
        [times_s for pairs in parts for times_s in pairs.times_s],
        [is_first for pairs in parts for is_first in pairs.is_first],
        [shift for pairs in parts for shift in pairs.shifts],
        [block for pairs in parts for block in pairs.blocks],
    )


def pair_by_size(
    blocks: Sequence[Mapping[_Side, Run]], one: _Side, other: _Side, speeds: MachineStates
) -> dict[int, dict[str, Pairs]]:
    """Pairs two sides of each block, by size in bytes and machine state.

    If no state has five pairs at a size, all pairs of the size are one group (``all``), across
    states. Only canaries decide this, never the speed of a side.
    """
    found: defaultdict[int, dict[str, Pairs]] = defaultdict(dict)
    for (size, speed), pairs in pair_times(blocks, one, other, speeds).items():
        found[size][speed] = pairs
    if speeds.thresholds_s:
        for (size, _), pairs in pair_times(blocks, one, other, speeds, is_across=True).items():
            most = max(map(len, found[size].values()), default=0)
            if most < FEWEST_PAIRS and pairs.estimate() is not None:
                found[size] = {ALL: pairs}
    return {size: parts for size, parts in sorted(found.items()) if parts}


def pair_times(
    blocks: Sequence[Mapping[_Side, Run]],
    one: _Side,
    other: _Side,
    speeds: MachineStates,
    *,
    is_across: bool = False,
) -> dict[Cell, Pairs]:
    """Pairs two sides of each block, by size and machine state, block by block.

    Failed runs make no pair. Nor do runs in different states at a size, unless ``is_across``:
    then all pairs of a size are one group.
    """
    found: defaultdict[Cell, Pairs] = defaultdict(Pairs)
    within = MachineStates() if is_across else speeds
    for block in blocks:
        runs = [block[side] for side in (one, other) if side in block]
        if len(runs) == 2 and all(run.outcome is Outcome.OK for run in runs):
            first, second = (cell_times(run, within) for run in runs)
            places, others = (_find_states(run, speeds) for run in runs)
            is_first = runs[0].position < runs[1].position
            for cell in first.keys() & second.keys():
                place, away = places[cell[0]], others[cell[0]]
                if place is None or away is None:
                    continue
                pairs = found[cell]
                pairs.times_s.append((first[cell], second[cell]))
                pairs.is_first.append(is_first)
                pairs.shifts.append(place - away)
                pairs.blocks.append(runs[0].block)
    # All sizes are timed by one clock and printed in one format, of decimals or of digits.
    times_s = [time_s for pairs in found.values() for both in pairs.times_s for time_s in both]
    of_all = cache(partial(smallest_step, times_s))
    digits = cache(partial(count_digits, times_s))
    for (size, _), pairs in found.items():
        pairs.step_s = partial(_step_s, pairs, size, of_all, digits)
    return found


def _find_states(run: Run, speeds: MachineStates) -> dict[int, float | None]:
    """Returns the number of a run's machine state by size (bytes)."""
    return {m.bytes: speeds.place(m.canary_s, m.canary_after_s) for m in run.measurements}


def _step_s(
    pairs: Pairs, size: int, of_all: Callable[[], float], digits: Callable[[], int]
) -> float:
    times_s = [time_s for both in pairs.times_s for time_s in both]
    if of_bandwidths := step_of_bandwidths(times_s, size):
        return of_bandwidths
    return max(of_all(), step_at(max(pairs.middle_s()), digits()))


def estimate_pairs(
    strata: Sequence[Pairs],
    estimand: Estimand = Estimand.MEDIAN,
    spread: float = SESSION_SPREAD,
) -> Estimate | None:
    """Estimates the log ratio over machine states, with its rounding error.

    The ratio of mean times is over all states at once, since the runs of a pair share theirs.

    Args:
        spread: standard deviation of the ratio between sessions, as a share of its logarithm.
    """
    if estimand is Estimand.MEAN:
        found = estimate_mean_ratio(join_pairs(strata).times_s)
    else:
        found = combine_strata([pairs.estimate() for pairs in strata])
    if found is None:
        return None
    believed = [pairs for pairs in strata if len(pairs) > 1]
    total = sum(map(len, believed))
    rounding = sum(
        len(pairs) / total * rounding_error([both[side] for both in pairs.times_s], pairs.step_s)
        for pairs in believed
        for side in (0, 1)
    )
    return found._replace(rounding=rounding, spread=spread)
