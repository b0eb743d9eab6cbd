"""Times of programs that print few digits, and of coarse clocks."""

from __future__ import annotations

import math
import random
from functools import partial

import pytest
from confirmed_blocks import A
from made_up_runs import block

from commtune.model import DEFAULT, FEWEST_PAIRS, Verdict
from commtune.tuner.statistics.intervals import interval_of_ratio, judge_interval
from commtune.tuner.statistics.machine_states import ALL, MachineStates
from commtune.tuner.statistics.pairs import Pairs, estimate_pairs, pair_times
from commtune.tuner.statistics.rounding import rounding_error, smallest_step, step_of_bandwidths


@pytest.mark.parametrize(
    ("printed_us", "step_us"),
    [
        ("0.41", 0.01),
        ("0.4 0.4", 0.1),  # of 0.40, nobody can know
        ("0.40 0.41 12.30", 0.01),
        ("0.40 0.50 0.72 0.95", 0.01),
        ("12 15 1000", 1),
        ("0.425 0.450 0.525", 0.025),  # a clock that ticks 40 million times a second
        ("1.7914375 1.7914400 8.5", 2.5e-6),
        ("0.04166667 0.12500001", 0.04166667),  # also a tick from 0
        ("0.12345678", 0.12345678),
        ("0.40 0.53 15000.12 15000.61 15003.40", 0.01),  # two decimals, whatever the longest
        ("0.041 0.083 0.125 15000.083", 0.041),  # ticks of 1/24 us in whole nanoseconds
    ],
)
def test_the_step_is_read_from_the_times(printed_us: str, step_us: float) -> None:
    times_s = [float(word) * 1e-6 for word in printed_us.split()]
    assert smallest_step(times_s) == pytest.approx(step_us * 1e-6, rel=1e-6)


def test_the_step_of_a_bandwidth_is_read_from_bandwidths() -> None:
    # As times of 8 bytes: 5.23 and 5.26 million bytes a second, with a step of 0.01.
    times_s = [8 / (megabytes * 1e6) for megabytes in (5.23, 5.23, 5.26)]
    assert step_of_bandwidths(times_s, 8) == pytest.approx(times_s[0] * 0.01 / 5.23)
    fast_s = [2**20 / (megabytes * 1e6) for megabytes in (24567.89, 24570.12)]
    assert step_of_bandwidths(fast_s, 2**20) == pytest.approx(
        fast_s[0] * 0.01 / 24567.89, rel=1e-3
    )
    assert step_of_bandwidths([4.1e-7, 4e-7], 8) == 0  # these are times themselves
    assert step_of_bandwidths([1.2345678e-6], 8) == 0  # and this is no printed number


@pytest.mark.parametrize(
    ("written", "unit_s", "steps_s"),
    [
        ("{:.1f}", 1e-6, (1e-7, 1e-7)),  # 12.3 and 12349.0
        ("{:.2e}", 1.0, (1e-7, 1e-4)),  # 1.23e-05 and 1.23e-02
        ("{:.4e}", 1.0, (1e-9, 1e-6)),
    ],
)
def test_the_step_at_a_size_is_of_decimals_or_of_digits(
    written: str, unit_s: float, steps_s: tuple[float, float]
) -> None:
    rng = random.Random(1)

    def measured() -> dict[int, float]:
        exact_s = {8: 1.23e-5 * rng.uniform(0.9, 1.1), 64: 1.23e-2 * rng.uniform(0.9, 1.1)}
        return {size: float(written.format(t / unit_s)) * unit_s for size, t in exact_s.items()}

    blocks = [block(measured(), {A: measured()}) for _ in range(8)]
    found = pair_times(blocks, DEFAULT, A, MachineStates())
    steps = [found[size, ALL].step_s() for size in (8, 64)]
    assert steps == pytest.approx(steps_s)


def test_a_large_size_widens_no_interval_of_small_ones() -> None:
    """OSU's benchmarks print two decimals of a microsecond, so 7 digits at the large size."""
    rng = random.Random(1)

    def printed_us(small: str) -> dict[int, float]:
        written = {8: small, 2**24: f"{rng.gauss(15000, 1000):.2f}"}
        return {size: float(word) * 1e-6 for size, word in written.items()}

    blocks = [block(printed_us("0.40"), {A: printed_us("0.30")}) for _ in range(12)]
    pairs = pair_times(blocks, DEFAULT, A, MachineStates())[8, ALL]
    assert pairs.step_s() == pytest.approx(1e-8)
    gain = interval_of_ratio(estimate_pairs([pairs]), 0.95)
    assert gain.low > 1.18 and gain.high < 1.51


def test_equal_times_are_off_by_half_a_step_and_unequal_ones_by_less() -> None:
    step_s = partial(float, 1e-8)
    assert rounding_error([4e-7] * 8, step_s) == pytest.approx(0.0125)
    # Two modes are each rounded on their own.
    assert rounding_error([4e-7] * 6 + [1.2e-6] * 4, step_s) == pytest.approx(0.0125 * 2 * 42 / 90)
    rng = random.Random(1)
    wide = [round(40 + rng.gauss(0, 5)) * 1e-8 for _ in range(400)]
    assert rounding_error(wide, step_s) == pytest.approx(0.0125 * 0.56 / 5, rel=0.1)
    assert rounding_error([3.91e-7, 4.02e-7, 4.07e-7], step_s) == 0


def printed(count: int, noise: float, rng: random.Random) -> Pairs:
    """Runs that truly take 0.25 us and 1.025x less, of which two decimals are printed."""
    default_us = rng.uniform(0.245, 0.255)
    times_s = [
        (
            round(default_us * math.exp(rng.gauss(0, noise)), 2) * 1e-6,
            round(default_us / 1.025 * math.exp(rng.gauss(0, noise)), 2) * 1e-6,
        )
        for _ in range(count)
    ]
    step_s = partial(smallest_step, [time_s for both in times_s for time_s in both])
    return Pairs(times_s, step_s=step_s)


@pytest.mark.parametrize("noise", [0.0, 0.002, 0.01, 0.05])
def test_intervals_of_printed_times_hold(noise: float) -> None:
    rng, held = random.Random(f"printed:{noise}"), 0
    for _ in range(100):
        gain = interval_of_ratio(estimate_pairs([printed(12, noise, rng)]), 0.99)
        held += gain.low <= 1.025 <= gain.high
    assert held >= 97  # of 100 at 99 %; fewer in 2 % of all cases


def test_equal_times_of_a_coarse_clock_decide_nothing() -> None:
    """Seven ticks of 1/24 us each may be 14 % more or less, and nothing tells the tick."""
    time_s = 7 / 24e6
    pairs = Pairs([(time_s, time_s)] * 20, step_s=partial(smallest_step, [time_s]))
    gain = interval_of_ratio(estimate_pairs([pairs]), 0.995)
    assert gain.low < 6 / 8 and gain.high > 8 / 6
    assert judge_interval(gain, 0.02) is Verdict.UNDECIDED


def test_either_side_may_be_what_rounding_moves() -> None:
    noise = [math.exp(random.Random(7).gauss(0, 0.1)) for _ in range(12)]
    exact = [4.123456e-7 * factor * (1 + i / 7) for i, factor in enumerate(noise)]
    equal = [4e-7] * len(exact)
    for times_s in (zip(exact, equal, strict=True), zip(equal, exact, strict=True)):
        found = estimate_pairs([Pairs(list(times_s), step_s=partial(float, 1e-8))])
        assert found is not None and found.rounding == pytest.approx(0.0125)


def test_each_machine_state_has_its_share_of_what_rounding_does() -> None:
    step_s = partial(float, 1e-8)
    fast = Pairs([(4e-7, 4e-7)] * FEWEST_PAIRS, step_s=step_s)
    slow = Pairs([(8e-7, 8e-7)] * FEWEST_PAIRS, step_s=step_s)
    alone = Pairs([(2e-7, 1e-7)], step_s=step_s)
    found = estimate_pairs([fast, slow, alone])
    assert found is not None
    assert found.rounding == pytest.approx(2 * (0.0125 + 0.00625) / 2)
    assert estimate_pairs([alone]) is None
