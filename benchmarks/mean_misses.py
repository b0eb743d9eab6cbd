"""How often the interval of a ratio of mean times misses the truth, on either side.

    python benchmarks/mean_misses.py --cases 4000

Simulated, at 99.5 %: by right, 0.25 % on each side. So many runs of the default and of the
candidate, at random, take so many times longer; all differ by 5 % beside. *Sticky*: slow runs come
one after the other, 40 pairs on average. First is how often the interval lies above the truth,
which is what a false claim takes; then how often below.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from commtune.tuner.statistics.intervals import estimate_mean_ratio

LEVEL = 0.995
PAIRS = (8, 12, 20, 40, 80)
#: The pairs that a slow state lasts.
_LASTING = 40


@dataclass(frozen=True)
class Case:
    """Shares of slow runs, and how many times slower they are, of default and candidate."""

    default: tuple[float, float] = (0.0, 1.0)
    candidate: tuple[float, float] = (0.0, 1.0)
    is_sticky: bool = False

    @property
    def sides(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Both sides, the default first."""
        return self.default, self.candidate

    def pairs(self, rng: random.Random) -> Iterator[tuple[float, float]]:
        """Yields times (seconds) of both sides."""
        share = max(share for share, _ in self.sides)
        slow = rng.random() < share
        while True:
            if self.is_sticky:
                # The state changes so that it is slow for this share of the time.
                leaves = 1 / _LASTING if slow else share / (1 - share) / _LASTING
                slow ^= rng.random() < leaves
                now = [(1.0, times if slow else 1.0) for _, times in self.sides]
            else:
                now = [*self.sides]
            yield _run_s(now[0], rng), _run_s(now[1], rng)


def _run_s(slow: tuple[float, float], rng: random.Random) -> float:
    share, times = slow
    return math.exp(rng.gauss(0, 0.05)) * (times if rng.random() < share else 1.0)


CASES = {
    "no slow runs": Case(),
    "both 10 %, 3x": Case((0.1, 3.0), (0.1, 3.0)),
    "both 40 %, 1.5x": Case((0.4, 1.5), (0.4, 1.5)),
    "candidate 15 %, 3x": Case(candidate=(0.15, 3.0)),
    "candidate 5 %, 3x": Case(candidate=(0.05, 3.0)),
    "default 15 %, 3x": Case((0.15, 3.0)),
    "both 10 %, 3x, sticky": Case((0.1, 3.0), (0.1, 3.0), is_sticky=True),
    "candidate 15 %, sticky": Case(candidate=(0.15, 3.0), is_sticky=True),
}


def count_misses(case: Case, pairs: int, cases: int) -> tuple[float, float]:
    """Returns the shares of intervals that lie above and below the truth."""
    default, candidate = (1 - share + share * times for share, times in case.sides)
    truth, rng = math.log(default / candidate), random.Random(pairs)
    above = below = 0
    for _ in range(cases):
        made = case.pairs(rng)
        found = estimate_mean_ratio([next(made) for _ in range(pairs)])
        assert found is not None
        half = found._replace(spread=0.0).half_width(LEVEL)
        above += found.mean - half > truth
        below += found.mean + half < truth
    return above / cases, below / cases


def main() -> None:
    """Prints a line for each kind of noise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=4000)
    cases = parser.parse_args().cases
    print("above, below, by pairs " + "".join(f"{pairs:>13}" for pairs in PAIRS))
    for name, case in CASES.items():
        found = (count_misses(case, pairs, cases) for pairs in PAIRS)
        print(
            f"{name:23}" + "".join(f"{100 * a:7.2f}{100 * b:6.2f}" for a, b in found), flush=True
        )


if __name__ == "__main__":
    main()
