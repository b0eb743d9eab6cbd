"""From compared candidates to recommended profiles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from commtune.model import DEFAULT, Configuration, PointEvidence, Profile, Verdict
from commtune.tuner.confirm import Comparison
from commtune.tuner.plan import Plan
from commtune.tuner.stats import FEWEST_PAIRS

Points = Sequence[PointEvidence]

#: An interval that allows for a gain as large says nothing.
_HOPELESS = 9.0


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
    ranges = size_ranges(sorted(plan.workload.sizes), comparison, plan.minimum_gain)
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


def size_ranges(
    sizes: Sequence[int], comparison: Comparison, minimum_gain: float
) -> list[tuple[Configuration, tuple[int, ...]]]:
    """Cuts sizes into ranges with a configuration each, as few as the evidence supports.

    Sizes, from the smallest up, share a range as long as one configuration is as good as the
    best at all of them, as far as the intervals can tell.
    """
    ranges: list[tuple[set[Configuration], list[int]]] = []
    for size in sizes:
        good = good_at(size, comparison, minimum_gain)
        if ranges and ranges[-1][0] & good:
            shared, members = ranges.pop()
            ranges.append((shared & good, [*members, size]))
        else:
            ranges.append((good, [size]))
    return [(_best_of(good, members, comparison), tuple(members)) for good, members in ranges]


def good_at(size: int, comparison: Comparison, minimum_gain: float) -> set[Configuration]:
    """The configurations that are faster at a size, and that no other beats by much there.

    By much is: surely, by more than the smallest gain that is worth a recommendation.

    Only the default, where none is faster at every machine speed with enough pairs.
    """
    faster: dict[Configuration, dict[str, PointEvidence]] = {}
    for configuration, points in comparison.points.items():
        here = {p.speed: p for p in judged(points) if p.bytes == size}
        few = [p for p in points if p.bytes == size and p.speed not in here]
        sure = bool(here) and all(p.verdict is Verdict.FASTER for p in here.values())
        # A speed with too few pairs proves nothing, but it may warn.
        if sure and all(p.gain.ratio >= 1 for p in few):
            faster[configuration] = here
    good = {
        configuration
        for configuration, here in faster.items()
        if not any(_beats(other, here, minimum_gain) for other in faster.values())
    }
    return good or {DEFAULT}


def _beats(
    one: Mapping[str, PointEvidence], other: Mapping[str, PointEvidence], minimum_gain: float
) -> bool:
    """Whether the interval of one lies well above that of the other at some speed."""
    return any(
        one[speed].gain.low > other[speed].gain.high * (1 + minimum_gain)
        for speed in one.keys() & other.keys()
    )


def _best_of(
    good: set[Configuration], sizes: Sequence[int], comparison: Comparison
) -> Configuration:
    def mean_gain(configuration: Configuration) -> tuple[float, int, str]:
        inside = [
            math.log(p.gain.ratio)
            for p in judged(comparison.points.get(configuration, ()))
            if p.bytes in sizes
        ]
        # Of equals the one with fewer variables; the key makes the choice reproducible.
        return (round(math.fsum(inside), 3), -len(configuration), configuration.key)

    return max(good, key=mean_gain)


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
    if hidden > _HOPELESS:
        return "nothing is known here: too noisy; make more runs, on a quieter machine"
    return f"no gain was shown here; one of up to {hidden:.0%} could still be hidden in the noise"
