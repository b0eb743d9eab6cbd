"""Few pairs on a machine that alternates between states: how often intervals miss, and find 10 %.

    python benchmarks/few_pairs.py --cases 4000

Blocks of the default and one candidate that does nothing, in the order that campaigns use. States
change from run to run, or stay with a probability of 0.7; a run in twenty changes its state while
a size is measured. Recorded are runs of the default, made one after another on a virtual machine
(benchmarks/grids), of which any succession is as likely. The rest is simulated.

Printed are shares of comparisons, in per cent: in which something is known of the size, in which
the interval of 99.5 % leaves the truth out (by right, 0.5), and in which a gain of 10 % is found.
"Within" takes pairs within machine states only, "pooled" all of them as they are, "used" is what
campaigns do.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from commtune.model import DEFAULT, FEWEST_PAIRS, Configuration, Outcome, Phase, Run, SizeTime
from commtune.replay.recording import load_grid
from commtune.tuner.statistics.blocks import block_order
from commtune.tuner.statistics.intervals import Estimate, interval_of_ratio
from commtune.tuner.statistics.machine_states import MachineStates
from commtune.tuner.statistics.pairs import Pairs, estimate_pairs, pair_by_size, pair_times

LEVEL, MINIMUM_GAIN, GAIN = 0.995, 0.02, 0.1
BLOCKS = (5, 6, 7, 8, 10, 12)
GRID = Path(__file__).parent / "grids" / "mpich-allreduce-default.jsonl.gz"
CANDIDATE = Configuration({"NOTHING": "1"})

#: Time and canaries before and after, of runs made one after another.
Times = Iterator[tuple[float, float | None, float | None]]


@dataclass(frozen=True)
class Noise:
    """A machine with states.

    Attributes:
        times: of so many runs.
        speeds: its states.
    """

    times: Callable[[random.Random, int], Times]
    speeds: MachineStates


def simulated(
    factors: Sequence[float], shares: Sequence[float], stay: float, *, disturbed: float = 0.0
) -> Noise:
    """A machine whose states make runs so many times longer, and the canary as well."""
    edges = MachineStates(tuple(math.sqrt(a * b) for a, b in pairwise(factors)))

    def times(rng: random.Random, count: int) -> Times:
        def drawn() -> float:
            return rng.choices(factors, shares)[0]

        state = drawn()
        for _ in range(count):
            state = state if rng.random() < stay else drawn()
            after = drawn() if rng.random() < 0.05 else state
            part = rng.random()
            time_s = ((1 - part) * state + part * after) * rng.lognormvariate(0, 0.03)
            time_s *= 1 + (rng.random() < disturbed) * rng.random()
            yield time_s, state * rng.lognormvariate(0, 0.05), after * rng.lognormvariate(0, 0.05)
            state = after

    return Noise(times, edges)


def recorded(place: int) -> Noise:
    """Of the sizes of a recording, the one at a place."""
    grid = load_grid(GRID)
    sizes = [
        run.sizes[place]
        for run in grid.runs
        if run.outcome is Outcome.OK and grid.configurations[run.configuration].is_default
    ]

    def times(rng: random.Random, count: int) -> Times:
        first = rng.randrange(len(sizes) - count)
        for size in sizes[first : first + count]:
            yield size.median_s, size.canary_s, size.canary_after_s

    return Noise(times, grid.speeds)


def noises() -> Mapping[str, Noise]:
    two, three = (1.0, 2.0), (1.0, 1.7, 3.0)
    return {
        "two states, at random": simulated(two, (0.5, 0.5), 0.0),
        "two states, sticky": simulated(two, (0.5, 0.5), 0.7),
        "two states, one of 10 disturbed": simulated(two, (0.7, 0.3), 0.0, disturbed=0.1),
        "three states, at random": simulated(three, (0.4, 0.3, 0.3), 0.0),
        "three states, sticky": simulated(three, (0.4, 0.3, 0.3), 0.7),
        "recorded, 8 B": recorded(0),
        "recorded, 64 KiB": recorded(4),
    }


def blocks_of(noise: Noise, rng: random.Random, count: int) -> list[dict[Configuration, Run]]:
    """Blocks in which neither side is faster."""
    seed, start = str(rng.randrange(300)), rng.randrange(4)
    times = noise.times(rng, 2 * count)
    found = []
    for block in range(start, start + count):
        order = block_order([CANDIDATE], seed, block)
        runs = zip(order, times, strict=False)
        found.append(
            {side: _run(side, block, place, *run) for place, (side, run) in enumerate(runs)}
        )
    return found


def _run(
    side: Configuration,
    block: int,
    place: int,
    time_s: float,
    before_s: float | None,
    after_s: float | None,
) -> Run:
    measured = SizeTime(8, time_s, before_s, after_s, busbw=1.0)
    return Run(
        run_id="", trial=0, block=block, position=place, session="", operation="allreduce",
        started_at=0.0, wall_s=1.0, configuration=side, phase=Phase.CONFIRM, outcome=Outcome.OK,
        measurements=(measured,),
    )  # fmt: skip


def within(blocks: Sequence[Mapping[Configuration, Run]], speeds: MachineStates) -> list[Pairs]:
    return [*pair_times(blocks, DEFAULT, CANDIDATE, speeds).values()]


def pooled(blocks: Sequence[Mapping[Configuration, Run]], speeds: MachineStates) -> list[Pairs]:
    del speeds
    return within(blocks, MachineStates())


def used(blocks: Sequence[Mapping[Configuration, Run]], speeds: MachineStates) -> list[Pairs]:
    by_size = pair_by_size(blocks, DEFAULT, CANDIDATE, speeds)
    return [*by_size.get(8, {}).values()]


def judge(found: Estimate | None) -> tuple[bool, bool, bool]:
    """Whether anything is known, the truth is missed, and a gain would have been found."""
    if found is None or found.pairs < FEWEST_PAIRS:
        return False, False, False
    without = interval_of_ratio(found, LEVEL)
    gain = interval_of_ratio(replace(found, mean=found.mean + math.log1p(GAIN)), LEVEL)
    return True, not without.low <= 1 <= without.high, gain.low > 1 + MINIMUM_GAIN


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=4000, help="of each cell (%(default)s)")
    cases = parser.parse_args().cases
    rng = random.Random(1)
    print(f"{'known, missed, found':40}" + "".join(f"{count:>16}" for count in BLOCKS))
    for name, noise in noises().items():
        lines = {way: f"{name}, {way.__name__}".ljust(40) for way in (within, pooled, used)}
        for count in BLOCKS:
            drawn = [blocks_of(noise, rng, count) for _ in range(cases)]
            for pairs_of in lines:
                judged = [judge(estimate_pairs(pairs_of(one, noise.speeds))) for one in drawn]
                known, missed, found = (100 * sum(x) / cases for x in zip(*judged, strict=True))
                lines[pairs_of] += f"{known:6.0f}{missed:6.2f}{found:4.0f}"
        print(*lines.values(), sep="\n", flush=True)


if __name__ == "__main__":
    main()
