"""How often the interval over machine speeds misses where one speed was rarely met. Simulated.

Log ratios of pairs are drawn from a normal distribution around nothing, many at one machine speed
and few at another, whose noise is a multiple of the first one's. The interval is the one that
campaigns use (``combine_strata`` in ``commtune.tuner.statistics.intervals``). Printed is the share
of intervals that miss the truth, over the share that their level allows: 1 is as promised.

    python benchmarks/rare_speeds.py
"""

from __future__ import annotations

import argparse
import random
from itertools import product

from gpu_launches import markdown

from commtune.tuner.statistics.intervals import combine_strata, estimate_ratio, t_quantile

_MANY = (30, 12)
_FEW = (2, 3, 4, 5, 8)
_NOISE = (1.0, 2.0, 3.0, 5.0)


def missed(many: int, few: int, noise: float, level: float, rounds: int, seed: int) -> float:
    """Share of intervals without the truth, over ``1 - level``."""
    draw = random.Random(seed)
    misses = 0
    for _ in range(rounds):
        strata = [
            [draw.gauss(0, 1) for _ in range(many)],
            [draw.gauss(0, noise) for _ in range(few)],
        ]
        found = combine_strata(map(estimate_ratio, strata))
        assert found is not None  # each has two pairs at least
        # Rounded, so that quantiles are kept; by less than matters.
        within = t_quantile((1 + level) / 2, round(found.freedom, 2)) * found.error
        misses += abs(found.mean) > within
    return misses / rounds / (1 - level)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--level", type=float, default=0.999, help="of an interval (%(default)s)")
    parser.add_argument("--rounds", type=int, default=20_000, help="of each case (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"simulated, level {options.level}, {options.rounds} rounds of each case\n")
    rows = []
    for many, few in product(_MANY, _FEW):
        found = (
            missed(many, few, noise, options.level, options.rounds, options.seed)
            for noise in _NOISE
        )
        rows.append([f"{many} and {few}", *(f"{share:.1f}" for share in found)])
    print(markdown(["pairs", *(f"noise x {noise:g}" for noise in _NOISE)], rows))


if __name__ == "__main__":
    main()
