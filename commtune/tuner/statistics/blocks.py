"""Blocks of runs: in which order they are made, how many, and which are whole.

A block runs the default and every candidate once, close together, in an order that is random and
balanced over blocks: what a place in the order does to a run cancels.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from commtune.model import DEFAULT, FEWEST_PAIRS, BlockPlan, Configuration, Run
from commtune.tuner.statistics.evidence import median_times
from commtune.tuner.statistics.machine_states import MachineStates
from commtune.tuner.statistics.pairs import pair_times

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
