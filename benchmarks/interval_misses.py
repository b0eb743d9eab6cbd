"""How often the interval of a ratio misses the truth, by noise and number of pairs; and power.

    python benchmarks/interval_misses.py --jobs 8

Simulated. Pairs of runs in blocks of the default and one candidate, in the order that campaigns
use, a random one of four places of it first. Printed is the share of intervals that leave out the
truth, of a level of 99.5 %: by right, 0.5 %. The candidate does nothing, is 3 % faster, or 3 %
slower, each in a third of the cases. Below is how often a gain of 10 % is found.
Last is how often a gain as large as the minimum detectable effect, which other pairs of the same
noise gave, is found: by right, 90 %.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache, partial

import numpy as np

from commtune.model import Interval
from commtune.tuner.statistics.blocks import balanced_order
from commtune.tuner.statistics.intervals import interval_of_ratio
from commtune.tuner.statistics.pairs import Pairs
from commtune.tuner.statistics.power import detectable_gain

LEVEL = 0.995
MINIMUM_GAIN = 0.02
PAIRS = (5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 31, 40)
POWER_PAIRS = (8, 12, 20, 31, 40)
FOUND_PAIRS = (7, *POWER_PAIRS)
_GAIN = math.log(1.1)
#: Speedups of which intervals may miss the truth.
_TRUTHS = (1.0, 1.03, 1 / 1.03)
#: So many campaigns have orders of their own.
SEEDS = 300

#: Logarithms of the times of so many runs, in the order in which they are made.
Noise = Callable[[random.Random, int], list[float]]


def by_turns(period: int, slow: int, spread: float = 0.02, *, anywhere: bool = False) -> Noise:
    """The first ``slow`` of every ``period`` runs take 10 % longer.

    Args:
        anywhere: begins at any run of a period, and not with a slow one.
    """

    def runs(rng: random.Random, count: int) -> list[float]:
        first = rng.randrange(period) if anywhere else 0
        return [0.1 * ((first + n) % period < slow) + rng.gauss(0, spread) for n in range(count)]

    return runs


def normal(rng: random.Random, count: int) -> list[float]:
    return [rng.gauss(0, 0.03) for _ in range(count)]


def heavy_tailed(rng: random.Random, count: int) -> list[float]:
    """Student's t with 3 degrees of freedom."""
    return [0.03 * rng.gauss(0, 1) / math.sqrt(rng.gammavariate(1.5, 2 / 3)) for _ in range(count)]


def disturbed(rng: random.Random, count: int) -> list[float]:
    """Every tenth run, at random, takes 1.2 to 7 times longer."""
    return [n + (rng.random() < 0.1) * rng.uniform(0.2, 2) for n in normal(rng, count)]


def slow_launches(rng: random.Random, count: int) -> list[float]:
    """15 % of runs take three times as long."""
    return [n + (rng.random() < 0.15) * math.log(3) for n in normal(rng, count)]


def two_modes(rng: random.Random, count: int) -> list[float]:
    """A run takes 1.5 times longer in 40 % of launches."""
    return [n + (rng.random() < 0.4) * math.log(1.5) for n in normal(rng, count)]


def with_memory(rng: random.Random, count: int) -> list[float]:
    """AR(1): what slows a run down slows the next ones."""
    found = [rng.gauss(0, 0.06)]
    for _ in range(count - 1):
        found.append(0.7 * found[-1] + rng.gauss(0, 0.043))
    return found


def tail_latencies(rng: random.Random, count: int) -> list[float]:
    """Times are 95th percentiles of 60 operations, of which 5 % take three times as long.

    So they are those of a slow operation in half of the runs.
    """
    draws = np.random.default_rng(rng.getrandbits(64))
    operations = draws.normal(0, 0.05, (count, 60))
    operations += math.log(3) * (draws.random((count, 60)) < 0.05)
    found = np.quantile(operations, 0.95, axis=1) + draws.normal(0, 0.02, count)
    return [float(one) for one in found]


#: Gives so many pairs.
Draws = Callable[[int], Pairs]

NOISES: dict[str, Noise] = {
    "normal": normal,
    "Student's t, 3": heavy_tailed,
    "1 of 10 disturbed": disturbed,
    "15 % three times slower": slow_launches,
    "two modes": two_modes,
    "AR(1), 0.7": with_memory,
    "first slower": by_turns(2, 1),
    "first slower, exactly": by_turns(2, 1, 0.0),
    "1 of 3 slower": by_turns(3, 1, anywhere=True),
    "2 of 4 slower": by_turns(4, 2, anywhere=True),
}


@cache
def order(seed: int, block: int) -> list[str]:
    """Of a block, as campaigns have it."""
    return balanced_order(("default", "candidate"), seed, block)


def pairs_of(noise: Noise, rng: random.Random, pairs: int) -> Pairs:
    """Default and candidate in successive blocks."""
    orders = draw_orders(rng, pairs)
    times = map(math.exp, noise(rng, 2 * pairs))
    found = []
    for members in orders:
        of = dict(zip(members, times, strict=False))
        found.append((of["default"], of["candidate"]))
    return Pairs(found, [members[0] == "default" for members in orders])


def draw_orders(rng: random.Random, pairs: int) -> list[list[str]]:
    """Of successive blocks of a campaign."""
    seed, start = rng.randrange(SEEDS), rng.randrange(4)
    return [order(seed, block) for block in range(start, start + pairs)]


def coins(rng: random.Random, pairs: int) -> Pairs:
    """Of each pair one run takes 10 % longer, by the toss of a coin; otherwise there is no noise.

    Almost none: where more than half of the times are equal, outliers are not clipped.
    """

    def time_s(*, slow: bool) -> float:
        return math.exp(0.1 * slow + rng.gauss(0, 0.002))

    sides = [rng.random() < 0.5 for _ in range(pairs)]
    is_first = [members[0] == "default" for members in draw_orders(rng, pairs)]
    return Pairs([(time_s(slow=side), time_s(slow=not side)) for side in sides], is_first)


def slow_candidate(rng: random.Random, pairs: int) -> Pairs:
    """15 % of the candidate's runs take three times as long."""
    made = pairs_of(normal, rng, pairs)
    times_s = [(one, other * 3 ** (rng.random() < 0.15)) for one, other in made.times_s]
    return replace(made, times_s=times_s)


def interval(pairs: Pairs, gain: float = 0.0) -> Interval:
    """Of pairs to which the logarithm of a gain is added."""
    times_s = [(math.exp(gain) * one, other) for one, other in pairs.times_s]
    return interval_of_ratio(replace(pairs, times_s=times_s).estimate(), LEVEL)


def misses(draw: Draws, pairs: int, cases: int) -> float:
    """The share of intervals that leave out the truth."""
    count = 0
    for case in range(cases):
        truth = _TRUTHS[case % len(_TRUTHS)]
        gain = interval(draw(pairs), math.log(truth))
        count += not gain.low <= truth <= gain.high
    return count / cases


def power(draw: Draws, pairs: int, cases: int) -> float:
    """The share of gains as large as was said to be detectable that are found."""
    count = 0
    for _ in range(cases):
        made = draw(pairs)
        known = made.estimate()
        assert known is not None
        gain = math.log1p(detectable_gain(known, LEVEL, MINIMUM_GAIN, strata=[made]))
        found = interval(draw(pairs), gain)
        count += found.low > 1 + MINIMUM_GAIN
    return count / cases


def finds(draw: Draws, pairs: int, cases: int) -> float:
    """The share of gains of 10 % that are found."""
    gains = (interval(draw(pairs), _GAIN) for _ in range(cases))
    return sum(gain.low > 1 + MINIMUM_GAIN for gain in gains) / cases


#: What draws pairs, by the name of the noise.
DRAWS: dict[str, Callable[[random.Random, int], Pairs]] = {
    **{name: partial(pairs_of, noise) for name, noise in NOISES.items()},
    "15 % of one side slower": slow_candidate,
    "+d or -d by a coin": coins,
    "95th percentiles": partial(pairs_of, tail_latencies),
}
#: Title, what is measured, numbers of pairs, names of noise, and decimals of the per cent.
TABLES = (
    ("misses, by pairs", misses, PAIRS, tuple(DRAWS), 2),
    ("10 % found, by pairs", finds, FOUND_PAIRS, tuple(DRAWS), 0),
    ("found, by pairs", power, POWER_PAIRS, tuple(DRAWS)[:6], 1),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10000, help="a tenth in the last table")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    with ProcessPoolExecutor(options.jobs) as pool:
        for title, measure, counts, names, digits in TABLES:
            print(f"{title:26}" + "".join(f"{count:6}" for count in counts))
            # A minimum detectable effect takes far longer than an interval.
            cases = options.cases // 10 if measure is power else options.cases
            task = partial(_measure_row, measure, counts, cases)
            for name, shares in zip(names, pool.map(task, names), strict=True):
                cells = "".join(f"{100 * share:6.{digits}f}" for share in shares)
                print(f"{name:26}{cells}", flush=True)
            print()


def _measure_row(
    measure: Callable[[Draws, int, int], float], counts: Sequence[int], cases: int, name: str
) -> list[float]:
    draw = partial(DRAWS[name], random.Random(name))
    return [measure(draw, count, cases) for count in counts]


if __name__ == "__main__":
    main()
