"""How often intervals hold where a program prints few digits.

Simulated: a candidate is 1.025x as fast as the default, and a program prints two decimals of a
microsecond, as OSU's do. The default is printed as 0.40 or 0.25 us; where in that step of 0.01 us
it lies, differs from draw to draw. (At 0.40 us, the speedup is just a step.) Printed are the share
of intervals at a level that hold the true ratio, and the half width of the median one, without
and with what rounding may do (``commtune.tuner.statistics.rounding``).
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Sequence
from functools import partial
from itertools import product
from statistics import median

from commtune.tuner.statistics.intervals import Estimate
from commtune.tuner.statistics.pairs import Pairs, estimate_pairs
from commtune.tuner.statistics.rounding import smallest_step

_DEFAULTS_US, _STEP_US, _RATIO = (0.40, 0.25), 0.01, 1.025
_PAIRS, _NOISE = (8, 12, 20, 40), (0.0, 0.002, 0.01, 0.05)


def _pairs(printed_us: float, count: int, noise: float, rng: random.Random) -> Pairs:
    """Printed times of runs whose noise is so many standard deviations of the logarithm."""
    default_us = printed_us + rng.uniform(-0.5, 0.5) * _STEP_US

    def printed_s(true_us: float) -> float:
        return float(f"{true_us * math.exp(rng.gauss(0, noise)):.2f}") * 1e-6

    times_s = [(printed_s(default_us), printed_s(default_us / _RATIO)) for _ in range(count)]
    step_s = partial(smallest_step, [time_s for both in times_s for time_s in both])
    return Pairs(times_s, step_s=step_s)


def _held(found: Sequence[Estimate], level: float) -> str:
    halves = [one.half_width(level) for one in found]
    true = math.log(_RATIO)
    good = sum(abs(one.mean - true) <= half for one, half in zip(found, halves, strict=True))
    return f"{good / len(found):8.1%} {median(halves):7.2%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--level", type=float, default=0.995)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    print("   us pairs  noise   without rounding     with it")
    for printed_us, count, noise in product(_DEFAULTS_US, _PAIRS, _NOISE):
        draws = (
            estimate_pairs([_pairs(printed_us, count, noise, rng)]) for _ in range(options.draws)
        )
        found = [one for one in draws if one is not None]
        without = [one._replace(rounding=0.0) for one in found]
        shown = f"{_held(without, options.level)}  {_held(found, options.level)}"
        print(f"{printed_us:5.2f} {count:5} {noise:6.1%} {shown}")


if __name__ == "__main__":
    main()
