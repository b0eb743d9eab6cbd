"""How often the interval of a ratio of mean times misses the truth, on either side.

    python benchmarks/mean_misses.py --cases 4000

Simulated, at 99.5 %: by right, 0.25 % on each side. So many runs of the default and of the
candidate, at random, take so many times longer; all differ by 5 % beside. First is how often the
interval lies above the truth, which is what a false claim takes; then how often below.
"""

from __future__ import annotations

import argparse
import math
import random
from dataclasses import replace

from commtune.tuner.statistics.intervals import estimate_mean_ratio, half_width

LEVEL = 0.995
PAIRS = (8, 12, 20, 40, 80)
#: Of the default and of the candidate: the share of slow runs, and how many times slower.
CASES = {
    "no slow runs": ((0.0, 1.0), (0.0, 1.0)),
    "both 10 %, 3x": ((0.1, 3.0), (0.1, 3.0)),
    "both 40 %, 1.5x": ((0.4, 1.5), (0.4, 1.5)),
    "candidate 15 %, 3x": ((0.0, 1.0), (0.15, 3.0)),
    "candidate 5 %, 3x": ((0.0, 1.0), (0.05, 3.0)),
    "default 15 %, 3x": ((0.15, 3.0), (0.0, 1.0)),
}

Slow = tuple[float, float]


def run_s(slow: Slow, rng: random.Random) -> float:
    share, times = slow
    return math.exp(rng.gauss(0, 0.05)) * (times if rng.random() < share else 1.0)


def misses(default: Slow, candidate: Slow, pairs: int, cases: int) -> tuple[float, float]:
    """The shares of intervals that lie above and below the truth."""
    rng = random.Random(pairs)
    of_default, of_candidate = (1 - share + share * times for share, times in (default, candidate))
    truth = math.log(of_default / of_candidate)
    above = below = 0
    for _ in range(cases):
        made = [(run_s(default, rng), run_s(candidate, rng)) for _ in range(pairs)]
        found = estimate_mean_ratio(made)
        assert found is not None
        half = half_width(replace(found, spread=0.0), LEVEL)
        above += found.mean - half > truth
        below += found.mean + half < truth
    return above / cases, below / cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=4000)
    cases = parser.parse_args().cases
    print("above, below, by pairs" + "".join(f"{pairs:>13}" for pairs in PAIRS))
    for name, (default, candidate) in CASES.items():
        found = (misses(default, candidate, pairs, cases) for pairs in PAIRS)
        print(
            f"{name:22}" + "".join(f"{100 * a:7.2f}{100 * b:6.2f}" for a, b in found), flush=True
        )


if __name__ == "__main__":
    main()
