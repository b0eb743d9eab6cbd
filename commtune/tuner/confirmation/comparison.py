"""What fresh blocks say of candidates against the default, and when they have said enough.

Confirmation is of the winners only, in blocks that the search never saw (``blocks``), at the looks
that were planned (``looks``).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

from commtune.model import (
    DEFAULT,
    FEWEST_PAIRS,
    Configuration,
    Estimand,
    Interval,
    PointEvidence,
    Verdict,
)
from commtune.tuner.statistics.blocks import Blocks
from commtune.tuner.statistics.intervals import (
    SITTING_SPREAD,
    Estimate,
    after_more_pairs,
    blocks_to_decide,
    corrected_level,
    half_width,
    interval_of_ratio,
    judge_interval,
)
from commtune.tuner.statistics.machine_states import ALL, MachineStates
from commtune.tuner.statistics.pairs import (
    Pairs,
    estimate_pairs,
    join_pairs,
    pair_by_size,
    pair_times,
)
from commtune.tuner.statistics.tails import Tail, measure_tail

#: A candidate's points, and the estimates behind them by size.
Compared = tuple[tuple[PointEvidence, ...], dict[int, Estimate | None]]
#: A candidate is given up when the blocks left would decide it with less than this probability.
_FUTILE = 0.1


@dataclass(frozen=True)
class Comparison:
    """Everything that confirmation says, of one operation.

    Attributes:
        points: by configuration; for each size one over all machine states (``all``), which has
            the verdict, and where the machine has several speeds one for each of these.
        estimates: what lies behind the points over all speeds, by configuration and size.
        levels: level of each interval, after correction, by configuration.
        stopped: why a candidate's blocks ended.
        tails: slow runs, by configuration and size.
        pairs: what lies behind the estimates, by configuration, size and machine state.
    """

    operation: str
    points: dict[Configuration, tuple[PointEvidence, ...]]
    estimates: dict[Configuration, dict[int, Estimate | None]]
    levels: dict[Configuration, float]
    stopped: dict[Configuration, str]
    tails: dict[Configuration, dict[int, Tail]] = field(default_factory=dict)
    pairs: dict[Configuration, dict[int, dict[str, Pairs]]] = field(
        default_factory=dict, compare=False
    )


@dataclass(frozen=True)
class Rules:
    """What a comparison is held against.

    Attributes:
        level: confidence level of all statements of the comparison together.
        comparisons: how many intervals share the error rate.
        share: the share of the error rate that this look may spend.
        spread: of a gain between sittings, as a share of its logarithm.
    """

    level: float
    minimum_gain: float
    tolerance: float
    comparisons: int
    share: float = 1.0
    spread: float = SITTING_SPREAD
    estimand: Estimand = Estimand.MEDIAN

    @property
    def each(self) -> float:
        """The level of each interval."""
        return corrected_level(1 - (1 - self.level) * self.share, self.comparisons)


def compare_one(
    blocks: Blocks, candidate: Configuration, operation: str, speeds: MachineStates, rules: Rules
) -> Compared:
    """Compares a candidate with the default: its points, and the estimates behind them."""
    points: list[PointEvidence] = []
    estimates: dict[int, Estimate | None] = {}
    for size, parts in pair_by_size(blocks, DEFAULT, candidate, speeds).items():
        estimates[size] = estimate_pairs(list(parts.values()), rules.estimand)
        points += _points(operation, size, parts, estimates[size], rules)
    return tuple(points), estimates


def measure_tails(
    blocks: Blocks, candidate: Configuration, speeds: MachineStates
) -> dict[int, Tail]:
    """Slow runs of a candidate and of the default, by size in bytes."""
    strata: defaultdict[int, list[list[tuple[float, float]]]] = defaultdict(list)
    for (size, _), found in pair_times(blocks, DEFAULT, candidate, speeds).items():
        strata[size].append(found.times_s)
    return {size: measure_tail(parts) for size, parts in strata.items()}


def _points(
    operation: str,
    size: int,
    parts: Mapping[str, Pairs],
    estimate: Estimate | None,
    rules: Rules,
) -> list[PointEvidence]:
    together = join_pairs([*parts.values()])
    gain = _interval(estimate, together, rules.each, rules.spread)
    by_speed = [
        _point(operation, size, speed, found, len(found) / len(together), rules)
        for speed, found in sorted(parts.items())
        if speed != ALL
    ]
    said = judge_interval(gain, rules.minimum_gain)
    if said is Verdict.FASTER and any(_warns(point, rules) for point in by_speed):
        said = Verdict.UNDECIDED
    middle_s = together.middle_s(rules.estimand)
    return [PointEvidence(operation, size, ALL, *middle_s, gain, said), *by_speed]


def _point(
    operation: str, size: int, speed: str, found: Pairs, share: float, rules: Rules
) -> PointEvidence:
    """What one machine state says: an interval by itself, which no claim is made from."""
    estimate = estimate_pairs([found], rules.estimand)
    gain = _interval(estimate, found, rules.level, rules.spread)
    said = judge_interval(gain, rules.minimum_gain)
    middle_s = found.middle_s(rules.estimand)
    return PointEvidence(operation, size, speed, *middle_s, gain, said, share)


def _interval(found: Estimate | None, of: Pairs, level: float, spread: float) -> Interval:
    """The interval of a ratio; with too few pairs for one, the ratio that they had."""
    gain = interval_of_ratio(found, level, len(of), spread)
    return gain if found is not None else replace(gain, ratio=of.ratio)


def _warns(point: PointEvidence, rules: Rules) -> bool:
    """Whether a machine state speaks against a gain: slower there, or, with few pairs, likely.

    A single pair is easily off by more than the tolerance, and says nothing.
    """
    if point.gain.pairs >= FEWEST_PAIRS:
        return point.gain.high < 1
    return point.gain.pairs > 1 and point.gain.ratio < 1 - rules.tolerance


def is_settled(points: Sequence[PointEvidence], sizes: Sequence[int]) -> bool:
    """Whether every size (bytes) is decided, so that more blocks change nothing."""
    said = {p.bytes: p.verdict for p in points if p.speed == ALL}
    return all(said.get(size, Verdict.UNDECIDED) is not Verdict.UNDECIDED for size in sizes)


@dataclass(frozen=True)
class ConfirmationProgress:
    """How far a confirmation is.

    Attributes:
        sizes: all sizes (bytes) that are measured.
        last: rules of the last look, which would decide in the end.
        made, planned: complete blocks so far, and at the end.
        is_alone: whether no other candidate could use its runs.
    """

    sizes: tuple[int, ...]
    last: Rules
    made: int
    planned: int
    is_alone: bool


def stop_reason(
    estimates: Mapping[int, Estimate | None],
    points: Sequence[PointEvidence],
    course: ConfirmationProgress,
) -> str:
    """Why a candidate needs no further blocks; empty where it does."""
    if is_settled(points, course.sizes):
        return "decided"
    if course.made >= course.planned:
        return "budget"
    overall = {p.bytes: p for p in points if p.speed == ALL}
    if not overall:  # it failed every time
        return "futile" if course.made >= FEWEST_PAIRS else ""
    undecided = [p for p in overall.values() if p.verdict is Verdict.UNDECIDED]
    missing = len(overall) < len(course.sizes)
    if missing or not all(_is_futile(estimates[p.bytes], course) for p in undecided):
        return ""
    if not any(p.verdict is Verdict.FASTER for p in overall.values()):
        # A few pairs estimate the noise poorly: where no other needs the time, it goes on.
        return "" if course.is_alone else "futile"
    # One environment for all sizes has to be shown to do no harm at the others.
    open_ = any(_may_harm(point, course.last) for point in undecided)
    return "" if open_ else "decided"


def _may_harm(point: PointEvidence, rules: Rules) -> bool:
    """Whether it is open that a configuration is slower at a size beyond the tolerance."""
    return point.gain.low < 1 - rules.tolerance <= point.gain.high


def _is_futile(estimate: Estimate | None, course: ConfirmationProgress) -> bool:
    """Whether the blocks left would hardly show a gain at this size."""
    made, planned, rules = course.made, course.planned, course.last
    if estimate is None or estimate.pairs < FEWEST_PAIRS or made == 0:
        return False
    final = after_more_pairs(estimate, planned / made)
    needed = math.log1p(rules.minimum_gain) + half_width(final, rules.each, rules.spread)
    # What the blocks to come can still move the mean by, from where it stands.
    moves = math.sqrt(max(0.0, estimate.error**2 - final.error**2))
    if moves == 0:
        return estimate.mean < needed
    return 1 - NormalDist(estimate.mean, moves).cdf(needed) < _FUTILE


def more_pairs(estimate: Estimate | None, rules: Rules) -> int | None:
    """How many more pairs would decide a size; ``None`` where nobody can tell."""
    if estimate is None or estimate.pairs < FEWEST_PAIRS:
        return None
    needed = blocks_to_decide(estimate, rules.each, rules.minimum_gain)
    return None if math.isinf(needed) else math.ceil(needed - estimate.pairs)
