"""Plans blocks of runs: their number and order, and which of them are complete.

A block runs the default and every candidate once, back to back, in a random order that is
counterbalanced over blocks, so that the effect of position cancels.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from commtune.model import DEFAULT, FEWEST_BLOCKS, FEWEST_PAIRS, BlockPlan, Configuration, Run
from commtune.tuner.statistics.evidence import cell_times
from commtune.tuner.statistics.machine_states import MachineStates
from commtune.tuner.statistics.pairs import pair_times

#: The most planned blocks: more change no verdict that matters.
_MOST_BLOCKS = 400
#: A machine state with this share of the measurements needs enough pairs.
_OFTEN = 0.15

#: Runs by configuration, block by block.
Blocks = Sequence[Mapping[Configuration, Run]]
#: The key of a run in its block: its configuration, or the arm of a comparison.
_Side = TypeVar("_Side")


def balanced_order(sides: Sequence[_Side], seed: object, block: int) -> list[_Side]:
    """Returns the order of runs in a block: random, counterbalanced, reproducible by its number.

    Of each four blocks, two have random orders and two have these reversed, which is which at
    random. So of any two sides each is first in two of the four, also after others were dropped.
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
    """Lists the blocks in which every planned configuration has a run, whatever its outcome.

    An interrupted block is dropped as a whole: its runs would not be close together in time. Of
    re-runs, the last one counts.
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
    """Counts the blocks that hold the default and every candidate."""
    members = {DEFAULT, *candidates}
    return sum(members <= block.keys() for block in blocks)


def lacks_pairs(
    blocks: Blocks, candidates: Sequence[Configuration], speeds: MachineStates
) -> bool:
    """Whether some candidate has fewer than five pairs in a machine state that occurs often.

    This depends on canaries only, never on times, so to go on for it is no look at results.
    """
    cells = [
        cell for block in blocks for run in block.values() for cell in cell_times(run, speeds)
    ]
    often = {
        name
        for name in speeds.names
        if sum(speed == name for _, speed in cells) >= _OFTEN * len(cells)
    }
    return any(
        len(found.get((size, name), ())) < FEWEST_PAIRS
        for found in (pair_times(blocks, DEFAULT, candidate, speeds) for candidate in candidates)
        if found  # a candidate that always fails will have no pairs
        for size, name in {cell for cell in cells if cell[1] in often}
    )
