"""The statistics of ablation: which variables of a configuration are needed, and what is lost.

An effect is the log ratio of times without and with a variable, within blocks, so a variable with
an effect above 0 helps. Decisions here make candidates smaller and claim nothing: speedups are
claimed from the confirmation alone. ``phase`` makes the runs.
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
    corrected_level,
    interval_of_ratio,
    t_quantile,
)
from commtune.tuner.statistics.machine_states import ALL, MachineStates
from commtune.tuner.statistics.pairs import estimate_pairs, join_pairs, pair_by_size

#: The family-wise error rate: the probability to keep any variable that does nothing.
_IDLE_RATE = 0.05
#: Numbers of blocks after which variables are judged. These judgements share the error rate.
JUDGED_AFTER = (4, 5, 6, 7, 8, 10, 12, 15, 18, 22, 27, 33, 40)
#: The share of the log speedup that a smaller configuration has to keep. Not less: at 4x, to lose
#: a tenth of the logarithm would be to lose 13 % of the speed.
_GAIN_KEPT = 0.98
#: A variable is idle if it is shown to bring less than this share of the log speedup.
_SMALL_SHARE = 0.1
#: The fewest blocks from which anything is concluded.
FEWEST = 4
#: The level of one-sided bounds of gains: two standard errors of normal noise.
_ONE_SIDED_LEVEL = 0.977
#: The level of the bound of a mean loss; lower, since idle variables are better than lost speed.
_LOSS_LEVEL = 0.9


class Effects(dict[int, Estimate]):
    """Log ratios of the times of two configurations, estimated from blocks that hold both.

    By size in bytes; sizes with fewer than two blocks are absent.
    """

    @classmethod
    def measure(
        cls, blocks: Blocks, slow: Configuration, fast: Configuration, speeds: MachineStates
    ) -> Effects:
        """Estimates the log ratios slow/fast at each size, over all machine states."""
        strata = pair_by_size(blocks, slow, fast, speeds)
        means = {size: join_pairs([*parts.values()]).estimate() for size, parts in strata.items()}
        return cls({size: mean for size, mean in means.items() if mean is not None})

    @property
    def blocks(self) -> int:
        """The number of blocks at the size with the fewest."""
        return min((e.pairs for e in self.values()), default=0)

    def gain_sizes(self, minimum_gain: float) -> tuple[int, ...]:
        """Lists the sizes (bytes) with a gain so far, or the one with the largest estimate."""
        least = math.log1p(minimum_gain) / 2
        worth = [size for size, e in self.items() if e.mean > max(least, error_bound(e))]
        best = max(self, key=lambda size: self[size].mean, default=None)
        return tuple(worth) or ((best,) if best is not None else ())

    def shows_no_gain(self, minimum_gain: float) -> bool:
        """Whether fresh runs rule out the minimum gain at every size."""
        return self.blocks >= FEWEST and all(
            e.mean + error_bound(e) < math.log1p(minimum_gain) for e in self.values()
        )


def describe_variables(
    space: Space,
    blocks: Blocks,
    before: Configuration,
    after: Configuration,
    speeds: MachineStates,
) -> tuple[VariableEffect, ...]:
    """Describes the effect of each variable: of those kept, on the smaller configuration.

    The intervals of a variable hold simultaneously over sizes, at 95 %. Their errors are pooled
    over variables, as in ``judge_variables``. Sizes with a single pair are absent.
    """
    small = {} if after.is_default else space.parameter_units(after)
    found = {}
    for name, lacking in space.parameter_units(before).items():
        effects = _estimate_sizes(blocks, small[name], after, speeds) if name in small else {}
        found[name] = effects or _estimate_sizes(blocks, lacking, before, speeds)
    return tuple(
        describe_variable(space, before, name, _describe_sizes(one, found), kept=name in small)
        for name, one in found.items()
    )


def _estimate_sizes(
    blocks: Blocks, slow: Configuration, fast: Configuration, speeds: MachineStates
) -> dict[int, Estimate]:
    """Estimates the log ratio slow/fast at each size over all machine states."""
    strata = pair_by_size(blocks, slow, fast, speeds)
    means = {size: estimate_pairs([*parts.values()]) for size, parts in strata.items()}
    return {size: mean for size, mean in means.items() if mean is not None}


def _describe_sizes(
    effect: Mapping[int, Estimate], every: Mapping[str, Mapping[int, Estimate]]
) -> tuple[SizeEffect, ...]:
    """Describes an effect by size, with the pooled error of the effects of every variable."""
    level, described = corrected_level(0.95, len(effect)), []
    for size, one in effect.items():
        deviation, freedom = _pool_blocks([e[size] for e in every.values() if size in e])
        pooled = one._replace(error=deviation / math.sqrt(one.pairs), freedom=freedom)
        found = interval_of_ratio(pooled, level)
        described.append(SizeEffect(bytes=size, speed=ALL, **vars(found)))
    return tuple(described)


def describe_variable(
    space: Space,
    configuration: Configuration,
    name: str,
    points: tuple[SizeEffect, ...] = (),
    *,
    kept: bool = False,
) -> VariableEffect:
    """Describes a parameter of a configuration by the variables that it sets and its effects."""
    values = space.values_of(configuration, name)
    return VariableEffect(tuple(sorted(values)), values, kept, points, name)


@dataclass(frozen=True)
class VariableJudgement:
    """A classification of variables after some blocks; those in neither attribute are idle.

    Attributes:
        needed: variables that are shown to bring something.
        unclear: variables that are shown to be neither needed nor idle, largest effect first.
    """

    needed: frozenset[str]
    unclear: tuple[str, ...]


def judge_variables(
    lost: Mapping[str, Effects], gain: Effects, sizes: Sequence[int]
) -> VariableJudgement:
    """Classifies variables by what is lost without each, at the sizes with a gain.

    One-sided t tests with Bonferroni's correction. The error of an effect is pooled over all
    variables, which differ little in noise, since a few blocks are too few to estimate each.

    Args:
        lost: by variable, the effects of its absence.
        gain: of the whole configuration.
        sizes: bytes.
    """
    if not lost or min(effects.blocks for effects in lost.values()) < FEWEST:
        return VariableJudgement(frozenset(), tuple(lost))
    comparisons = max(1, len(lost) * len(sizes))
    error_rate = _IDLE_RATE / (comparisons * len(JUDGED_AFTER))
    pooled = {size: _pool_blocks([e[size] for e in lost.values()]) for size in sizes}
    needed, idle, best = set(), set(), {}
    for name, effect in lost.items():
        is_needed, is_idle, best[name] = False, True, -math.inf
        for size in sizes:
            one = effect[size]
            deviation, freedom = pooled[size]
            error = deviation / math.sqrt(one.pairs)
            is_needed |= one.mean > t_quantile(1 - error_rate, freedom) * error
            idle_margin = t_quantile(1 - _IDLE_RATE / comparisons, freedom) * error
            is_idle &= one.mean + idle_margin < _SMALL_SHARE * gain[size].mean
            best[name] = max(best[name], one.mean)
        if is_needed:
            needed.add(name)
        elif is_idle:
            idle.add(name)
    unclear = sorted(lost.keys() - needed - idle, key=lambda name: -best[name])
    return VariableJudgement(frozenset(needed), tuple(unclear))


def _pool_blocks(found: Sequence[Estimate]) -> tuple[float, float]:
    """Returns the standard deviation of an effect in one block, and its degrees of freedom."""
    variance = fmean(e.error**2 * e.pairs for e in found)
    return math.sqrt(variance), math.fsum(e.freedom for e in found)


@dataclass(frozen=True)
class Shortfall:
    """What a smaller configuration loses of the gain of a larger one, as log ratios.

    Attributes:
        lost, gain: means over the sizes with a gain.
        error, margin: standard error of ``lost``, and half width of its one-sided bound.
        gain_margin: half width of the bound of ``gain``.
        excess_loss: the largest lower bound, over sizes, of the loss beyond the allowed share.
    """

    lost: float
    error: float
    margin: float
    gain: float
    gain_margin: float
    blocks: int
    excess_loss: float = 0.0

    @property
    def kept(self) -> float | None:
        """The share of the gain that is kept; ``None`` where no gain is shown."""
        return 1 - self.lost / self.gain if self.gain > self.gain_margin else None

    @property
    def is_too_much(self) -> bool:
        """Whether more than the allowed share is shown to be lost, in the mean or at a size."""
        return self.lost - self.margin > (1 - _GAIN_KEPT) * self.gain or self.excess_loss > 0

    @property
    def is_fine(self) -> bool:
        """Whether the allowed share of the gain is kept, with one standard error to spare."""
        return self.lost + self.error < (1 - _GAIN_KEPT) * self.gain


def measure_shortfall(lost: Effects, gain: Effects, sizes: Iterable[int]) -> Shortfall | None:
    """Estimates what a smaller configuration loses of a larger one's gain.

    Returns ``None`` with fewer than four blocks.
    """
    known = [size for size in sizes if size in lost and size in gain]
    if not known or lost.blocks < FEWEST:
        return None
    lost_at, gain_at = [lost[size] for size in known], [gain[size] for size in known]
    whole, mean = fmean(e.mean for e in gain_at), fmean(e.mean for e in lost_at)
    # Errors at the sizes of a run are correlated, so they don't average out. Their variances are
    # pooled, since a few blocks are too few to estimate each.
    error, freedom = _pooled_error(lost_at)
    margin = t_quantile(_LOSS_LEVEL, freedom) * error
    gain_error, freedom = _pooled_error(gain_at)
    gain_margin = t_quantile(_ONE_SIDED_LEVEL, freedom) * gain_error
    # What a variable gains at large sizes may hide in the mean what its loss costs at small ones.
    each = 1 - _IDLE_RATE / (len(known) * len(JUDGED_AFTER))
    excess_loss = max(
        e.mean - t_quantile(each, e.freedom) * e.error - (1 - _GAIN_KEPT) * of.mean
        for e, of in zip(lost_at, gain_at, strict=True)
    )
    return Shortfall(mean, error, margin, whole, gain_margin, lost.blocks, excess_loss)


def _pooled_error(found: Collection[Estimate]) -> tuple[float, float]:
    """Returns the standard error of a mean over correlated sizes, and its degrees of freedom."""
    return math.sqrt(fmean(e.error**2 for e in found)), math.fsum(e.freedom for e in found)


def error_bound(found: Estimate, of: int = 1) -> float:
    """Returns the half width of a one-sided bound of a mean, or of any of ``of`` means."""
    return t_quantile(1 - (1 - _ONE_SIDED_LEVEL) / max(1, of), found.freedom) * found.error
