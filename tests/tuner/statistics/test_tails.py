"""Slow runs of a candidate beside those of the default."""

from __future__ import annotations

import pytest

from commtune.tuner.statistics.pairs import Pairs
from commtune.tuner.statistics.tails import (
    describe_slow_runs,
    is_heavier,
    measure_tail,
    measure_tails,
)


def times(slow: int, default_slow: int, pairs: int = 20) -> list[tuple[float, float]]:
    """The default takes 1.1 s and the candidate 1 s; so many runs of each three times as long."""
    defaults = [3.3] * default_slow + [1.1] * (pairs - default_slow)
    candidates = [1.0] * (pairs - slow) + [3.0] * slow
    return list(zip(defaults, candidates, strict=True))


@pytest.mark.parametrize(
    ("slow", "default_slow", "expected"),
    [(0, 0, False), (1, 0, False), (2, 0, True), (3, 1, False), (4, 1, True), (1, 4, False)],
)
def test_a_tail_is_heavier_where_chance_would_rarely_make_it_so(
    slow: int, default_slow: int, expected: bool
) -> None:
    tail = measure_tail(8, [times(slow, default_slow)])
    assert (tail.slow_runs, tail.default_slow_runs, tail.pairs) == (slow, default_slow, 20)
    assert is_heavier(tail) is expected


def test_of_few_pairs_a_single_slow_run_counts() -> None:
    assert is_heavier(measure_tail(8, [times(1, 0, pairs=19)]))
    assert not is_heavier(measure_tail(8, [times(1, 1, pairs=19)]))


def test_a_slower_machine_state_is_no_tail() -> None:
    fast, slow = times(0, 0), [(2 * a, 2 * b) for a, b in times(1, 0, pairs=8)]
    tail = measure_tail(8, [fast, slow])
    assert (tail.slow_runs, tail.pairs) == (1, 28)
    assert tail.mean_ratio == pytest.approx((20 * 1.1 + 8 * 2.2) / (20 + 7 * 2 + 6))


def test_the_size_that_is_worst_off_is_described() -> None:
    tails = [measure_tail(8, [times(3, 0)]), measure_tail(64, [times(4, 0)])]
    assert describe_slow_runs(tails) == (
        "more slow runs than with the default at 8 B, 64 B; at 64 B, 4 of 20 took over 1.5 times "
        "the median (default: 0); speedup of mean times 0.58x to 1.06x (0.79x, 20 pairs), "
        "95 % CI by itself, and of the slowest runs (95th percentile) 0.37x "
        "(20 pairs, no interval)"
    )
    assert describe_slow_runs([]) == ""
    assert describe_slow_runs([measure_tail(8, [times(1, 1)])]) == ""


def test_tails_are_by_size_over_all_machine_states() -> None:
    cells = {
        (64, "all"): Pairs(times(1, 0)),
        (8, "fast"): Pairs(times(1, 0)),
        (8, "slow"): Pairs(times(0, 1, pairs=8)),
        (512, "all"): Pairs([(1.1, 1.0)]),
    }
    small, large = measure_tails(cells)  # and a single pair tells nothing
    assert (small.bytes, small.pairs) == (8, 28)
    assert (small.slow_runs, small.default_slow_runs) == (1, 1)
    assert (large.bytes, large.pairs) == (64, 20)
    assert large.mean_low < large.mean_ratio < large.mean_high
    assert large.mean_ratio == pytest.approx(20 * 1.1 / (19 + 3))
    assert large.p95_ratio == pytest.approx(1.1)
