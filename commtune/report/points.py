"""Collects the evidence by size: from profiles, pairs of runs, and steps of the operation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from statistics import fmean, median
from typing import TYPE_CHECKING

from commtune.model import (
    DEFAULT,
    FEWEST_PAIRS,
    Configuration,
    Estimand,
    Outcome,
    Phase,
    PointEvidence,
    Profile,
    Tail,
    Verdict,
)
from commtune.systems.nominal.collectives import Nominal
from commtune.systems.nominal.operations import stored_fabric, stored_nominal
from commtune.tuner.statistics.blocks import whole_blocks
from commtune.tuner.statistics.evidence import Cell
from commtune.tuner.statistics.machine_states import ALL, FAST, MIDDLE, SLOW
from commtune.tuner.statistics.pairs import pair_by_size
from commtune.tuner.statistics.tails import measure_tail

if TYPE_CHECKING:  # slow to import, and not needed to draw stored evidence
    from commtune.report.record import ReportedCampaign

#: The order of machine states in lists.
_SPEED_ORDER = {name: place for place, name in enumerate((ALL, FAST, MIDDLE, SLOW))}


@dataclass(frozen=True)
class _Pair:
    """A pair of runs in one block: the default's and the candidate's median seconds."""

    block: int
    default_s: float
    tuned_s: float

    @property
    def ratio(self) -> float:
        """The speedup: the default's time over the candidate's."""
        return self.default_s / self.tuned_s


_Pairs = Mapping[tuple[Configuration, Cell], tuple[_Pair, ...]]


@dataclass(frozen=True)
class SizePoint:
    """The evidence at one size in one machine state.

    Attributes:
        profile: the profile whose range includes the size.
        configuration: the candidate that was measured; ``None`` if the runs don't tell.
        more_pairs: number of further pairs that would decide; 0 if unknown.
    """

    evidence: PointEvidence
    profile: Profile
    configuration: Configuration | None
    pairs: tuple[_Pair, ...]
    more_pairs: int = 0

    @property
    def bytes(self) -> int:
        return self.evidence.bytes

    @property
    def state_rank(self) -> int:
        """The position of its machine state in lists."""
        return _SPEED_ORDER.get(self.evidence.speed, len(_SPEED_ORDER))

    @cached_property
    def tail(self) -> Tail:
        """The tail of slow runs among its pairs; there must be pairs."""
        times_s = [(pair.default_s, pair.tuned_s) for pair in self.pairs]
        return measure_tail(self.bytes, [times_s])

    @property
    def is_recommended(self) -> bool:
        """Whether a configuration other than the default is recommended here."""
        return self.profile.verdict is Verdict.FASTER

    @property
    def is_judged(self) -> bool:
        """Whether there are enough pairs for a statement."""
        return self.evidence.gain.pairs >= FEWEST_PAIRS


def size_points(record: ReportedCampaign) -> tuple[SizePoint, ...]:
    """Returns a point for each confirmed size and machine state, by ascending size."""
    paired = _pairs_of(record)
    found = []
    for profile in record.ranged:
        for point in profile.points_inside:
            cell = (point.bytes, point.speed)
            whose = _whose(profile, point, paired)
            pairs = paired.get((whose, cell), ()) if whose is not None else ()
            more = _more_pairs(record, whose, cell)
            found.append(SizePoint(point, profile, whose, pairs, more))
    return tuple(sorted(found, key=lambda p: (p.bytes, p.state_rank)))


def _whose(profile: Profile, point: PointEvidence, paired: _Pairs) -> Configuration | None:
    # A profile of the default doesn't name the candidate in its evidence, but the pairs do.
    if not profile.configuration.is_default:
        return profile.configuration
    near = {
        configuration: abs(fmean(log(pair.ratio) for pair in pairs) - log(point.gain.ratio))
        for (configuration, where), pairs in paired.items()
        if where == (point.bytes, point.speed)
    }
    return min(near, key=lambda c: (near[c], c.key), default=None)


def _more_pairs(record: ReportedCampaign, configuration: Configuration | None, cell: Cell) -> int:
    for confirmed in record.conclusion.confirmed:
        if confirmed.configuration == configuration:
            for effect in confirmed.effects:
                if (effect.bytes, effect.speed) == cell:
                    return effect.more_pairs or 0
    return 0


def _pairs_of(record: ReportedCampaign) -> dict[tuple[Configuration, Cell], tuple[_Pair, ...]]:
    """Returns confirmation pairs by candidate, size and machine state, in order of blocks.

    These are the pairs that the intervals use: from complete blocks, with the last result of a
    re-run. A pair in one machine state also counts for its size over all states.
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
    """A step of an operation that is measured separately, for information.

    Times are medians at one size over confirmation runs, seconds.

    Attributes:
        configuration: the candidate; ``None`` if only the default was confirmed.
        tuned_s: time with the candidate; ``None`` without a good run.
    """

    bytes: int
    part: str
    default_s: float
    configuration: Configuration | None
    tuned_s: float | None


def operation_steps(
    record: ReportedCampaign, points: Sequence[SizePoint]
) -> tuple[_OperationStep, ...]:
    """Returns all steps, by size, in the order in which they are measured."""
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


def _step_times(record: ReportedCampaign) -> dict[tuple[Configuration, int, str], list[float]]:
    runs = [run for run in record.runs if run.run_id in record.parts]
    confirmed = [run for run in runs if run.phase is Phase.CONFIRM]
    found: defaultdict[tuple[Configuration, int, str], list[float]] = defaultdict(list)
    # Without a confirmation, only the search's runs of the default are left.
    for run in confirmed or [run for run in runs if run.configuration == DEFAULT]:
        for part in record.parts[run.run_id]:
            key = (run.configuration, int(part["bytes"]), str(part["part"]))
            found[key].append(float(part["median_s"]))
    return dict(found)


def nominal_of(record: ReportedCampaign) -> Nominal:
    """Returns the nominal bus bandwidth, or the reason why it is unknown."""
    fabric = stored_fabric(record.campaign.settings, record.header)
    flows = {"flows": record.campaign.settings.get("flows", ())}
    workload = {"ranks": 0, **record.workload, **flows, "operation": record.operation}
    return stored_nominal(workload, fabric, record.header)


def busbw_of(record: ReportedCampaign) -> Callable[[SizePoint, float], float] | None:
    """Returns a function for the bus bandwidth (bytes/s) at a point, given a time in seconds.

    ``None`` if no run tells the factor, or times are no medians.
    """
    if record.campaign.estimand is Estimand.P95:
        return None
    # Bus bandwidth is size over time, multiplied by a factor that the operation determines.
    factors = (
        m.busbw * m.time_s / m.bytes
        for run in record.runs
        if run.outcome is Outcome.OK and run.operation == record.operation
        for m in run.measurements
    )
    factor = next(factors, None)
    return None if factor is None else lambda point, seconds: factor * point.bytes / seconds
