"""Compares candidates with the default in fresh blocks, and decides when a candidate may stop.

A group-sequential test: intervals at a few planned looks share the error rate (Bonferroni), and a
candidate stops early if it is decided or futile (see ``model.conclusion`` for the looks).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

from commtune.campaign.plan import Plan
from commtune.model import (
    DEFAULT,
    FEWEST_PAIRS,
    SESSION_SPREAD,
    Configuration,
    Estimand,
    Interval,
    PointEvidence,
    Tail,
    Verdict,
)
from commtune.model.conclusion import Decision
from commtune.tuner.statistics.blocks import Blocks
from commtune.tuner.statistics.intervals import (
    Estimate,
    corrected_level,
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
from commtune.tuner.statistics.tails import FailedLaunches, measure_tails

#: A candidate is futile if the remaining blocks would show a gain with less than this probability.
_FUTILITY_BOUND = 0.1


@dataclass(frozen=True)
class Compared:
    """A candidate compared with the default in the same blocks.

    Attributes:
        points: for each size one over all machine states (``all``), which has the verdict, and
            one for each state where there are several.
        estimates: those of the points over all states, by size (bytes).
        level: level of each interval, after correction.
        pairs: what was estimated from, by size and machine state.
        tails: slow runs, by size.
        median_ratios: by size (bytes), how many times as fast medians are in each pair, where
            times are others.
        failures: failed launches.
        stopped: why its confirmation ended (see ``stop_reason``).
    """

    points: tuple[PointEvidence, ...]
    estimates: Mapping[int, Estimate | None]
    level: float
    pairs: Mapping[int, Mapping[str, Pairs]] = field(default_factory=dict, compare=False)
    tails: Sequence[Tail] = ()
    median_ratios: Mapping[int, Sequence[float]] = field(default_factory=dict)
    failures: FailedLaunches = field(default_factory=FailedLaunches)
    stopped: str = ""

    def is_settled(self, sizes: Sequence[int]) -> bool:
        """Whether every size (bytes) has a verdict other than inconclusive."""
        said = {p.bytes: p.verdict for p in self.points if p.speed == ALL}
        return all(said.get(size, Verdict.UNDECIDED) is not Verdict.UNDECIDED for size in sizes)

    def stop_reason(
        self, sizes: Sequence[int], last: Rules, made: int, planned: int, *, is_alone: bool
    ) -> str:
        """Returns why the candidate stops: ``decided``, ``futile`` or ``budget``; else empty.

        Args:
            sizes: the sizes (bytes) at which it is confirmed.
            last: rules of the last look.
            made, planned: complete blocks so far, and at the end.
            is_alone: whether no other candidate could use its runs.
        """
        if self.is_settled(sizes):
            return "decided"
        if made >= planned:
            return "budget"
        overall = {p.bytes: p for p in self.points if p.speed == ALL}
        if not overall:  # all of its runs failed
            return "futile" if made >= FEWEST_PAIRS else ""
        undecided = [p for p in overall.values() if p.verdict is Verdict.UNDECIDED]
        futile = (_is_futile(self.estimates[p.bytes], last, made, planned) for p in undecided)
        if len(overall) < len(sizes) or not all(futile):
            return ""
        if not any(p.verdict is Verdict.FASTER for p in overall.values()):
            # A few pairs estimate the noise poorly, so the last candidate goes on.
            return "" if is_alone else "futile"
        # As one environment for all sizes, it has to be shown to do no harm at the other sizes.
        least = 1 - last.tolerance
        return "" if any(p.gain.low < least <= p.gain.high for p in undecided) else "decided"


#: The results of a confirmation, by candidate.
Comparison = Mapping[Configuration, Compared]


@dataclass(frozen=True)
class Rules:
    """The error rate and the margins of a comparison.

    Attributes:
        level: confidence level of all statements of the comparison together.
        minimum_gain, tolerance: margins of a gain and of harm (0.02 is 2 %).
        comparisons: number of intervals that share the error rate.
        share: share of the error rate that this look may spend.
        spread: standard deviation of a gain between sessions, as a share of its logarithm.
    """

    level: float
    minimum_gain: float
    tolerance: float
    comparisons: int
    share: float = 1.0
    spread: float = SESSION_SPREAD
    estimand: Estimand = Estimand.MEDIAN

    @classmethod
    def of(cls, plan: Plan, decision: Decision, look: int) -> Rules:
        """Returns the rules of a look (its number, from 0)."""
        named = plan.workload.sizes
        return cls(
            level=plan.level,
            minimum_gain=plan.minimum_gain,
            tolerance=plan.tolerance,
            comparisons=sum(len(decision.sizes_of(one, named)) for one in decision.candidates),
            share=decision.shares[look],
            spread=decision.session_spread,
            estimand=plan.estimand,
        )

    @property
    def interval_level(self) -> float:
        """The level of each interval, by Bonferroni's correction."""
        return corrected_level(1 - (1 - self.level) * self.share, self.comparisons)

    def estimate(self, strata: Sequence[Pairs]) -> Estimate | None:
        """Estimates the log ratio over machine states; ``None`` for too few pairs."""
        return estimate_pairs(strata, self.estimand, self.spread)


def compare_candidate(
    blocks: Blocks,
    candidate: Configuration,
    operation: str,
    speeds: MachineStates,
    rules: Rules,
    sizes: Collection[int] | None = None,
) -> Compared:
    """Compares a candidate with the default.

    Args:
        sizes: the sizes (bytes) that anything is stated about; ``None`` for all.
    """
    pairs = pair_by_size(blocks, DEFAULT, candidate, speeds)
    pairs = {size: parts for size, parts in pairs.items() if sizes is None or size in sizes}
    points: list[PointEvidence] = []
    estimates: dict[int, Estimate | None] = {}
    for size, parts in pairs.items():
        estimates[size] = rules.estimate([*parts.values()])
        states = intervals_by_state(parts, estimates[size], rules)
        points += _points(operation, size, [*states], rules)
    failures = _count_failures(blocks, candidate)
    if failures.is_worse:
        withheld = {Verdict.FASTER: Verdict.UNDECIDED}
        points = [replace(p, verdict=withheld.get(p.verdict, p.verdict)) for p in points]
    tails = measure_tails(pair_times(blocks, DEFAULT, candidate, speeds))
    medians = _compare_medians(blocks, candidate) if rules.estimand is Estimand.P95 else {}
    return Compared(
        tuple(points), estimates, rules.interval_level, pairs, tails, medians, failures
    )


def _count_failures(blocks: Blocks, candidate: Configuration) -> FailedLaunches:
    """Counts the failed launches of a candidate and of the default; lost ones are no failures."""
    both = [(block[candidate], block[DEFAULT]) for block in blocks if candidate in block]
    failed, default_failed = (
        sum(runs[side].outcome.blames_configuration for runs in both) for side in (0, 1)
    )
    return FailedLaunches(len(both), failed, default_failed)


def _compare_medians(blocks: Blocks, candidate: Configuration) -> dict[int, list[float]]:
    """Returns the ratios of medians, by size in bytes."""
    found: defaultdict[int, list[float]] = defaultdict(list)
    for block in blocks:
        one, other = (
            {m.bytes: m.busbw for m in block[side].measurements if m.busbw}
            for side in (candidate, DEFAULT)
            if side in block
        )
        for size in one.keys() & other.keys():
            found[size].append(one[size] / other[size])
    return found


def intervals_by_state(
    parts: Mapping[str, Pairs], overall: Estimate | None, rules: Rules
) -> Iterator[tuple[str, Pairs, Interval]]:
    """Yields the pairs and the interval of a size over all machine states, then in each.

    Nothing is claimed from one state, so the level of its interval is not corrected. Of too few
    pairs for an estimate, the interval has just the ratio.

    Args:
        parts: pairs by machine state, at least one.
        overall: the estimate from all of them.
    """
    states = [(ALL, join_pairs([*parts.values()]), overall, rules.interval_level)]
    for speed, pairs in sorted(parts.items()):
        if speed != ALL:
            states.append((speed, pairs, rules.estimate([pairs]), rules.level))
    for speed, pairs, found, level in states:
        interval = interval_of_ratio(found, level, len(pairs))
        yield speed, pairs, interval if found else replace(interval, ratio=pairs.ratio)


def _points(
    operation: str,
    size: int,
    states: Sequence[tuple[str, Pairs, Interval]],
    rules: Rules,
) -> list[PointEvidence]:
    count = len(states[0][1])
    overall, *by_state = (
        PointEvidence(
            operation,
            size,
            speed,
            *pairs.middle_s(rules.estimand),
            gain,
            judge_interval(gain, rules.minimum_gain),
            len(pairs) / count,
        )
        for speed, pairs, gain in states
    )
    is_vetoed = any(_contradicts(point, rules) for point in by_state)
    if overall.verdict is Verdict.FASTER and is_vetoed:
        overall = replace(overall, verdict=Verdict.UNDECIDED)
    return [overall, *by_state]


def _contradicts(point: PointEvidence, rules: Rules) -> bool:
    """Whether a machine state vetoes a gain: it is slower there, or with few pairs looks slower.

    With two to four pairs it has to look slower by more than the tolerance. One pair counts for
    nothing.
    """
    if point.gain.pairs >= FEWEST_PAIRS:
        return point.gain.high < 1
    return point.gain.pairs > 1 and point.gain.ratio < 1 - rules.tolerance


def _is_futile(estimate: Estimate | None, rules: Rules, made: int, planned: int) -> bool:
    """Whether the remaining blocks would hardly show a gain at a size.

    By predictive power with a flat prior (Spiegelhalter, Freedman & Blackburn 1986).
    """
    if estimate is None or estimate.pairs < FEWEST_PAIRS or made == 0:
        return False
    final = estimate.after_more_pairs(planned / made)
    needed = math.log1p(rules.minimum_gain) + final.half_width(rules.interval_level)
    # The standard deviation of the final mean, given the present one.
    moves = math.sqrt(max(0.0, estimate.error**2 - final.error**2))
    if moves == 0:
        return estimate.mean < needed
    return 1 - NormalDist(estimate.mean, moves).cdf(needed) < _FUTILITY_BOUND


def more_pairs(estimate: Estimate | None, level: float, least: float) -> int | None:
    """Estimates how many more pairs would decide a size; ``None`` if that can't be told.

    Args:
        level: confidence level of the interval.
        least: the gain that the interval is to show or rule out.
    """
    if estimate is None or estimate.pairs < FEWEST_PAIRS:
        return None
    needed = estimate.blocks_to_decide(level, least)
    return None if math.isinf(needed) else math.ceil(needed - estimate.pairs)
