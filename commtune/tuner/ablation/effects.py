"""Which variables of a configuration matter: what each brings, measured by leaving it out.

Nothing here makes runs (see ``ablating``). Effects are log ratios time-without / time-with inside
blocks, so that above 0 a variable helps. What is found here decides how small a candidate is made
before it is confirmed; whether it is any good is decided by the confirmation alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from commtune.model import DEFAULT, Configuration, Run
from commtune.model.conclusion import SizeEffect
from commtune.tuner.search.scores import SizeRange
from commtune.tuner.statistics.blocks import Blocks, log_ratios, pair_times
from commtune.tuner.statistics.intervals import (
    Estimate,
    combine_strata,
    estimate_ratio,
    interval_of_ratio,
    t_quantile,
)
from commtune.tuner.statistics.machine_states import ALL, MachineStates

#: The probability that a variable that does nothing is kept, all variables together.
_PASSENGER = 0.05
#: How often variables are judged, at most: after each block. All these times share the above.
_JUDGEMENTS = 13
#: A small configuration has to keep this share of the gain of the large one.
_GAIN_KEPT = 0.9
#: A variable that surely brings less than this share of the gain is left out without more runs.
_SMALL_SHARE = 0.2
_FEWEST = 4
#: The probability with which a loss, or a gain in a size range, is on the right side of doubt.
_SURE = 0.977


@dataclass(frozen=True)
class Effects:
    """Log ratios of one configuration to another by size range, in blocks that hold both.

    Attributes:
        by_range: estimate by range label; ranges without two blocks are absent.
    """

    by_range: Mapping[str, Estimate]

    @property
    def blocks(self) -> int:
        """Blocks behind the range with the fewest."""
        return min((e.pairs for e in self.by_range.values()), default=0)


def measure_effects(
    blocks: Blocks,
    slow: Configuration,
    fast: Configuration,
    ranges: Sequence[SizeRange],
    speeds: MachineStates,
) -> Effects:
    """Log ratios slow/fast, averaged over the sizes of each range within a block."""
    found = {}
    for size_range in ranges:
        per_block = [
            value
            for block in blocks
            if (value := _block_mean(block, slow, fast, size_range, speeds)) is not None
        ]
        if (mean := estimate_ratio(per_block)) is not None:
            found[size_range.label] = mean
    return Effects(found)


def _block_mean(
    block: Mapping[Configuration, Run],
    slow: Configuration,
    fast: Configuration,
    size_range: SizeRange,
    speeds: MachineStates,
) -> float | None:
    found = pair_times([block], slow, fast, speeds)
    inside = [
        value
        for (size, _), p in found.items()
        if size in size_range.sizes
        for value in log_ratios(p)
    ]
    return fmean(inside) if inside else None


def effects_by_size(
    blocks: Blocks,
    slow: Configuration,
    fast: Configuration,
    speeds: MachineStates,
    level: float = 0.95,
) -> tuple[SizeEffect, ...]:
    """Ratio slow/fast at each size, over all machine states, with an interval each.

    A size with a single pair is absent: its interval would have no end.
    """
    strata: dict[int, list[list[float]]] = {}
    for (size, _), found in pair_times(blocks, slow, fast, speeds).items():
        strata.setdefault(size, []).append(log_ratios(found))
    return tuple(
        SizeEffect(bytes=size, speed=ALL, **vars(interval_of_ratio(mean, level)))
        for size, parts in sorted(strata.items())
        if (mean := combine_strata(parts)) is not None
    )


@dataclass(frozen=True)
class VariableJudgement:
    """What can be said of variables after some blocks.

    Attributes:
        needed: those that surely bring something.
        idle: those that surely bring nothing worth having.
        unclear: the others, the most promising first.
    """

    needed: frozenset[str]
    idle: frozenset[str]
    unclear: tuple[str, ...]


def in_play(gain: Effects, minimum_gain: float) -> tuple[str, ...]:
    """The size ranges in which a configuration gains, by what is seen so far; at least one."""
    found = gain.by_range
    least = math.log1p(minimum_gain) / 2
    worth = [label for label, e in found.items() if e.mean > max(least, error_bound(e))]
    best = max(found, key=lambda label: found[label].mean, default=None)
    return tuple(worth) or ((best,) if best is not None else ())


def is_hopeless(gain: Effects, minimum_gain: float) -> bool:
    """Whether fresh runs speak against any gain that is worth it, in every size range."""
    return gain.blocks >= _FEWEST and all(
        e.mean + error_bound(e) < math.log1p(minimum_gain) for e in gain.by_range.values()
    )


def judge_variables(
    lost: Mapping[str, Effects], gain: Effects, labels: Sequence[str]
) -> VariableJudgement:
    """Sorts variables by what is lost without each, in the ranges with a gain.

    The error of an effect is taken from all variables together, which differ little in noise:
    a handful of blocks is too few to know it for each.
    """
    if not lost or min(e.blocks for e in lost.values()) < _FEWEST:
        return VariableJudgement(frozenset(), frozenset(), tuple(lost))
    comparisons = max(1, len(lost) * len(labels))
    needed, idle, best = set(), set(), {}
    for name, effect in lost.items():
        low, high, mean = -math.inf, True, -math.inf
        for label in labels:
            one = effect.by_range[label]
            error, freedom = _pooled([other.by_range[label] for other in lost.values()])
            error /= math.sqrt(one.pairs)
            reach = t_quantile(1 - _PASSENGER / comparisons, freedom) * error
            surely = t_quantile(1 - _PASSENGER / (comparisons * _JUDGEMENTS), freedom) * error
            low = max(low, one.mean - surely)
            high = high and one.mean + reach < _SMALL_SHARE * gain.by_range[label].mean
            mean = max(mean, one.mean)
        best[name] = mean
        if low > 0:
            needed.add(name)
        elif high:
            idle.add(name)
    unclear = sorted(lost.keys() - needed - idle, key=lambda name: -best[name])
    return VariableJudgement(frozenset(needed), frozenset(idle), tuple(unclear))


def _pooled(found: Sequence[Estimate]) -> tuple[float, float]:
    """Deviation of one block's effect, and its degrees of freedom, over all variables."""
    variance = fmean(e.error**2 * e.pairs for e in found)
    return math.sqrt(variance), math.fsum(e.freedom for e in found)


@dataclass(frozen=True)
class Shortfall:
    """What a smaller configuration loses of the gain of a larger one, as log ratios.

    Attributes:
        lost, gain: of the range that loses most.
        error, doubt: standard error of ``lost``, and how far it may be wrong.
        gain_doubt: how far ``gain`` may be wrong.
    """

    lost: float
    error: float
    doubt: float
    gain: float
    gain_doubt: float
    blocks: int

    @property
    def kept(self) -> float | None:
        """Share of the gain that is kept; nothing is said where there is hardly a gain."""
        return 1 - self.lost / self.gain if self.gain > self.gain_doubt else None

    @property
    def is_too_much(self) -> bool:
        """Whether more than the allowed share of the gain is lost, beyond doubt."""
        return self.lost - self.doubt > (1 - _GAIN_KEPT) * self.gain

    @property
    def is_fine(self) -> bool:
        """Whether the allowed share of the gain is kept, beyond the error."""
        return self.lost + self.error < (1 - _GAIN_KEPT) * self.gain


def measure_shortfall(
    blocks: Blocks,
    large: Configuration,
    small: Configuration,
    ranges: Sequence[SizeRange],
    labels: Sequence[str],
    speeds: MachineStates,
) -> Shortfall | None:
    """Compares a smaller configuration with a larger one; ``None`` with too few blocks."""
    lost = measure_effects(blocks, small, large, ranges, speeds)
    gain = measure_effects(blocks, DEFAULT, large, ranges, speeds)
    known = [label for label in labels if label in lost.by_range and label in gain.by_range]
    if not known or lost.blocks < _FEWEST:
        return None
    # The range in which the most is lost counts: a small profile must keep the gain in each.
    worst = max(known, key=lambda label: lost.by_range[label].mean)
    found = lost.by_range[worst]
    whole = gain.by_range[worst]
    return Shortfall(
        found.mean, found.error, error_bound(found), whole.mean, error_bound(whole), lost.blocks
    )


def error_bound(found: Estimate, of: int = 1) -> float:
    """How far a mean of few blocks may be wrong on one side, or any of so many means."""
    return t_quantile(1 - (1 - _SURE) / max(1, of), found.freedom) * found.error
