"""Ratios of 95th percentiles: intervals by order statistics, and what too few pairs say."""

from __future__ import annotations

import math
import random

import pytest

from commtune.model import FEWEST_PAIRS, Estimand, Verdict
from commtune.tuner.statistics.intervals import (
    after_more_pairs,
    blocks_to_decide,
    interval_of_ratio,
    judge_interval,
)
from commtune.tuner.statistics.pairs import Pairs, estimate_pairs
from commtune.tuner.statistics.percentiles import (
    count_needed_pairs,
    estimate_percentile_ratio,
    find_p95,
)

LEVEL = 0.99


def times(pairs: int, rng: random.Random, speedup: float = 1.0) -> list[tuple[float, float]]:
    """Runs of both sides, of which 15 % take three times as long; the default's is slower."""

    def run_s() -> float:
        return math.exp(rng.gauss(0, 0.05)) * (3 if rng.random() < 0.15 else 1)

    return [(speedup * run_s(), run_s()) for _ in range(pairs)]


def test_the_percentile_is_that_of_the_nearest_rank() -> None:
    assert find_p95([float(n) for n in range(1, 101)]) == 95
    assert find_p95([3.0, 1.0, 2.0]) == 3


@pytest.mark.parametrize("level", [0.95, LEVEL, 0.999])
def test_one_pair_less_than_needed_has_no_end(level: float) -> None:
    needed = count_needed_pairs(level)
    # All runs are below the percentile with this probability, which is shared by four ends.
    assert 0.95**needed <= (1 - level) / 4 < 0.95 ** (needed - 1)
    rng = random.Random(1)
    for pairs, has_ends in ((needed, True), (needed - 1, False)):
        found = estimate_percentile_ratio(times(pairs, rng))
        assert found is not None
        assert math.isfinite(found.noise_half_width(level)) is has_ends


def test_nothing_is_estimated_from_the_pairs_of_a_usual_campaign() -> None:
    made = times(45, random.Random(2))
    assert estimate_pairs([Pairs(made)], Estimand.P95) is None


def test_a_wide_interval_claims_nothing_and_says_how_many_pairs_would() -> None:
    found = estimate_pairs([Pairs(times(80, random.Random(3), 2.0))], Estimand.P95)
    assert found is not None
    gain = interval_of_ratio(found, LEVEL)
    assert judge_interval(gain, 0.02) is Verdict.UNDECIDED and gain.pairs > FEWEST_PAIRS
    assert blocks_to_decide(found, LEVEL, 0.02) >= count_needed_pairs(LEVEL) > 80


def test_with_more_pairs_the_error_shrinks() -> None:
    found = estimate_percentile_ratio(times(200, random.Random(4)))
    assert found is not None
    assert after_more_pairs(found, 4).error == pytest.approx(found.error / 2)


def test_a_lighter_tail_is_found_that_typical_times_do_not_show() -> None:
    rng = random.Random(5)
    made = [(one, math.exp(rng.gauss(0, 0.05))) for one, _ in times(400, rng)]
    of_tails = estimate_pairs([Pairs(made)], Estimand.P95, spread=0.0)
    typical = estimate_pairs([Pairs(made)], Estimand.MEDIAN, spread=0.0)
    assert of_tails is not None and typical is not None
    assert judge_interval(interval_of_ratio(of_tails, LEVEL), 0.02) is Verdict.FASTER
    assert interval_of_ratio(typical, LEVEL).ratio < 1.1
    assert Pairs(made).middle_s(Estimand.P95)[0] > 2.5 > Pairs(made).middle_s()[0]


def test_intervals_hold_as_often_as_they_should() -> None:
    rng, misses = random.Random(6), 0
    for _ in range(400):
        found = estimate_percentile_ratio(times(150, rng))
        assert found is not None
        misses += abs(found.mean) > found.noise_half_width(0.95)  # the truth: both sides are alike
    assert misses <= 30  # more than 5 %, with an error of 3 standard deviations
