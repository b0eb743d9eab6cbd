"""How much a gain differs between sittings, from verifications of one profile."""

from __future__ import annotations

import math
import random

import pytest

from commtune.tuner.statistics.intervals import SITTING_SPREAD, Estimate, interval_of_ratio
from commtune.tuner.statistics.sittings import SittingSpread, measure_spread

GAIN, ERROR = math.log(1.5), 0.01


def sittings(count: int, spread: float, gain: float = GAIN) -> list[dict[int, Estimate | None]]:
    """Of four sizes, each with a gain that varies by a share of itself, beside its noise."""
    rng = random.Random(3)
    return [
        {
            size: Estimate(rng.gauss(gain, math.hypot(spread * gain, ERROR)), ERROR, 11, 12)
            for size in (8, 64, 512, 4096)
        }
        for _ in range(count)
    ]


@pytest.mark.parametrize("spread", [0.0, 0.06, 0.2])
def test_many_sittings_tell_their_spread(spread: float) -> None:
    found = measure_spread(sittings(60, spread))
    expected = math.sqrt((5 * SITTING_SPREAD**2 + 60 * spread**2) / 65)
    assert found.share == pytest.approx(expected, rel=0.15)
    assert found.sittings == 60


def test_few_sittings_are_not_asked_and_five_count_as_much_as_what_is_usual() -> None:
    assert measure_spread(sittings(4, 0.2)) == SittingSpread()
    calm, wild = (measure_spread(sittings(5, spread)).share for spread in (0.0, 0.3))
    assert SITTING_SPREAD / math.sqrt(2) <= calm < SITTING_SPREAD < wild


def test_a_small_gain_or_few_pairs_tell_nothing() -> None:
    assert measure_spread(sittings(9, 0.2, math.log(1.05))) == SittingSpread()
    few = [{8: Estimate(GAIN, ERROR, 3, 4)} for _ in range(9)]
    assert measure_spread(few) == SittingSpread()
    assert measure_spread([{8: None}] * 9) == SittingSpread()


def test_an_interval_is_as_wide_as_its_sittings_differ() -> None:
    exact = Estimate(GAIN, 0.0, 11, 12)
    assert interval_of_ratio(exact, 0.95, spread=0.1).low == pytest.approx(
        math.exp(GAIN * (1 - 1.96 * 0.1))
    )


def test_it_says_whether_it_was_measured() -> None:
    assert str(SittingSpread()).startswith("6 % of a speedup's logarithm (assumed: it takes 5")
    assert str(SittingSpread(0.043, 7)).endswith(" (measured in 7 verifications)")
