"""Makes the profiles that the confirmation supports, and their notes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from statistics import geometric_mean

from commtune import formatting
from commtune.campaign.plan import Plan
from commtune.formatting import format_percent, format_size
from commtune.model import (
    DEFAULT,
    Conditions,
    Configuration,
    Estimand,
    PointEvidence,
    Profile,
    Verdict,
)
from commtune.model.conclusion import CONFIRMATION_SHARES, Ablation, error_share
from commtune.model.effects import VariableEffect
from commtune.model.profile import ALL_SIZES, RangeBoundary
from commtune.tuner.confirmation.comparison import Comparison
from commtune.tuner.outcome.detectability import describe_detectability
from commtune.tuner.outcome.displayed_points import overall_points
from commtune.tuner.outcome.ranges import (
    Range,
    find_ranges,
    list_open_points,
    overall_of,
    range_boundaries,
    recommended_ranges,
)
from commtune.tuner.statistics.intervals import (
    Estimate,
    corrected_level,
    t_quantile,
)
from commtune.tuner.statistics.machine_states import ALL
from commtune.tuner.statistics.tails import FailedLaunches, describe_slow_runs


@dataclass(frozen=True)
class ProfileMaker:
    """Makes the profiles that the evidence supports.

    Attributes:
        guards: evidence for guard operations, by configuration.
        detectable: by size (bytes), the gain that would have been found there in 9 of 10 cases.
        simulated: whether runs were made up or played back.
    """

    plan: Plan
    comparison: Comparison
    guards: Mapping[Configuration, tuple[PointEvidence, ...]] = field(default_factory=dict)
    ablations: Sequence[Ablation] = ()
    detectable: Mapping[int, float] = field(default_factory=dict)
    simulated: bool = False

    def recommend(self) -> list[Profile]:
        """Makes a profile of each recommended range, also where the default stays."""
        ranges = recommended_ranges(self.plan, self.comparison)
        cut = [part for part in ranges if len(part.sizes) < len(self.plan.workload.sizes)]
        boundaries = range_boundaries(cut, self.comparison)
        return [self._make(part, boundaries) for part in ranges]

    def list_likely(self) -> list[Profile]:
        """Makes profiles of speedups that are likely, but not claimed, at sizes of the default.

        They are never recommended.
        """
        kept = find_ranges(self.plan, self.comparison)
        sizes = [size for part in kept if part.configuration.is_default for size in part.sizes]
        found = []
        for part in _find_likely_ranges(sizes, self.plan, self.comparison):
            made = self._make(part)
            likely = _describe_likely_gains(part.sizes, self.plan, self.comparison)
            note = "; ".join(said for said in (likely, made.note) if said)
            name = f"{made.name}-likely"
            found.append(replace(made, name=name, verdict=Verdict.LIKELY, note=note))
        return found

    def _make(self, part: Range, boundaries: Sequence[RangeBoundary] = ()) -> Profile:
        plan, comparison, configuration = self.plan, self.comparison, part.configuration
        low, high = min(part.sizes), max(part.sizes)
        points = _evidence(comparison, part)
        is_whole = len(part.sizes) == len(plan.workload.sizes) and bool(boundaries)
        made = Profile(
            name=ALL_SIZES if is_whole else f"{plan.workload.operation}-{low}-{high}",
            operation=str(plan.workload.operation),
            backend=plan.workload.backend,
            ranks=plan.workload.ranks,
            nodes=plan.workload.nodes,
            bytes_low=low,
            bytes_high=high,
            configuration=configuration,
            verdict=_verdict(part, comparison),
            points=points,
            guards=self.guards.get(configuration, ()),
            level=_level(plan, comparison, configuration),
            minimum_gain=plan.minimum_gain,
            note=_note(part, points, plan, comparison, self.detectable),
            conditions=_conditions(plan),
            simulated=self.simulated,
            contributions=_contributions(configuration, self.ablations),
            boundaries=tuple(
                boundary
                for boundary in boundaries
                if is_whole or boundary.below == high or boundary.above == low
            ),
        )
        if configuration.is_default:
            return made
        compared = comparison[configuration]
        tails = tuple(tail for tail in compared.tails if tail.bytes in part.sizes)
        mean = _describe_unmet_runs(points) if plan.estimand is Estimand.MEAN else ""
        failed = _describe_failures(compared.failures)
        suspect = _describe_suspect_speedups(points, part.sizes)
        slower = _describe_slower_medians(compared.median_ratios, part.sizes)
        unproven = _describe_unproven(made.unproven_variables)
        said = (suspect, mean, slower, failed, describe_slow_runs(tails), unproven)
        return replace(made, note="; ".join(filter(None, said)), tails=tails)


def _contributions(
    configuration: Configuration, ablations: Sequence[Ablation]
) -> tuple[VariableEffect, ...]:
    """Returns the effects of a configuration's variables, from its ablation.

    Without one of its own, from the ablation of a larger configuration of which it is a part.
    """
    if configuration.is_default:
        return ()
    for ablation in ablations:
        if ablation.after == configuration:
            return tuple(effect for effect in ablation.variables if effect.kept)
    settings = configuration.items()
    larger = (one.variables for one in ablations if settings < one.before.items())
    effects = next(larger, ())
    return tuple(one for one in effects if one.kept and one.values.items() <= settings)


def _level(plan: Plan, comparison: Comparison, configuration: Configuration) -> float:
    """Returns the level of a profile's intervals; for the default, the lowest of candidates."""
    if configuration in comparison:
        return comparison[configuration].level
    lowest = min((one.level for one in comparison.values()), default=None)
    return lowest or corrected_level(plan.level, len(plan.workload.sizes))


def _evidence(comparison: Comparison, part: Range) -> tuple[PointEvidence, ...]:
    """Returns the points behind a profile; for the default, those with the highest upper ends."""
    if not part.configuration.is_default:
        return comparison[part.configuration].points
    found: list[PointEvidence] = []
    for size in part.sizes:
        every = (one.points for one in comparison.values())
        candidates = [points for points in every if any(p.bytes == size for p in points)]
        # The candidate with the highest upper end tells which speedup may be hidden.
        most = max(candidates, key=lambda points: _most_open(points, size), default=())
        found += [point for point in most if point.bytes == size]
    return tuple(found)


def _most_open(points: Sequence[PointEvidence], size: int) -> tuple[bool, float]:
    """Returns a sort key of candidates at a size: whether pairs are enough, then the upper end."""
    sound = overall_points(points).get(size)
    return (sound is not None, sound.gain.high if sound else 0.0)


def _verdict(part: Range, comparison: Comparison) -> Verdict:
    """Returns the verdict of a range: for the default, whether every gain is ruled out."""
    if not part.configuration.is_default:
        return Verdict.FASTER
    said = [
        point is not None and point.verdict is Verdict.DEFAULT
        for one in comparison
        for size in part.sizes
        for point in [overall_of(comparison, one).get(size)]
    ]
    return Verdict.DEFAULT if said and all(said) else Verdict.UNDECIDED


def _note(
    part: Range,
    points: Sequence[PointEvidence],
    plan: Plan,
    comparison: Comparison,
    detectable: Mapping[int, float],
) -> str:
    """Describes likely gains, and those not ruled out, where the default stays."""
    if not part.configuration.is_default:
        return ""
    likely = _describe_likely_gains(part.sizes, plan, comparison)
    hidden = describe_detectability(part.sizes, points, plan.minimum_gain, detectable)
    failing = [
        f"{configuration} is not recommended: {_describe_failures(one.failures)}"
        for configuration, one in comparison.items()
        if one.failures.is_worse
    ]
    return "; ".join(filter(None, (likely, hidden, *failing)))


def _conditions(plan: Plan) -> Conditions:
    workload = plan.workload
    estimand = "" if plan.estimand is Estimand.MEDIAN else str(plan.estimand)
    return Conditions(
        plan.beside, workload.emulated_nodes, plan.timing.said, workload.pattern, estimand
    )


#: Speedups from here on are suspect. They do occur where the default takes the wrong network.
_SUSPECT = 100.0


def _describe_suspect_speedups(points: Sequence[PointEvidence], sizes: Collection[int]) -> str:
    """Describes speedups that are more likely a fault of the benchmark; empty without any.

    Args:
        sizes: bytes.
    """
    found = {one.bytes for one in points if one.bytes in sizes and one.gain.ratio >= _SUSPECT}
    if not found:
        return ""
    at = ", ".join(map(format_size, sorted(found)))
    return f"{_SUSPECT:.0f}x or more at {at}: see whether the benchmark still does its work"


def _describe_failures(found: FailedLaunches) -> str:
    """Describes failed launches; empty if there are no more than the default's."""
    if found.failed <= found.default_failed:
        return ""
    return f"{found.failed} of {found.launches} launches failed (default: {found.default_failed})"


def _describe_slower_medians(
    medians: Mapping[int, Sequence[float]], sizes: Collection[int]
) -> str:
    """Says where operations are slower in the middle, though their 95th percentile is shorter.

    Args:
        medians: how many times as fast they are in each pair, by size in bytes.
        sizes: bytes.
    """
    means = {size: geometric_mean(medians[size]) for size in sizes if size in medians}
    slower = {size: ratio for size, ratio in means.items() if ratio < 1}
    if not slower:
        return ""
    size = min(slower, key=lambda size: slower[size])
    pairs = formatting.format_count(len(medians[size]), "pair")
    at = ", ".join(map(format_size, sorted(slower)))
    worst = f"{slower[size]:.2f}x as fast at {format_size(size)} ({pairs}, no interval)"
    return f"medians are longer at {at}: {worst}"


def _describe_unproven(names: Sequence[str]) -> str:
    """Names the variables not shown to contribute, and what would tell; empty without any."""
    told = "more time for ablation would tell, and drop the rest: budget.ablation, or --ablate"
    return f"not shown to contribute: {', '.join(names)} ({told})" if names else ""


def _describe_unmet_runs(points: Sequence[PointEvidence]) -> str:
    """Says that speedups are about mean times, and how frequent slow runs may be that none met.

    Args:
        points: those by which a configuration's speedups are claimed.
    """
    pairs = min((point.gain.pairs for point in points if point.speed == ALL), default=1)
    unmet = 1 - 0.05 ** (1 / max(1, pairs))
    return (
        f"faster on average: speedups are of mean times, as far as {pairs} pairs met slow runs; "
        f"up to {format_percent(unmet)} of runs may be slow and were not met"
    )


#: The level of the one-sided bound of a likely gain, each by itself. It is no claim: of sizes at
#: which there is nothing, one in twenty is likely.
_LIKELY = 0.95
#: The most sizes that are described one by one.
_MOST_TOLD = 3


def _describe_likely_gains(sizes: Sequence[int], plan: Plan, comparison: Comparison) -> str:
    """Describes the largest speedups that are likely at some sizes (bytes); empty without any."""
    found = sorted(_find_likely(sizes, plan, comparison), key=lambda one: -one[0].gain.ratio)
    said: dict[Configuration, list[str]] = {}
    for point, configuration, runs in found[:_MOST_TOLD]:
        said.setdefault(configuration, []).append(_describe_point(point, runs))
    parts = [f"{', '.join(points)} by {configuration}" for configuration, points in said.items()]
    rest = len(found) - _MOST_TOLD
    more = f"; and at {formatting.format_count(rest, 'more size')}" if rest > 0 else ""
    return f"likely, not proven: {'; '.join(parts)}{more}" if found else ""


def _find_likely_ranges(sizes: Sequence[int], plan: Plan, comparison: Comparison) -> list[Range]:
    """Finds ranges of sizes with a likely speedup; each size has the configuration with most.

    Args:
        sizes: those (bytes) at which the default stays.
    """
    best: dict[int, tuple[float, Configuration]] = {}
    for point, configuration, _ in _find_likely(sizes, plan, comparison):
        found = (point.gain.ratio, configuration)
        best[point.bytes] = max(best.get(point.bytes, found), found, key=lambda one: one[0])
    chosen = [(size, best.get(size, (0.0, DEFAULT))[1]) for size in sorted(plan.workload.sizes)]
    ranges = groupby(chosen, key=lambda one: one[1])
    return [
        Range(configuration, tuple(size for size, _ in inside))
        for configuration, inside in ranges
        if not configuration.is_default
    ]


def _find_likely(
    sizes: Sequence[int], plan: Plan, comparison: Comparison
) -> Iterator[tuple[PointEvidence, Configuration, float]]:
    """Yields points with a likely speedup, and how many more runs would probably decide each."""
    # A further confirmation begins with fresh blocks, and has the next share of the error rate.
    share = error_share(1) * CONFIRMATION_SHARES[-1]
    level = corrected_level(1 - (1 - plan.level) * share, len(plan.workload.sizes))
    for configuration, point, estimate in list_open_points(comparison, plan.minimum_gain):
        is_open = point.bytes in sizes and not point.gain.is_too_noisy
        if is_open and _is_likely(estimate, plan.minimum_gain):
            pairs = estimate.blocks_to_decide(level, plan.minimum_gain)
            yield point, configuration, 2 * pairs


def _is_likely(estimate: Estimate, minimum_gain: float) -> bool:
    within = t_quantile(_LIKELY, estimate.freedom) * estimate.error
    low = estimate.mean - math.hypot(within, estimate.rounding)
    return low > math.log1p(minimum_gain)


def _describe_point(point: PointEvidence, runs: float) -> str:
    gain = point.gain
    what = formatting.describe_speedup(gain, point.bytes)
    return f"{what} ({formatting.describe_deciding_runs(runs)})"
