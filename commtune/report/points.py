"""Evidence by size: what the profiles say, with the pairs of runs behind it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, fsum, log

from commtune.model import DEFAULT, Configuration, Phase, PointEvidence, Profile, Verdict
from commtune.report.record import CampaignRecord
from commtune.tuner.statistics.blocks import pair_times, whole_blocks
from commtune.tuner.statistics.evidence import Cell
from commtune.tuner.statistics.intervals import FEWEST_PAIRS
from commtune.tuner.statistics.machine_states import ALL, FAST, MIDDLE, SLOW

#: Speeds as they are listed.
SPEED_ORDER = {name: place for place, name in enumerate((ALL, FAST, MIDDLE, SLOW))}


@dataclass(frozen=True)
class Pair:
    """Median seconds of the default's and the candidate's run in one block."""

    block: int
    default_s: float
    tuned_s: float

    @property
    def ratio(self) -> float:
        """Above 1 the candidate was faster."""
        return self.default_s / self.tuned_s


_Pairs = Mapping[tuple[Configuration, Cell], tuple[Pair, ...]]


@dataclass(frozen=True)
class SizePoint:
    """One size at one machine state.

    Attributes:
        profile: the profile that holds the size.
        configuration: whose times these are; ``None`` where the runs don't tell.
        more_pairs: so many more would decide; 0 where that is not known.
        detectable: the gain that would have been found here, a share; ``None``: not known.
    """

    evidence: PointEvidence
    profile: Profile
    configuration: Configuration | None
    pairs: tuple[Pair, ...]
    more_pairs: int = 0
    detectable: float | None = None

    @property
    def bytes(self) -> int:
        """Message size."""
        return self.evidence.bytes

    @property
    def is_recommended(self) -> bool:
        """Whether something else than the default is recommended here."""
        return self.profile.verdict is Verdict.FASTER

    @property
    def is_judged(self) -> bool:
        """Whether there are enough pairs to say anything."""
        return self.evidence.gain.pairs >= FEWEST_PAIRS


def size_points(record: CampaignRecord) -> tuple[SizePoint, ...]:
    """Every size and speed that confirmation speaks of, from the smallest size up."""
    paired = pairs_of(record)
    found = [
        _size_point(record, profile, point, paired)
        for profile in record.ranged
        for point in profile.points
        if profile.bytes_low <= point.bytes <= profile.bytes_high
    ]
    return tuple(sorted(found, key=lambda p: (p.bytes, SPEED_ORDER.get(p.evidence.speed, 9))))


def _size_point(
    record: CampaignRecord, profile: Profile, point: PointEvidence, paired: _Pairs
) -> SizePoint:
    cell = (point.bytes, point.speed)
    whose = _whose(profile, point, paired)
    return SizePoint(
        evidence=point,
        profile=profile,
        configuration=whose,
        pairs=paired.get((whose, cell), ()) if whose is not None else (),
        more_pairs=_more_pairs(record, whose, cell),
        detectable=record.conclusion.detectable.get(point.bytes),
    )


def _whose(profile: Profile, point: PointEvidence, paired: _Pairs) -> Configuration | None:
    """The candidate that a point is about; the default's profile doesn't name the one it shows."""
    if not profile.configuration.is_default:
        return profile.configuration
    cell = (point.bytes, point.speed)
    near = {
        configuration: abs(_mean_log(pairs) - log(point.gain.ratio))
        for (configuration, where), pairs in paired.items()
        if where == cell
    }
    return min(near, key=lambda c: (near[c], c.key), default=None)


def _mean_log(pairs: Iterable[Pair]) -> float:
    """Mean of the logarithms of the ratios."""
    logs = [log(pair.ratio) for pair in pairs]
    return fsum(logs) / len(logs) if logs else 0.0


def _more_pairs(record: CampaignRecord, configuration: Configuration | None, cell: Cell) -> int:
    for confirmed in record.conclusion.confirmed:
        if confirmed.configuration == configuration:
            for effect in confirmed.effects:
                if (effect.bytes, effect.speed) == cell:
                    return effect.more_pairs or 0
    return 0


def pairs_of(record: CampaignRecord) -> dict[tuple[Configuration, Cell], tuple[Pair, ...]]:
    """Pairs of confirmation by candidate, size and speed, in the order of the blocks.

    Those that the intervals are made of: of whole blocks, a run that was made again as it came
    out last. Pairs of a speed count for their size over all speeds as well.
    """
    fresh = [
        run
        for run in record.runs
        if run.phase is Phase.CONFIRM
        and run.operation == record.operation
        and run.block >= record.first_block
    ]
    found: defaultdict[tuple[Configuration, Cell], list[Pair]] = defaultdict(list)
    for block in whole_blocks(fresh, record.plans):
        number = block[DEFAULT].block
        for candidate in block.keys() - {DEFAULT}:
            by_cell = pair_times([block], DEFAULT, candidate, record.speeds)
            for (size, speed), times_s in by_cell.items():
                for cell in {(size, speed), (size, ALL)}:
                    found[candidate, cell] += [Pair(number, *both) for both in times_s]
    return {key: tuple(made) for key, made in found.items()}


def overall_points(points: Iterable[PointEvidence]) -> list[PointEvidence]:
    """The points over all machine states; where there are none, those of each speed."""
    found = list(points)
    return [p for p in found if p.speed == ALL] or found


def mean_gain(gains: Iterable[float]) -> float:
    """Geometric mean of ratios; 1 where there are none."""
    logs = [log(gain) for gain in gains]
    return exp(fsum(logs) / len(logs)) if logs else 1.0
