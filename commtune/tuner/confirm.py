"""Confirmation: the winners against the default, in fresh blocks that the search never saw.

A block runs the default and every candidate once, close together, in random order. Candidate and
default of one block make a pair at each size, if both had the same machine speed there.

The blocks are looked at a few times (``LOOK_SHARES``). Each look has a share of the error rate of
its own, so that looking early costs a little and is never free: over all looks, candidates and
sizes, all intervals hold together at the campaign's level (Bonferroni). A candidate that is
decided, or that the blocks left can't decide any more, is dropped at a look, and its runs go to
the others.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist, fmean, median
from typing import Any

from commtune.model import (
    DEFAULT,
    BlockPlan,
    Configuration,
    Interval,
    Outcome,
    PointEvidence,
    Verdict,
)
from commtune.tuner.evidence import Cell, RunView, times
from commtune.tuner.speeds import ALL, Speeds
from commtune.tuner.stats import (
    FEWEST_PAIRS,
    Estimate,
    blocks_to_decide,
    combined,
    corrected_level,
    half_width,
    interval,
    verdict,
)

#: More blocks than this change no verdict that matters.
_MOST_BLOCKS = 400
#: Two machine speeds share the blocks between them, so plan for some in each.
FEWEST_BLOCKS = FEWEST_PAIRS + 2
#: A machine speed with this share of the measurements has to be spoken for.
_OFTEN = 0.15
#: Where speeds share the blocks unevenly, up to so many times the planned blocks are made.
MOST_EXTENSION = 2
#: Blocks of each guard operation: it has to show that nothing is hurt, not how much is gained.
GUARD_BLOCKS = 10
#: The share of the error rate that each look may spend, and how far the blocks are by then. Early
#: looks get little: they are to end what is plain, the last one is to find what is small.
LOOK_SHARES = (0.15, 0.25, 0.60)
LOOK_TIMES = (0.4, 0.7, 1.0)
#: With fewer blocks than this, one look at the end.
_FEWEST_FOR_LOOKS = 12
#: What the first confirmation of a campaign may spend of the error rate. A second one, with a
#: larger budget because the first told too little, has half of the rest, and so on: whoever asks
#: again until the answer pleases must not find gains that are not there.
_FIRST_SHARE = 0.8
#: A candidate is given up when the blocks left would decide it with less than this probability.
_FUTILE = 0.1


@dataclass(frozen=True)
class Look:
    """One look at the blocks, stored so that a resumed confirmation never looks again.

    Attributes:
        made: complete blocks that it saw.
        planned: complete blocks that were planned for the end, from then on.
        stopped: candidates that ended here, by place in the decision, with the reason
            (``decided``, ``futile`` or ``budget``).
    """

    made: int
    planned: int
    stopped: Mapping[int, str]


@dataclass(frozen=True)
class Decision:
    """What is to be confirmed, decided before the first block runs.

    Attributes:
        blocks: how many blocks were planned at first.
        first_block: blocks with smaller numbers were run for something else.
        budget_s: the wall seconds that the number of blocks was made for.
        looks: what was looked at so far.
        number: how many confirmations the campaign had before.
        error_share: share of the campaign's error rate that this confirmation may spend.
    """

    candidates: tuple[Configuration, ...]
    blocks: int
    first_block: int
    budget_s: float
    looks: tuple[Look, ...] = ()
    number: int = 0
    error_share: float = 1.0

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of the campaign's error rate that each look may spend."""
        shares = LOOK_SHARES if self.blocks >= _FEWEST_FOR_LOOKS else (1.0,)
        return tuple(share * self.error_share for share in shares)

    @property
    def times(self) -> tuple[float, ...]:
        """The share of the blocks that each look waits for."""
        return LOOK_TIMES if self.blocks >= _FEWEST_FOR_LOOKS else (1.0,)

    def stop_of(self, place: int) -> tuple[int, str] | None:
        """The look at which a candidate ended, and why."""
        for number, look in enumerate(self.looks):
            if place in look.stopped:
                return number, look.stopped[place]
        return None

    def made(self, place: int) -> int:
        """The complete blocks that a candidate took part in."""
        stop = self.stop_of(place)
        looks = self.looks if stop is None else self.looks[: stop[0] + 1]
        return looks[-1].made if looks else 0

    def open(self) -> tuple[Configuration, ...]:
        """The candidates that no look ended."""
        return tuple(c for i, c in enumerate(self.candidates) if self.stop_of(i) is None)

    def after(self, look: Look) -> Decision:
        """With one more look."""
        return replace(self, looks=(*self.looks, look))

    def plain(self) -> dict[str, Any]:
        """As plain data, for the store."""
        looks = [{**asdict(look), "stopped": _text_keys(look.stopped)} for look in self.looks]
        candidates = [dict(candidate) for candidate in self.candidates]
        return {**vars(self), "candidates": candidates, "looks": looks}

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Decision:
        """From plain data, as ``plain`` gave it."""
        candidates = tuple(Configuration(values) for values in data["candidates"])
        looks = tuple(
            Look(x["made"], x["planned"], {int(k): v for k, v in x["stopped"].items()})
            for x in data.get("looks", ())
        )
        return cls(
            candidates,
            data["blocks"],
            data["first_block"],
            data["budget_s"],
            looks,
            data.get("number", 0),
            data.get("error_share", 1.0),
        )


def error_share(number: int) -> float:
    """The share of a campaign's error rate for its confirmation with a number, from 0.

    The shares of any number of confirmations add up to less than 1.
    """
    return _FIRST_SHARE if number == 0 else (1 - _FIRST_SHARE) / 2**number


def _text_keys(stopped: Mapping[int, str]) -> dict[str, str]:
    return {str(place): why for place, why in stopped.items()}


@dataclass(frozen=True)
class Comparison:
    """Everything that confirmation says, of one operation.

    Attributes:
        points: by configuration; for each size one over all machine speeds (``all``), which has
            the verdict, and where the machine has several speeds one for each of these.
        estimates: what lies behind the points over all speeds, by configuration and size.
        levels: level of each interval, after correction, by configuration.
        stopped: why a candidate's blocks ended.
    """

    operation: str
    points: dict[Configuration, tuple[PointEvidence, ...]]
    estimates: dict[Configuration, dict[int, Estimate | None]]
    levels: dict[Configuration, float]
    stopped: dict[Configuration, str]


def block_order(candidates: Sequence[Configuration], seed: int, block: int) -> list[Configuration]:
    """The order of runs in a block: the default among the candidates, reproducibly shuffled."""
    order = [DEFAULT, *candidates]
    random.Random(f"{seed}:{block}").shuffle(order)
    return order


def planned_blocks(budget_s: float, block_s: float) -> int:
    """How many blocks fit a budget."""
    fitting = int(budget_s / block_s) if block_s > 0 else _MOST_BLOCKS
    return max(FEWEST_BLOCKS, min(_MOST_BLOCKS, fitting))


def whole_blocks(
    runs: Iterable[RunView], plans: Mapping[int, BlockPlan]
) -> list[dict[Configuration, RunView]]:
    """The blocks in which every planned configuration has a run, with whatever outcome.

    A block that was interrupted is dropped whole: what is left of it was not made close together.
    A run that was made again counts as its last time.
    """
    found: defaultdict[int, dict[Configuration, RunView]] = defaultdict(dict)
    for run in runs:
        if not run.outcome.is_lost:
            found[run.block][run.configuration] = run
    return [
        members
        for number, members in sorted(found.items())
        if number in plans
        and set(plans[number].order) <= members.keys()
        and len({run.session for run in members.values()}) == 1
    ]


Blocks = Sequence[Mapping[Configuration, RunView]]


def complete_blocks(blocks: Blocks, candidates: Sequence[Configuration]) -> int:
    """How many blocks hold the default and every candidate."""
    members = {DEFAULT, *candidates}
    return sum(members <= block.keys() for block in blocks)


def lacks_pairs(blocks: Blocks, candidates: Sequence[Configuration], speeds: Speeds) -> bool:
    """Whether some candidate has too few pairs at a machine speed that comes up often.

    Looks at what the speeds were, never at how fast a candidate was: so going on for it is no
    peeking at results.
    """
    cells = [cell for block in blocks for run in block.values() for cell in times(run, speeds)]
    often = {
        name
        for name in speeds.names
        if sum(speed == name for _, speed in cells) >= _OFTEN * len(cells)
    }
    return any(
        len(found.get((size, name), ())) < FEWEST_PAIRS
        for found in (pairs(blocks, DEFAULT, candidate, speeds) for candidate in candidates)
        if found  # of one that fails every time there will be no pairs
        for size, name in {cell for cell in cells if cell[1] in often}
    )


Pairs = list[tuple[float, float]]


def pairs(
    blocks: Blocks, one: Configuration, other: Configuration, speeds: Speeds
) -> dict[Cell, Pairs]:
    """Times (seconds) of two configurations, by size and speed, block by block.

    Failed runs, and sizes at which the two had different speeds, make no pair.
    """
    found: defaultdict[Cell, Pairs] = defaultdict(list)
    for block in blocks:
        both = [block.get(one), block.get(other)]
        if all(run is not None and run.outcome is Outcome.OK for run in both):
            first, second = times(block[one], speeds), times(block[other], speeds)
            for cell in first.keys() & second.keys():
                found[cell].append((first[cell], second[cell]))
    return found


def logs(found: Pairs) -> list[float]:
    """Log ratios of pairs."""
    return [math.log(one / other) for one, other in found]


@dataclass(frozen=True)
class Rules:
    """What a comparison is held against.

    Attributes:
        level: confidence level of all statements of the comparison together.
        comparisons: how many intervals share the error rate.
        share: the share of the error rate that this look may spend.
    """

    level: float
    minimum_gain: float
    tolerance: float
    comparisons: int
    share: float = 1.0

    @property
    def each(self) -> float:
        """The level of each interval."""
        return corrected_level(1 - (1 - self.level) * self.share, self.comparisons)


def compare_one(
    blocks: Blocks, candidate: Configuration, operation: str, speeds: Speeds, rules: Rules
) -> tuple[tuple[PointEvidence, ...], dict[int, Estimate | None]]:
    """Compares a candidate with the default: its points, and the estimates behind them."""
    by_size: defaultdict[int, dict[str, Pairs]] = defaultdict(dict)
    for (size, speed), found in pairs(blocks, DEFAULT, candidate, speeds).items():
        by_size[size][speed] = found
    points: list[PointEvidence] = []
    estimates: dict[int, Estimate | None] = {}
    for size, parts in sorted(by_size.items()):
        estimates[size] = combined([logs(found) for found in parts.values()])
        points += _points(operation, size, parts, estimates[size], rules)
    return tuple(points), estimates


def _points(
    operation: str,
    size: int,
    parts: Mapping[str, Pairs],
    estimate: Estimate | None,
    rules: Rules,
) -> list[PointEvidence]:
    together = [pair for found in parts.values() for pair in found]
    gain = _interval(estimate, together, rules.each)
    by_speed = [
        _point(operation, size, speed, found, len(found) / len(together), rules)
        for speed, found in sorted(parts.items())
        if speed != ALL
    ]
    said = verdict(gain, rules.minimum_gain)
    if said is Verdict.FASTER and any(_warns(point, rules) for point in by_speed):
        said = Verdict.UNDECIDED
    default, tuned = _medians(together)
    return [PointEvidence(operation, size, ALL, default, tuned, gain, said), *by_speed]


def _point(
    operation: str, size: int, speed: str, found: Pairs, share: float, rules: Rules
) -> PointEvidence:
    """What one machine speed says: an interval by itself, which no claim is made from."""
    gain = _interval(combined([logs(found)]), found, rules.level)
    said = verdict(gain, rules.minimum_gain)
    return PointEvidence(operation, size, speed, *_medians(found), gain, said, share)


def _interval(found: Estimate | None, of: Pairs, level: float) -> Interval:
    """The interval of a ratio; with too few pairs for one, the ratio that they had."""
    gain = interval(found, level, len(of))
    return gain if found is not None else replace(gain, ratio=math.exp(fmean(logs(of))))


def _warns(point: PointEvidence, rules: Rules) -> bool:
    """Whether a machine speed speaks against a gain: slower there, or, with few pairs, likely.

    A single pair is easily off by more than the tolerance, and says nothing.
    """
    if point.gain.pairs >= FEWEST_PAIRS:
        return point.gain.high < 1
    return point.gain.pairs > 1 and point.gain.ratio < 1 - rules.tolerance


def _medians(found: Pairs) -> tuple[float, float]:
    return median(pair[0] for pair in found), median(pair[1] for pair in found)


def is_settled(points: Sequence[PointEvidence], sizes: Sequence[int]) -> bool:
    """Whether every size (bytes) is decided, so that more blocks change nothing."""
    said = {p.bytes: p.verdict for p in points if p.speed == ALL}
    return all(said.get(size, Verdict.UNDECIDED) is not Verdict.UNDECIDED for size in sizes)


@dataclass(frozen=True)
class Course:
    """How far a confirmation is.

    Attributes:
        sizes: all sizes (bytes) that are measured.
        last: rules of the last look, which would decide in the end.
        made, planned: complete blocks so far, and at the end.
    """

    sizes: tuple[int, ...]
    last: Rules
    made: int
    planned: int


def stop_reason(
    estimates: Mapping[int, Estimate | None], points: Sequence[PointEvidence], course: Course
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
        return "futile"
    # One environment for all sizes has to be shown to do no harm at the others.
    open_ = any(_may_harm(point, course.last) for point in undecided)
    return "" if open_ else "decided"


def _may_harm(point: PointEvidence, rules: Rules) -> bool:
    """Whether it is open that a configuration is slower at a size beyond the tolerance."""
    return point.gain.low < 1 - rules.tolerance <= point.gain.high


def _is_futile(estimate: Estimate | None, course: Course) -> bool:
    """Whether the blocks left would hardly show a gain at this size."""
    made, planned, rules = course.made, course.planned, course.last
    if estimate is None or estimate.pairs < FEWEST_PAIRS or made == 0:
        return False
    final = replace(
        estimate,
        error=estimate.error * math.sqrt(made / planned),
        pairs=int(estimate.pairs * planned / made),
        freedom=max(estimate.freedom, estimate.freedom * planned / made),
    )
    needed = math.log1p(rules.minimum_gain) + half_width(final, rules.each)
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
