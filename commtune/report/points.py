"""Evidence by size: what the profiles say, with the pairs of runs and the steps behind it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isfinite, log
from statistics import median
from typing import TYPE_CHECKING

from commtune.model import (
    DEFAULT,
    FEWEST_PAIRS,
    Configuration,
    Outcome,
    Phase,
    PointEvidence,
    Profile,
    Verdict,
)
from commtune.systems.nominal.collectives import Nominal
from commtune.systems.nominal.operations import stored_fabric, stored_nominal
from commtune.tuner.statistics.blocks import whole_blocks
from commtune.tuner.statistics.evidence import Cell
from commtune.tuner.statistics.machine_states import ALL, FAST, MIDDLE, SLOW
from commtune.tuner.statistics.pairs import pair_by_size
from commtune.tuner.statistics.tails import Tail, measure_tail

if TYPE_CHECKING:  # who draws stored evidence alone doesn't wait for all that a report reads
    from commtune.report.record import CampaignRecord

#: Key of a system's description that holds its nominal bus bandwidth, bytes per second.
_SAID = "nominal_bandwidth"
#: Speeds as they are listed.
_SPEED_ORDER = {name: place for place, name in enumerate((ALL, FAST, MIDDLE, SLOW))}


@dataclass(frozen=True)
class _Pair:
    """Median seconds of the default's and the candidate's run in one block."""

    block: int
    default_s: float
    tuned_s: float

    @property
    def ratio(self) -> float:
        """The default's time over the candidate's: above 1, the candidate was faster."""
        return self.default_s / self.tuned_s


_Pairs = Mapping[tuple[Configuration, Cell], tuple[_Pair, ...]]


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
    pairs: tuple[_Pair, ...]
    more_pairs: int = 0
    detectable: float | None = None

    @property
    def bytes(self) -> int:
        return self.evidence.bytes

    @property
    def state_rank(self) -> int:
        """The place of its machine state where several are listed."""
        return _SPEED_ORDER.get(self.evidence.speed, len(_SPEED_ORDER))

    @property
    def tail(self) -> Tail:
        """Slow runs among its pairs, of which there are some."""
        return measure_tail([[(pair.default_s, pair.tuned_s) for pair in self.pairs]])

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
    paired = _pairs_of(record)
    found = [
        _size_point(record, profile, point, paired)
        for profile in record.ranged
        for point in profile.points
        if profile.bytes_low <= point.bytes <= profile.bytes_high
    ]
    return tuple(sorted(found, key=lambda p: (p.bytes, p.state_rank)))


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
    # The default's profile doesn't name the candidate that it shows: the pairs tell which it is.
    if not profile.configuration.is_default:
        return profile.configuration
    cell = (point.bytes, point.speed)
    near = {
        configuration: abs(_mean_log(pairs) - log(point.gain.ratio))
        for (configuration, where), pairs in paired.items()
        if where == cell
    }
    return min(near, key=lambda c: (near[c], c.key), default=None)


def _mean_log(pairs: Iterable[_Pair]) -> float:
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


def _pairs_of(record: CampaignRecord) -> dict[tuple[Configuration, Cell], tuple[_Pair, ...]]:
    """Pairs of confirmation by candidate, size and speed, in the order of the blocks.

    Those that the intervals are made of: of whole blocks, a re-run counts as it came
    out last. Pairs of a speed count for their size over all speeds as well.
    """
    fresh = [
        run
        for run in record.runs
        if run.phase is Phase.CONFIRM
        and run.operation == record.operation
        and run.block >= record.first_block
    ]
    found: defaultdict[tuple[Configuration, Cell], list[_Pair]] = defaultdict(list)
    blocks = whole_blocks(fresh, record.plans)
    for candidate in {one for block in blocks for one in block} - {DEFAULT}:
        for size, parts in pair_by_size(blocks, DEFAULT, candidate, record.speeds).items():
            for speed, pairs in parts.items():
                for cell in {(size, speed), (size, ALL)}:
                    numbered = zip(pairs.blocks, pairs.times_s, strict=True)
                    found[candidate, cell] += [_Pair(number, *both) for number, both in numbered]
    return {key: tuple(sorted(made, key=lambda pair: pair.block)) for key, made in found.items()}


@dataclass(frozen=True)
class _OperationStep:
    """A step of an operation, measured by itself beside the whole: shown, and not tuned for.

    At one size: medians over the confirmation's runs, seconds.

    Attributes:
        part: the benchmark's word.
        configuration: the candidate's; ``None`` where only the default was confirmed.
        tuned_s: with it; ``None`` where no such run was good.
    """

    bytes: int
    part: str
    default_s: float
    configuration: Configuration | None
    tuned_s: float | None


def operation_steps(
    record: CampaignRecord, points: Sequence[SizePoint]
) -> tuple[_OperationStep, ...]:
    """All steps, by size, in the order in which they are measured."""
    times = _step_times(record)
    candidates = {point.bytes: point.configuration for point in points}
    found = []
    for (configuration, size, part), defaults in times.items():
        if not configuration.is_default:
            continue
        other = candidates.get(size)
        tuned = times.get((other, size, part)) if other is not None else None
        found.append(
            _OperationStep(size, part, median(defaults), other, median(tuned) if tuned else None)
        )
    return tuple(sorted(found, key=lambda step: step.bytes))


def _step_times(record: CampaignRecord) -> dict[tuple[Configuration, int, str], list[float]]:
    runs = [run for run in record.runs if run.run_id in record.parts]
    confirmed = [run for run in runs if run.phase is Phase.CONFIRM]
    found: defaultdict[tuple[Configuration, int, str], list[float]] = defaultdict(list)
    # Without a confirmation, the search's runs of the default are all that there is.
    for run in confirmed or [run for run in runs if run.configuration == DEFAULT]:
        for part in record.parts[run.run_id]:
            key = (run.configuration, int(part["bytes"]), str(part["part"]))
            found[key].append(float(part["median_s"]))
    return dict(found)


def nominal_of(record: CampaignRecord) -> Nominal:
    """The nominal bus bandwidth, or why there is none."""
    said = record.campaign.system.description.get(_SAID)
    if isinstance(said, int | float) and isfinite(said) and said > 0:
        return Nominal(float(said), "the system's description", origin="a number stored with it")
    fabric = stored_fabric(record.campaign.settings, record.header)
    flows = {"flows": record.campaign.settings.get("flows", ())}
    workload = {"ranks": 0, **record.workload, **flows, "operation": record.operation}
    return stored_nominal(workload, fabric, record.header)


def busbw_of(record: CampaignRecord) -> Callable[[SizePoint, float], float] | None:
    """Bus bandwidth from a time: bytes per time, by a factor that only the operation decides."""
    factors = (
        m.busbw * m.median_s / m.bytes
        for run in record.runs
        if run.outcome is Outcome.OK and run.operation == record.operation
        for m in run.measurements
    )
    factor = next(factors, None)
    return None if factor is None else lambda point, seconds: factor * point.bytes / seconds
