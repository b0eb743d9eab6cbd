"""From compared candidates to recommended profiles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby

from commtune.model import DEFAULT, Configuration, PointEvidence, Profile, Verdict
from commtune.tuner.confirm import Comparison
from commtune.tuner.plan import Plan
from commtune.tuner.stats import FEWEST_PAIRS

Points = Sequence[PointEvidence]


def recommend(
    plan: Plan,
    comparison: Comparison,
    guards: Mapping[Configuration, tuple[PointEvidence, ...]],
    *,
    simulated: bool = False,
) -> list[Profile]:
    """The profiles that the evidence supports.

    One per range of neighbouring sizes that share the best configuration (the default among
    them), and one environment for all sizes, if one is faster somewhere and, within the plan's
    tolerance, nowhere slower.
    """
    choice = {size: best_at(size, comparison) for size in plan.workload.sizes}
    ranges = [
        (configuration, tuple(sizes))
        for configuration, sizes in groupby(sorted(choice), key=lambda size: choice[size])
    ]
    found = [
        _profile(plan, comparison, guards, configuration, sizes, simulated=simulated)
        for configuration, sizes in ranges
    ]
    everywhere = best_everywhere(plan, comparison)
    if everywhere is not None and len(ranges) > 1:
        sizes = tuple(sorted(plan.workload.sizes))
        whole = _profile(
            plan, comparison, guards, everywhere, sizes, simulated=simulated, name="all-sizes"
        )
        found.append(whole)
    return found


def best_at(size: int, comparison: Comparison) -> Configuration:
    """The configuration whose gain at a size is surest, or the default where none is sure."""
    best, best_low = DEFAULT, 0.0
    for configuration, points in comparison.points.items():
        here = judged([p for p in points if p.bytes == size])
        if here and all(p.verdict is Verdict.FASTER for p in here):
            low = min(p.gain.low for p in here)
            if low > best_low:
                best, best_low = configuration, low
    return best


def best_everywhere(plan: Plan, comparison: Comparison) -> Configuration | None:
    """The configuration with the largest mean gain that hurts no size beyond the tolerance."""
    best, best_gain = None, 0.0
    for configuration, points in comparison.points.items():
        sound = judged(points)
        measured = {p.bytes for p in sound} == set(plan.workload.sizes)
        unharmed = all(p.gain.low >= 1 - plan.tolerance for p in sound)
        faster = any(p.verdict is Verdict.FASTER for p in sound)
        gain = math.fsum(math.log(p.gain.ratio) for p in sound)
        if measured and unharmed and faster and gain > best_gain:
            best, best_gain = configuration, gain
    return best


def judged(points: Points) -> list[PointEvidence]:
    """The points with enough pairs to say anything."""
    return [p for p in points if p.gain.pairs >= FEWEST_PAIRS]


def _profile(
    plan: Plan,
    comparison: Comparison,
    guards: Mapping[Configuration, tuple[PointEvidence, ...]],
    configuration: Configuration,
    sizes: Sequence[int],
    *,
    simulated: bool,
    name: str = "",
) -> Profile:
    low, high = min(sizes), max(sizes)
    points = _evidence(comparison, configuration, sizes)
    return Profile(
        name=name or f"{plan.workload.operation}-{low}-{high}",
        operation=str(plan.workload.operation),
        backend=plan.workload.backend,
        ranks=plan.workload.ranks,
        nodes=plan.workload.nodes,
        bytes_low=low,
        bytes_high=high,
        configuration=configuration,
        verdict=_verdict(configuration, points),
        points=points,
        guards=guards.get(configuration, ()),
        level=comparison.level,
        minimum_gain=plan.minimum_gain,
        note=_note(configuration, points, plan),
        simulated=simulated,
    )


def _evidence(
    comparison: Comparison, configuration: Configuration, sizes: Sequence[int]
) -> tuple[PointEvidence, ...]:
    """The points behind a profile; for the default, what the best candidate reached there."""
    if not configuration.is_default:
        return comparison.points[configuration]
    found: list[PointEvidence] = []
    for size in sizes:
        here = [p for points in comparison.points.values() for p in points if p.bytes == size]
        for speed in sorted({p.speed for p in here}):
            at_speed = [p for p in here if p.speed == speed]
            found.append(max(at_speed, key=lambda p: p.gain.ratio))
    return tuple(found)


def _verdict(configuration: Configuration, points: Points) -> Verdict:
    if not configuration.is_default:
        return Verdict.FASTER
    sound = judged(points)
    decided = bool(sound) and all(p.verdict is Verdict.DEFAULT for p in sound)
    return Verdict.DEFAULT if decided else Verdict.UNDECIDED


def _note(configuration: Configuration, points: Points, plan: Plan) -> str:
    if not configuration.is_default:
        return ""
    highs = [p.gain.high for p in judged(points)]
    if not highs:
        return "too few comparable pairs to say anything; keep the default"
    hidden = max(highs) - 1
    if hidden < plan.minimum_gain:
        return f"no candidate gains {plan.minimum_gain:.0%} here"
    return f"no gain was shown here; one of up to {hidden:.0%} could still be hidden in the noise"
