"""Evidence by size: what the profiles say, with the pairs of runs behind it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import exp, fsum, log

from commtune.db.records import StoredRun
from commtune.model import (
    DEFAULT,
    Configuration,
    Outcome,
    Phase,
    PointEvidence,
    Profile,
    Verdict,
)
from commtune.report.record import Record
from commtune.tuner.evidence import Cell, times
from commtune.tuner.speeds import ALL, FAST, MIDDLE, SLOW, Speeds
from commtune.tuner.stats import FEWEST_PAIRS

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


Pairs = Mapping[tuple[Configuration, Cell], tuple[Pair, ...]]


@dataclass(frozen=True)
class SizePoint:
    """One size at one machine speed.

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


def size_points(record: Record) -> tuple[SizePoint, ...]:
    """Every size and speed that confirmation speaks of, from the smallest size up."""
    paired = pairs_of(record.runs, record.speeds, record.operation, record.first_block)
    found = [
        _size_point(record, profile, point, paired)
        for profile in record.ranged
        for point in profile.points
        if profile.bytes_low <= point.bytes <= profile.bytes_high
    ]
    return tuple(sorted(found, key=lambda p: (p.bytes, SPEED_ORDER.get(p.evidence.speed, 9))))


def _size_point(
    record: Record, profile: Profile, point: PointEvidence, paired: Pairs
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


def _whose(profile: Profile, point: PointEvidence, paired: Pairs) -> Configuration | None:
    """The candidate that a point is about; the default's profile shows the best one unnamed."""
    if not profile.configuration.is_default:
        return profile.configuration
    cell = (point.bytes, point.speed)
    near = {
        configuration: abs(mean_log(pairs) - log(point.gain.ratio))
        for (configuration, where), pairs in paired.items()
        if where == cell
    }
    return min(near, key=lambda c: (near[c], c.key), default=None)


def mean_log(pairs: Iterable[Pair]) -> float:
    """Mean of the logarithms of the ratios."""
    logs = [log(pair.ratio) for pair in pairs]
    return fsum(logs) / len(logs) if logs else 0.0


def _more_pairs(record: Record, configuration: Configuration | None, cell: Cell) -> int:
    for confirmed in record.conclusion.confirmed:
        if confirmed.configuration == configuration:
            for effect in confirmed.effects:
                if (effect.bytes, effect.speed) == cell:
                    return effect.more_pairs
    return 0


def pairs_of(
    runs: Iterable[StoredRun], speeds: Speeds, operation: str, first_block: int
) -> dict[tuple[Configuration, Cell], tuple[Pair, ...]]:
    """Pairs of confirmation by candidate, size and speed, in the order of the blocks."""
    blocks: defaultdict[int, dict[Configuration, StoredRun]] = defaultdict(dict)
    for run in runs:
        counts = run.phase is Phase.CONFIRM and run.outcome is Outcome.OK
        if counts and run.operation == operation and run.block >= first_block:
            blocks[run.block][run.configuration] = run
    found: defaultdict[tuple[Configuration, Cell], list[Pair]] = defaultdict(list)
    for number, block in sorted(blocks.items()):
        if DEFAULT in block:
            default = times(block[DEFAULT], speeds)
            for configuration, run in block.items():
                if not configuration.is_default:
                    for cell, pair in _pairs(number, default, times(run, speeds)):
                        found[configuration, cell].append(pair)
    return {key: tuple(pairs) for key, pairs in found.items()}


def _pairs(
    block: int, default: Mapping[Cell, float], tuned: Mapping[Cell, float]
) -> Iterator[tuple[Cell, Pair]]:
    """The pairs of two runs; those of a speed count for their size over all speeds as well."""
    for size, speed in sorted(default.keys() & tuned.keys()):
        pair = Pair(block, default[size, speed], tuned[size, speed])
        yield (size, speed), pair
        if speed != ALL:
            yield (size, ALL), pair


def overall(points: Iterable[PointEvidence]) -> list[PointEvidence]:
    """The points over all machine speeds; where there are none, those of each speed."""
    found = list(points)
    return [p for p in found if p.speed == ALL] or found


def mean_gain(gains: Iterable[float]) -> float:
    """Geometric mean of ratios; 1 where there are none."""
    logs = [log(gain) for gain in gains]
    return exp(fsum(logs) / len(logs)) if logs else 1.0
