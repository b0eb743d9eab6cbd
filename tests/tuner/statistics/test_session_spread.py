"""How much a gain differs between sessions, from verifications of profiles."""

from __future__ import annotations

import math
import random

import pytest

from commtune.model import SESSION_SPREAD
from commtune.tuner.statistics.intervals import Estimate, interval_of_ratio
from commtune.tuner.statistics.session_spread import (
    MeasuredSession,
    SessionSpread,
    measure_spread,
)

GAIN, ERROR, HOUR = math.log(1.5), 0.01, 3600.0


def sessions(
    count: int, spread: float, gain: float = GAIN, apart_s: float = 2 * HOUR, pairs: int = 12
) -> list[MeasuredSession]:
    """Of four sizes, each with a gain that varies by a share of itself, beside its noise."""
    rng = random.Random(3)
    deviation = math.hypot(spread * gain, ERROR)
    return [
        MeasuredSession(
            number * apart_s,
            {
                size: Estimate(rng.gauss(gain, deviation), ERROR, pairs - 1, pairs)
                for size in (8, 64, 512, 4096)
            },
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("spread", [0.0, 0.06, 0.3])
def test_many_sessions_tell_their_spread(spread: float) -> None:
    found = measure_spread([sessions(61, spread)])
    expected = math.sqrt((5 * SESSION_SPREAD**2 + 60 * spread**2) / 65)
    assert found.share == pytest.approx(expected, rel=0.15)
    assert found.sessions == 60


def test_five_sessions_count_as_much_as_the_assumed_spread() -> None:
    calm, wild = (measure_spread([sessions(6, spread)]).share for spread in (0.0, 0.5))
    assert calm == pytest.approx(SESSION_SPREAD / math.sqrt(2), rel=0.01)
    assert wild > SESSION_SPREAD


def test_however_much_sessions_differ_large_speedups_can_be_shown() -> None:
    most = measure_spread([sessions(61, 5.0, gain=3.0)]).share
    found = interval_of_ratio(Estimate(1.0, 0.0, 11, 12, spread=most), 0.95)
    assert 1 < found.low < 1.1


def test_profiles_that_were_verified_together_make_one_session() -> None:
    calm = [sessions(2, 0.0) for _ in range(10)]
    assert measure_spread(calm).sessions == 1
    assert measure_spread(calm).share == pytest.approx(SESSION_SPREAD * math.sqrt(5 / 6), rel=0.01)


def test_a_verification_right_after_the_campaign_is_no_other_session() -> None:
    assert measure_spread([sessions(9, 0.0, apart_s=300.0)]) == SessionSpread()
    assert measure_spread([sessions(25, 0.0, apart_s=300.0)]).sessions == 1


def test_a_small_gain_or_few_pairs_tell_nothing() -> None:
    assert measure_spread([]) == measure_spread([[]]) == SessionSpread()
    assert measure_spread([sessions(9, 0.2, math.log(1.05))]) == SessionSpread()
    assert measure_spread([sessions(9, 0.2, pairs=4)]) == SessionSpread()
    nothing = [MeasuredSession(number * 2 * HOUR, {8: None}) for number in range(9)]
    assert measure_spread([nothing]) == SessionSpread()


def test_an_interval_is_as_wide_as_its_sessions_differ() -> None:
    exact = Estimate(GAIN, 0.0, 11, 12)
    for spread in (0.0, 0.1):
        found = interval_of_ratio(exact._replace(spread=spread), 0.95)
        assert found.low == pytest.approx(math.exp(GAIN * (1 - 1.96 * spread)))


def test_it_says_whether_it_was_measured() -> None:
    assert str(SessionSpread()).startswith("20 % of a speedup's logarithm (assumed: no profile")
    assert str(SessionSpread(0.043, 1)).endswith(" (measured in 1 later session)")
    assert str(SessionSpread(0.043, 7)).endswith(" (measured in 7 later sessions)")
