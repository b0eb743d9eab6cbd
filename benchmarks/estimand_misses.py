"""How often the interval of a ratio of means, or of 95th percentiles, misses the truth.

    python benchmarks/estimand_misses.py mean --cases 4000
    python benchmarks/estimand_misses.py p95 --cases 4000

Simulated, at 99.5 %: by right, 0.25 % on each side. So many runs of the default and of the
candidate, at random, take so many times longer; all differ by 5 % beside. *Sticky*: slow runs come
one after the other, 40 pairs on average. First is how often the interval lies above the truth,
which is what a false claim takes; then how often below.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from commtune.tuner.statistics.intervals import Estimate, estimate_mean_ratio, half_width
from commtune.tuner.statistics.percentiles import estimate_percentile_ratio, find_p95

LEVEL = 0.995
_Middle = Callable[[Sequence[float]], float]
_Estimator = Callable[[Sequence[tuple[float, float]]], Estimate | None]
#: By estimand: the estimator, what it compares, and numbers of pairs.
ESTIMATORS: dict[str, tuple[_Estimator, _Middle, tuple[int, ...]]] = {
    "mean": (estimate_mean_ratio, fmean, (8, 12, 20, 40, 80)),
    "p95": (estimate_percentile_ratio, find_p95, (140, 200, 300, 400)),
}
#: Runs of each side from which the truth is taken, and the pairs that a slow state lasts.
_MANY, _LASTING = 400_000, 40


@dataclass(frozen=True)
class Case:
    """Shares of slow runs, and how many times slower they are, of default and candidate."""

    default: tuple[float, float] = (0.0, 1.0)
    candidate: tuple[float, float] = (0.0, 1.0)
    is_sticky: bool = False

    def pairs(self, rng: random.Random) -> Iterator[tuple[float, float]]:
        """Yields times (seconds) of both sides."""
        sides = self.default, self.candidate
        share = max(share for share, _ in sides)
        slow = rng.random() < share
        while True:
            if self.is_sticky:
                # The state changes so that it is slow for this share of the time.
                leaves = 1 / _LASTING if slow else share / (1 - share) / _LASTING
                slow ^= rng.random() < leaves
                now = [(1.0, times if slow else 1.0) for _, times in sides]
            else:
                now = [*sides]
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


def count_misses(case: Case, estimand: str, pairs: int, cases: int) -> tuple[float, float]:
    """Returns the shares of intervals that lie above and below the truth."""
    estimate, find_middle, _ = ESTIMATORS[estimand]
    truth = math.log(find_truth(case, find_middle))
    rng, above, below = random.Random(pairs), 0, 0
    for _ in range(cases):
        made = case.pairs(rng)
        found = estimate([next(made) for _ in range(pairs)])
        assert found is not None
        half = half_width(replace(found, spread=0.0), LEVEL)
        above += found.mean - half > truth
        below += found.mean + half < truth
    return above / cases, below / cases


def find_truth(case: Case, find_middle: _Middle) -> float:
    """Returns the ratio that very many runs have."""
    if case.default == case.candidate:
        return 1.0
    made = case.pairs(random.Random(0))
    one_s, other_s = zip(*(next(made) for _ in range(_MANY)), strict=True)
    return find_middle(one_s) / find_middle(other_s)


def main() -> None:
    """Prints a line for each kind of noise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("estimand", choices=ESTIMATORS)
    parser.add_argument("--cases", type=int, default=4000)
    options = parser.parse_args()
    numbers = ESTIMATORS[options.estimand][2]
    print("above, below, by pairs " + "".join(f"{pairs:>13}" for pairs in numbers))
    for name, case in CASES.items():
        found = (count_misses(case, options.estimand, n, options.cases) for n in numbers)
        print(
            f"{name:23}" + "".join(f"{100 * a:7.2f}{100 * b:6.2f}" for a, b in found), flush=True
        )


if __name__ == "__main__":
    main()
