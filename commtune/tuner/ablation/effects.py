"""Which variables of a configuration matter: what each brings, measured by leaving it out.

Nothing here makes runs (see ``ablating``). Effects are log ratios time-without / time-with inside
blocks, so that above 0 a variable helps. What is found here decides how small a candidate is made
before it is confirmed; whether it is any good is decided by the confirmation alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from commtune.model import Configuration
from commtune.model.effects import SizeEffect, VariableEffect
from commtune.spaces.space import Space
from commtune.tuner.statistics.blocks import Blocks
from commtune.tuner.statistics.intervals import (
    Estimate,
    interval_of_ratio,
    t_quantile,
)
from commtune.tuner.statistics.machine_states import ALL, MachineStates
from commtune.tuner.statistics.pairs import estimate_pairs, join_pairs, pair_by_size

#: The probability that a variable that does nothing is kept, all variables together.
_PASSENGER = 0.05
#: How often variables are judged, at most: after each block. All these times share the above.
_JUDGEMENTS = 13
#: A small configuration has to keep this share of the logarithm of the gain of the large one: at
#: 4x, a tenth of the logarithm would be 13 % of the speed.
_GAIN_KEPT = 0.98
#: A variable that surely brings less than this share of the gain is left out without more runs.
_SMALL_SHARE = 0.1
_FEWEST = 4
#: The probability with which a loss, or a gain at a size, is on the right side of doubt.
_SURE = 0.977
#: That with which too much is lost. What is lost for good weighs more than a passenger.
_LOSS_SURE = 0.9


@dataclass(frozen=True)
class Effects:
    """Log ratios of one configuration to another by size, in blocks that hold both.

    Attributes:
        by_size: estimate by size in bytes; sizes without two blocks are absent.
    """

    by_size: Mapping[int, Estimate]

    @property
    def blocks(self) -> int:
        """Blocks behind the size with the fewest."""
        return min((e.pairs for e in self.by_size.values()), default=0)

    def at(self, sizes: Iterable[int]) -> Effects:
        """Those at some sizes (bytes) only."""
        return Effects({size: self.by_size[size] for size in sizes if size in self.by_size})


def measure_effects(
    blocks: Blocks,
    slow: Configuration,
    fast: Configuration,
    speeds: MachineStates,
) -> Effects:
    """Log ratios slow/fast at each size, over all machine states."""
    strata = pair_by_size(blocks, slow, fast, speeds)
    means = {size: join_pairs([*parts.values()]).estimate() for size, parts in strata.items()}
    return Effects({size: mean for size, mean in means.items() if mean is not None})


def _effects_by_size(
    blocks: Blocks,
    slow: Configuration,
    fast: Configuration,
    speeds: MachineStates,
) -> tuple[SizeEffect, ...]:
    """Ratio slow/fast at each size, over all machine states, with a 95 % interval each.

    A size with a single pair is absent: its interval would have no end.
    """
    return tuple(
        SizeEffect(bytes=size, speed=ALL, **vars(interval_of_ratio(mean, 0.95)))
        for size, parts in pair_by_size(blocks, slow, fast, speeds).items()
        if (mean := estimate_pairs([*parts.values()])) is not None
    )


def describe_variables(
    space: Space,
    blocks: Blocks,
    before: Configuration,
    after: Configuration,
    speeds: MachineStates,
) -> tuple[VariableEffect, ...]:
    """What is known of each variable: of those that stayed, beside the small configuration."""
    small = {} if after.is_default else space.parameter_units(after)
    found = []
    for name, lacking in space.parameter_units(before).items():
        stayed = name in small
        points = _effects_by_size(blocks, small[name], after, speeds) if stayed else ()
        points = points or _effects_by_size(blocks, lacking, before, speeds)
        found.append(describe_variable(space, before, name, points, kept=stayed))
    return tuple(found)


def describe_variable(
    space: Space,
    configuration: Configuration,
    name: str,
    points: tuple[SizeEffect, ...] = (),
    *,
    kept: bool = False,
) -> VariableEffect:
    """A parameter of a configuration by the variables that it sets, with what it brings."""
    values = space.values_of(configuration, name)
    return VariableEffect(tuple(sorted(values)), values, kept, points, name)


@dataclass(frozen=True)
class VariableJudgement:
    """What can be said of variables after some blocks.

    Attributes:
        needed: those that surely bring something.
        unclear: those of which neither that nor the opposite is sure, the most promising first.
    """

    needed: frozenset[str]
    unclear: tuple[str, ...]


def in_play(gain: Effects, minimum_gain: float) -> tuple[int, ...]:
    """The sizes (bytes) at which a configuration gains, by what is seen so far; at least one."""
    found = gain.by_size
    least = math.log1p(minimum_gain) / 2
    worth = [size for size, e in found.items() if e.mean > max(least, error_bound(e))]
    best = max(found, key=lambda size: found[size].mean, default=None)
    return tuple(worth) or ((best,) if best is not None else ())


def is_hopeless(gain: Effects, minimum_gain: float) -> bool:
    """Whether fresh runs speak against any gain that is worth it, at every size."""
    return gain.blocks >= _FEWEST and all(
        e.mean + error_bound(e) < math.log1p(minimum_gain) for e in gain.by_size.values()
    )


def judge_variables(
    lost: Mapping[str, Effects], gain: Effects, sizes: Sequence[int]
) -> VariableJudgement:
    """Sorts variables by what is lost without each, at the sizes with a gain.

    The error of an effect is taken from all variables together, which differ little in noise:
    a handful of blocks is too few to know it for each.
    """
    if not lost or min(e.blocks for e in lost.values()) < _FEWEST:
        return VariableJudgement(frozenset(), tuple(lost))
    comparisons = max(1, len(lost) * len(sizes))
    needed, idle, best = set(), set(), {}
    for name, effect in lost.items():
        low, high, mean = -math.inf, True, -math.inf
        for size in sizes:
            one = effect.by_size[size]
            error, freedom = _pooled([other.by_size[size] for other in lost.values()])
            error /= math.sqrt(one.pairs)
            reach = t_quantile(1 - _PASSENGER / comparisons, freedom) * error
            surely = t_quantile(1 - _PASSENGER / (comparisons * _JUDGEMENTS), freedom) * error
            low = max(low, one.mean - surely)
            high = high and one.mean + reach < _SMALL_SHARE * gain.by_size[size].mean
            mean = max(mean, one.mean)
        best[name] = mean
        if low > 0:
            needed.add(name)
        elif high:
            idle.add(name)
    unclear = sorted(lost.keys() - needed - idle, key=lambda name: -best[name])
    return VariableJudgement(frozenset(needed), tuple(unclear))


def _pooled(found: Sequence[Estimate]) -> tuple[float, float]:
    """Deviation of one block's effect, and its degrees of freedom, over all variables."""
    variance = fmean(e.error**2 * e.pairs for e in found)
    return math.sqrt(variance), math.fsum(e.freedom for e in found)


@dataclass(frozen=True)
class Shortfall:
    """What a smaller configuration loses of the gain of a larger one, as log ratios.

    Attributes:
        lost, gain: means over the sizes with a gain.
        error, doubt: standard error of ``lost``, and how far it may be wrong.
        gain_doubt: how far ``gain`` may be wrong.
        surely_lost: beyond the allowed share and beyond doubt, at the size where that is most.
    """

    lost: float
    error: float
    doubt: float
    gain: float
    gain_doubt: float
    blocks: int
    surely_lost: float = 0.0

    @property
    def kept(self) -> float | None:
        """Share of the gain that is kept; nothing is said where there is hardly a gain."""
        return 1 - self.lost / self.gain if self.gain > self.gain_doubt else None

    @property
    def is_too_much(self) -> bool:
        """Whether more than the allowed share is lost, beyond doubt: on the mean, or at a size."""
        return self.lost - self.doubt > (1 - _GAIN_KEPT) * self.gain or self.surely_lost > 0

    @property
    def is_fine(self) -> bool:
        """Whether the allowed share of the gain is kept, beyond the error."""
        return self.lost + self.error < (1 - _GAIN_KEPT) * self.gain


def measure_shortfall(lost: Effects, gain: Effects, sizes: Iterable[int]) -> Shortfall | None:
    """What a smaller configuration loses of a larger one's gain; ``None`` with too few blocks."""
    known = [size for size in sizes if size in lost.by_size and size in gain.by_size]
    if not known or lost.blocks < _FEWEST:
        return None
    lost_at, gain_at = lost.at(known).by_size.values(), gain.at(known).by_size.values()
    whole = math.fsum(e.mean for e in gain_at) / len(known)
    mean = math.fsum(e.mean for e in lost_at) / len(known)
    # Sizes of a run hang together, so their errors are taken as one; but a handful of blocks is
    # too few to know the error of each.
    error, freedom = _pooled_error(lost_at)
    doubt = t_quantile(_LOSS_SURE, freedom) * error
    gain_error, freedom = _pooled_error(gain_at)
    gain_doubt = t_quantile(_SURE, freedom) * gain_error
    # A variable of the large sizes may bring there what it costs at small ones.
    each = 1 - _PASSENGER / (len(known) * _JUDGEMENTS)
    surely_lost = max(
        e.mean - t_quantile(each, e.freedom) * e.error - (1 - _GAIN_KEPT) * of.mean
        for e, of in zip(lost_at, gain_at, strict=True)
    )
    return Shortfall(mean, error, doubt, whole, gain_doubt, lost.blocks, surely_lost)


def _pooled_error(found: Collection[Estimate]) -> tuple[float, float]:
    """Standard error of the mean over sizes that hang together, and its degrees of freedom."""
    return math.sqrt(fmean(e.error**2 for e in found)), math.fsum(e.freedom for e in found)


def error_bound(found: Estimate, of: int = 1) -> float:
    """How far a mean of few blocks may be wrong on one side, or any of so many means."""
    return t_quantile(1 - (1 - _SURE) / max(1, of), found.freedom) * found.error
