"""Blocks of runs, and the pairs that come from them.

A block runs the default and every candidate once, close together, in an order that is random and
balanced over blocks: what a place in the order does to a run cancels. Candidate and
default of one block make a pair at each size, if both had the same machine state there.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TypeVar

from commtune.model import DEFAULT, BlockPlan, Configuration, Outcome, Run
from commtune.tuner.statistics.evidence import Cell, median_times
from commtune.tuner.statistics.intervals import FEWEST_PAIRS, Estimate, combine_strata
from commtune.tuner.statistics.machine_states import MachineStates
from commtune.tuner.statistics.rounding import rounding_error, smallest_step, step_of_bandwidths

#: More blocks than this change no verdict that matters.
_MOST_BLOCKS = 400
#: Two machine states share the blocks between them, so plan for some in each.
FEWEST_BLOCKS = FEWEST_PAIRS + 2
#: A machine state with this share of the measurements has to be spoken for.
_OFTEN = 0.15
#: Where speeds share the blocks unevenly, up to so many times the planned blocks are made.
MOST_EXTENSION = 2
#: Blocks of each guard operation: it has to show that nothing is hurt, not how much is gained.
GUARD_BLOCKS = 10

#: Runs by configuration, block by block.
Blocks = Sequence[Mapping[Configuration, Run]]
#: By what a block tells its runs apart: their configurations, or the arms of a comparison.
_Side = TypeVar("_Side")


class Pairs(list[tuple[float, float]]):
    """Times (seconds) of two configurations that ran in the same block.

    Attributes:
        step_s: gives the step of which times of these runs are multiples, at any size; 0 for none.
    """

    step_s: Callable[[], float] = float

    @property
    def times(self) -> list[float]:
        """Of both, seconds."""
        return [time_s for pair in self for time_s in pair]


def block_order(candidates: Sequence[Configuration], seed: str, block: int) -> list[Configuration]:
    """The order of runs in a block: the default among the candidates."""
    return balanced_order([DEFAULT, *candidates], seed, block)


def balanced_order(sides: Sequence[_Side], seed: object, block: int) -> list[_Side]:
    """The order of runs in a block: random, made again by its number, and balanced by fours.

    Of four blocks, two have random orders and the others the reverse of these; which is which is
    random as well. So of any two sides each leads in two of the four. That still holds for the
    others after a side has left.
    """
    four, place = divmod(block, 4)
    places = random.Random(f"{seed}:{four}").sample(range(4), 4)
    which, is_reversed = divmod(places[place], 2)

    def key(side: _Side) -> float:
        return random.Random(f"{seed}:{four}:{which}:{side}").random()

    return sorted(sides, key=key, reverse=bool(is_reversed))


def planned_blocks(budget_s: float, block_s: float) -> int:
    fitting = int(budget_s / block_s) if block_s > 0 else _MOST_BLOCKS
    return max(FEWEST_BLOCKS, min(_MOST_BLOCKS, fitting))


def whole_blocks(
    runs: Iterable[Run], plans: Mapping[int, BlockPlan]
) -> list[dict[Configuration, Run]]:
    """The blocks in which every planned configuration has a run, with whatever outcome.

    A block that was interrupted is dropped whole: what is left of it was not made close together.
    Of re-runs, the last one counts.
    """
    found: defaultdict[int, dict[Configuration, Run]] = defaultdict(dict)
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


def complete_blocks(blocks: Blocks, candidates: Sequence[Configuration]) -> int:
    """How many blocks hold the default and every candidate."""
    members = {DEFAULT, *candidates}
    return sum(members <= block.keys() for block in blocks)


def lacks_pairs(
    blocks: Blocks, candidates: Sequence[Configuration], speeds: MachineStates
) -> bool:
    """Whether some candidate has too few pairs at a machine state that comes up often.

    Looks at what the speeds were, never at how fast a candidate was: so going on for it is no
    peeking at results.
    """
    cells = [
        cell for block in blocks for run in block.values() for cell in median_times(run, speeds)
    ]
    often = {
        name
        for name in speeds.names
        if sum(speed == name for _, speed in cells) >= _OFTEN * len(cells)
    }
    return any(
        len(found.get((size, name), ())) < FEWEST_PAIRS
        for found in (pair_times(blocks, DEFAULT, candidate, speeds) for candidate in candidates)
        if found  # of one that fails every time there will be no pairs
        for size, name in {cell for cell in cells if cell[1] in often}
    )


def pair_times(
    blocks: Sequence[Mapping[_Side, Run]], one: _Side, other: _Side, speeds: MachineStates
) -> dict[Cell, Pairs]:
    """Times (seconds) of two sides of each block, by size and speed, block by block.

    Failed runs, and sizes at which the two had different speeds, make no pair.
    """
    found: defaultdict[Cell, Pairs] = defaultdict(Pairs)
    for block in blocks:
        both = [block.get(one), block.get(other)]
        if all(run is not None and run.outcome is Outcome.OK for run in both):
            first, second = median_times(block[one], speeds), median_times(block[other], speeds)
            for cell in first.keys() & second.keys():
                found[cell].append((first[cell], second[cell]))
    # All sizes are timed by one clock, and printed in one format.
    times_s = [time_s for pairs in found.values() for time_s in pairs.times]
    of_all = cache(partial(smallest_step, times_s))
    for (size, _), pairs in found.items():
        pairs.step_s = partial(_step_s, pairs.times, size, of_all)
    return found


def _step_s(times_s: Sequence[float], size: int, of_all: Callable[[], float]) -> float:
    return step_of_bandwidths(times_s, size) or of_all()


def log_ratios(found: Iterable[tuple[float, float]]) -> list[float]:
    return [math.log(one / other) for one, other in found]


def estimate_pairs(strata: Sequence[Pairs]) -> Estimate | None:
    """The mean log ratio of pairs of each machine state, with all that it may be off by."""
    found = combine_strata([log_ratios(pairs) for pairs in strata])
    if found is None:
        return None
    believed = [pairs for pairs in strata if len(pairs) > 1]
    total = sum(map(len, believed))
    rounding = sum(
        len(pairs) / total * rounding_error([pair[side] for pair in pairs], pairs.step_s)
        for pairs in believed
        for side in (0, 1)
    )
    return replace(found, rounding=rounding)
