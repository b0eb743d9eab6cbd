"""Confirmation: the winners against the default, in fresh blocks that the search never saw.

A block runs the default and every candidate once, close together, in random order. Candidate and
default of one block make a pair at each size, if both had the same machine speed there.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from commtune.model import DEFAULT, Configuration, Outcome, PointEvidence
from commtune.tuner.evidence import Cell, RunView, times
from commtune.tuner.speeds import Speeds
from commtune.tuner.stats import (
    FEWEST_PAIRS,
    SESSION_SPREAD,
    corrected_level,
    ratio_interval,
    verdict,
)

#: More blocks than this change no verdict that matters.
_MOST_BLOCKS = 200
#: Two machine speeds share the blocks between them, so plan for some in each.
FEWEST_BLOCKS = FEWEST_PAIRS + 2
#: A machine speed with this share of the measurements has to be spoken for.
_OFTEN = 0.15
#: Where speeds share the blocks unevenly, up to so many times the planned blocks are made.
MOST_EXTENSION = 3
#: Blocks of each guard operation: it has to show that nothing is hurt, not how much is gained.
GUARD_BLOCKS = 10


@dataclass(frozen=True)
class Decision:
    """What is to be confirmed, decided before the first block runs.

    Attributes:
        blocks: how many blocks; fixed, so that no result decides when to stop.
        first_block: blocks with smaller numbers were run for something else.
        budget_s: the wall seconds that the number of blocks was made for.
    """

    candidates: tuple[Configuration, ...]
    blocks: int
    first_block: int
    budget_s: float

    def plain(self) -> dict[str, Any]:
        """As plain data, for the store."""
        candidates = [dict(candidate) for candidate in self.candidates]
        return {**vars(self), "candidates": candidates}

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Decision:
        """From plain data, as ``plain`` gave it."""
        candidates = tuple(Configuration(values) for values in data["candidates"])
        return cls(candidates, data["blocks"], data["first_block"], data["budget_s"])


@dataclass(frozen=True)
class Comparison:
    """Everything that confirmation says, of one operation.

    Attributes:
        level: level of each interval, after correction.
        points: by configuration, one entry a size and machine speed.
    """

    operation: str
    level: float
    points: dict[Configuration, tuple[PointEvidence, ...]]


def block_order(candidates: Sequence[Configuration], seed: int, block: int) -> list[Configuration]:
    """The order of runs in a block: the default among the candidates, reproducibly shuffled."""
    order = [DEFAULT, *candidates]
    random.Random(f"{seed}:{block}").shuffle(order)
    return order


def planned_blocks(budget_s: float, block_s: float) -> int:
    """How many blocks fit a budget; fixed beforehand, so that no result decides when to stop."""
    fitting = int(budget_s / block_s) if block_s > 0 else _MOST_BLOCKS
    return max(FEWEST_BLOCKS, min(_MOST_BLOCKS, fitting))


def complete_blocks(runs: Iterable[RunView], candidates: Sequence[Configuration]) -> int:
    """How many blocks have a run, with whatever outcome, of the default and every candidate."""
    members = {DEFAULT, *candidates}
    return sum(members <= block.keys() for block in _blocks(runs))


def lacks_pairs(
    runs: Sequence[RunView], candidates: Sequence[Configuration], speeds: Speeds
) -> bool:
    """Whether some candidate has too few pairs at a machine speed that comes up often.

    Looks at what the speeds were, never at how fast a candidate was: so going on for it is no
    peeking at results.
    """
    cells = [cell for run in runs for cell in times(run, speeds)]
    often = {
        name
        for name in speeds.names
        if sum(speed == name for _, speed in cells) >= _OFTEN * len(cells)
    }
    blocks = _blocks(runs)
    return any(
        len(found.get((size, name), ())) < FEWEST_PAIRS + 1
        for found in (_pairs(blocks, candidate, speeds) for candidate in candidates)
        for size, name in {cell for cell in cells if cell[1] in often}
    )


def compare(
    runs: Iterable[RunView],
    candidates: Sequence[Configuration],
    operation: str,
    speeds: Speeds,
    *,
    level: float,
    minimum_gain: float,
) -> Comparison:
    """Compares candidates with the default over the blocks of ``runs``.

    Args:
        runs: runs of one operation; failed ones, and halves of blocks, make no pair.
        level: confidence level of all statements together.
    """
    pairs = {c: _pairs(blocks, c, speeds) for blocks in [_blocks(runs)] for c in candidates}
    comparisons = sum(
        len(found) >= FEWEST_PAIRS for by_cell in pairs.values() for found in by_cell.values()
    )
    each = corrected_level(level, comparisons)
    points = {
        candidate: tuple(
            _point(operation, cell, found, each, minimum_gain)
            for cell, found in sorted(by_cell.items())
        )
        for candidate, by_cell in pairs.items()
    }
    return Comparison(operation=operation, level=each, points=points)


Pairs = list[tuple[float, float]]


def _blocks(runs: Iterable[RunView]) -> list[dict[Configuration, RunView]]:
    found: defaultdict[int, dict[Configuration, RunView]] = defaultdict(dict)
    for run in runs:
        found[run.block][run.configuration] = run
    return list(found.values())


def _pairs(
    blocks: Sequence[dict[Configuration, RunView]], candidate: Configuration, speeds: Speeds
) -> dict[Cell, Pairs]:
    found: defaultdict[Cell, Pairs] = defaultdict(list)
    for block in blocks:
        both = [block.get(DEFAULT), block.get(candidate)]
        if all(run is not None and run.outcome is Outcome.OK for run in both):
            default, tuned = times(block[DEFAULT], speeds), times(block[candidate], speeds)
            for cell in default.keys() & tuned.keys():
                found[cell].append((default[cell], tuned[cell]))
    return found


def _point(
    operation: str, cell: Cell, pairs: Pairs, level: float, minimum_gain: float
) -> PointEvidence:
    default, tuned = [p[0] for p in pairs], [p[1] for p in pairs]
    gain = ratio_interval(default, tuned, level, spread=SESSION_SPREAD)
    size, speed = cell
    return PointEvidence(
        operation=operation,
        bytes=size,
        speed=speed,
        default_s=median(default),
        tuned_s=median(tuned),
        gain=gain,
        verdict=verdict(gain, minimum_gain),
    )
