"""A single disturbed run of 7 to 11 pairs."""

from __future__ import annotations

import math
import random

import pytest

from commtune.model import Interval
from commtune.tuner.statistics.intervals import (
    estimate_ratio,
    estimate_ratios,
    interval_of_ratio,
)
from commtune.tuner.statistics.pairs import Pairs, clip_outliers

#: Noise of a run each, logarithms.
_NOISE = (0.01, -0.02, 0.00, 0.03, -0.01, 0.02, -0.03, 0.015, -0.005, 0.025, 0.0, -0.01)
_OTHER = (-0.01, 0.01, 0.02, -0.02, 0.00, -0.03, 0.015, 0.03, -0.005, 0.005, -0.015, 0.01)
_GAIN, _SLOW = math.log(1.3), math.log(3)

#: Log times of both sides.
LogTimes = list[tuple[float, float]]


def quiet(pairs: int) -> LogTimes:
    """The second side is 1.3 times as fast."""
    return [(_GAIN + _NOISE[n], _OTHER[n]) for n in range(pairs)]


def slowed(
    log_times: LogTimes, place: int, default: float = 0.0, candidate: float = 0.0
) -> LogTimes:
    changed = list(log_times)
    one, other = changed[place]
    changed[place] = one + default, other + candidate
    return changed


def ratios(log_times: LogTimes) -> list[float]:
    return [one - other for one, other in log_times]


def interval(log_times: LogTimes) -> Interval:
    times_s = [(math.exp(one), math.exp(other)) for one, other in log_times]
    return interval_of_ratio(Pairs(times_s).estimate(), 0.995)


def unclipped(log_times: LogTimes) -> Interval:
    return interval_of_ratio(estimate_ratio(ratios(log_times)), 0.995)


@pytest.mark.parametrize("pairs", [7, 9, 11])
@pytest.mark.parametrize("side", ["default", "candidate"])
def test_a_gain_is_found_though_one_run_was_disturbed(pairs: int, side: str) -> None:
    disturbed = slowed(quiet(pairs), 3, **{side: _SLOW})
    assert unclipped(disturbed).low < 1.02 < interval(disturbed).low
    clipped = clip_outliers(disturbed)
    assert [n for n in range(pairs) if clipped[n] != ratios(disturbed)[n]] == [3]
    # Not drawn to the others: it stays the outermost one.
    assert clipped[3] in (min(clipped), max(clipped))


def test_each_side_may_have_a_disturbed_run() -> None:
    disturbed = slowed(slowed(quiet(8), 3, default=_SLOW), 5, candidate=_SLOW)
    assert unclipped(disturbed).low < 1.02 < interval(disturbed).low


@pytest.mark.parametrize("pairs", [5, 6, 12])
def test_fewer_pairs_and_more_are_not_clipped(pairs: int) -> None:
    disturbed = slowed(quiet(pairs), 3, default=_SLOW)
    assert clip_outliers(disturbed) == ratios(disturbed)


def test_a_slow_block_is_not_clipped() -> None:
    slow = slowed(quiet(8), 3, default=_SLOW, candidate=_SLOW)
    assert clip_outliers(slow) == ratios(slow)


def test_two_slow_runs_of_a_side_may_be_a_mode() -> None:
    slow = slowed(slowed(quiet(8), 3, default=_SLOW), 5, default=_SLOW)
    assert clip_outliers(slow) == ratios(slow)


def test_one_fast_run_is_not_clipped() -> None:
    fast = slowed(quiet(8), 3, default=-_SLOW)
    assert clip_outliers(fast) == ratios(fast)


def test_a_run_as_slow_as_those_of_the_other_side_is_not_clipped() -> None:
    """In each pair one run takes 3 times longer; only in one of them it is the default's."""
    coins = [(x, y + _SLOW) for x, y in zip(_NOISE[:8], _OTHER[:8], strict=True)]
    coins[2] = (_NOISE[2] + _SLOW, _OTHER[2])
    assert clip_outliers(coins) == ratios(coins)


@pytest.mark.parametrize("equal", ["one side", "both sides", "ratios"])
def test_where_most_are_equal_nothing_is_clipped(equal: str) -> None:
    """As times are that a program prints with few digits."""
    log_times = {
        "one side": [(x, 0.1) for x in _NOISE[:8]],
        "both sides": [(0.3, 0.1)] * 8,
        "ratios": [(0.2 + x, x) for x in _NOISE[:8]],
    }[equal]
    slow = slowed(log_times, 3, default=_SLOW)
    assert clip_outliers(slow) == ratios(slow)


@pytest.mark.parametrize("pairs", [7, 9, 11])
@pytest.mark.parametrize(
    ("noise", "gain"),
    [
        ("normal", 0),
        ("disturbed", 0),
        ("two modes", 0),
        ("coin", 0),
        ("coin", 0.1),
        ("coin", -0.1),
    ],
)
def test_clipping_keeps_the_level(noise: str, gain: float, pairs: int) -> None:
    rng, truth = random.Random(pairs), math.exp(gain)

    def both() -> tuple[float, float]:
        coin = rng.random() < 0.5
        extra = {
            "normal": (0.0, 0.0),
            "disturbed": ((rng.random() < 0.1) * _SLOW, (rng.random() < 0.1) * _SLOW),
            "two modes": ((rng.random() < 0.4) * 0.4, (rng.random() < 0.4) * 0.4),
            "coin": (0.4 * coin, 0.4 * (not coin)),
        }[noise]
        return rng.gauss(extra[0] + gain, 0.02), rng.gauss(extra[1], 0.02)

    def count_misses(samples: list[list[float]]) -> int:
        gains = [interval_of_ratio(one, 0.995) for one in estimate_ratios(samples, [])]
        return sum(not gain.low <= truth <= gain.high for gain in gains)

    drawn = [[both() for _ in range(pairs)] for _ in range(2000)]
    missed, missed_before = (count_misses([*map(how, drawn)]) for how in (clip_outliers, ratios))
    # By right 10; chance gives more than 21 in one of 1,000 such tests. By the toss of a coin, all
    # of 7 pairs agree in 1.6 % of cases.
    assert missed <= max(21, missed_before + 5)
