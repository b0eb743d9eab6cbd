"""What pairs say of a candidate, over all machine states and by each."""

from __future__ import annotations

import math

import pytest
from confirmed_blocks import ONE_SPEED, RULES, SIZE, TWO_SPEEDS, A, B, blocks_of, overall, ratios
from made_up_runs import FAST_S, SLOW_S, block

from commtune.model import FEWEST_PAIRS, Interval, Verdict
from commtune.tuner.confirmation.comparison import compare_candidate
from commtune.tuner.statistics.machine_states import ALL


def test_a_gain_at_one_speed_is_claimed() -> None:
    compared = compare_candidate(blocks_of(ratios(12, 1.3)), A, "allreduce", ONE_SPEED, RULES)
    points = compared.points
    assert [p.speed for p in points] == [ALL]
    assert points[0].verdict is Verdict.FASTER
    assert points[0].gain.low < 1.3 < points[0].gain.high
    assert points[0].gain.pairs == 12
    found = compared.estimates[SIZE]
    assert found is not None
    assert math.exp(found.mean) == points[0].gain.ratio


def test_a_machine_speed_at_which_it_is_slower_blocks_the_claim() -> None:
    fast = blocks_of(ratios(30, 1.3), FAST_S)
    good = [*fast, *blocks_of(ratios(8, 1.0), SLOW_S)]
    bad = [*fast, *blocks_of(ratios(8, 0.97), SLOW_S)]
    for blocks, expected in ((good, Verdict.FASTER), (bad, Verdict.UNDECIDED)):
        points = compare_candidate(blocks, A, "allreduce", TWO_SPEEDS, RULES).points
        assert [p.speed for p in points] == [ALL, "fast", "slow"]
        assert points[0].gain.low > 1.02
        assert points[0].verdict is expected


@pytest.mark.parametrize(
    ("slow", "expected"),
    [
        ([0.93, 0.94, 0.93], Verdict.UNDECIDED),
        ([0.96, 0.97, 0.96], Verdict.FASTER),
        ([0.93] * (FEWEST_PAIRS - 1), Verdict.UNDECIDED),
    ],
)
def test_few_pairs_at_a_speed_only_warn_beyond_the_tolerance(
    slow: list[float], expected: Verdict
) -> None:
    blocks = [*blocks_of(ratios(30, 1.3), FAST_S), *blocks_of(slow, SLOW_S)]
    points = compare_candidate(blocks, A, "allreduce", TWO_SPEEDS, RULES).points
    assert overall(points).verdict is expected


def test_a_single_pair_at_a_speed_is_told_as_it_was() -> None:
    """It proves nothing, so its interval reaches everywhere; its ratio is no invention."""
    blocks = [*blocks_of(ratios(30, 1.3), FAST_S), *blocks_of([0.5], SLOW_S)]
    points = compare_candidate(blocks, A, "allreduce", TWO_SPEEDS, RULES).points
    (slow,) = [p for p in points if p.speed == "slow"]
    assert slow.gain == Interval(slow.gain.ratio, 0.0, math.inf, 1)
    assert slow.gain.ratio == pytest.approx(0.5)
    assert slow.default_s / slow.tuned_s == pytest.approx(slow.gain.ratio)
    assert slow.verdict is Verdict.UNDECIDED


def test_the_verdict_over_all_speeds_combines_them_by_their_shares() -> None:
    fast, slow = ratios(20, 1.1, 0.005, seed=2), ratios(10, 1.4, 0.005, seed=3)
    blocks = [*blocks_of(fast, FAST_S), *blocks_of(slow, SLOW_S)]
    points = compare_candidate(blocks, A, "allreduce", TWO_SPEEDS, RULES).points
    expected = math.exp((20 * math.log(1.1) + 10 * math.log(1.4)) / 30)
    assert overall(points).gain.ratio == pytest.approx(expected, rel=0.01)
    assert overall(points).gain.pairs == 30
    assert [p.share for p in points] == pytest.approx([1.0, 2 / 3, 1 / 3])


def test_a_single_pair_does_not_warn() -> None:
    blocks = [*blocks_of(ratios(30, 1.3), FAST_S), *blocks_of([0.9], SLOW_S)]
    points = compare_candidate(blocks, A, "allreduce", TWO_SPEEDS, RULES).points
    assert overall(points).verdict is Verdict.FASTER


def test_speeds_do_not_add_to_the_noise() -> None:
    """Three times slower runs in one third of the blocks: the intervals stay as narrow."""
    found = ratios(30, 1.05)
    fast = blocks_of(found[:20], FAST_S)
    slow = [block({SIZE: 3.0}, {A: {SIZE: 3 / r}}, canary_s=SLOW_S) for r in found[20:]]
    points = compare_candidate([*fast, *slow], A, "allreduce", TWO_SPEEDS, RULES).points
    alone = compare_candidate(blocks_of(found), A, "allreduce", ONE_SPEED, RULES).points
    wide = overall(points).gain.high / overall(points).gain.low
    assert wide < 1.3 * (alone[0].gain.high / alone[0].gain.low)


def test_too_few_pairs_are_never_believed() -> None:
    blocks = blocks_of([1.5] * (FEWEST_PAIRS - 1))
    points = compare_candidate(blocks, A, "allreduce", ONE_SPEED, RULES).points
    assert points[0].verdict is Verdict.UNDECIDED


def test_a_candidate_that_never_worked_has_no_points() -> None:
    nothing = compare_candidate(blocks_of([1.0] * 9), B, "allreduce", ONE_SPEED, RULES)
    assert (nothing.points, nothing.estimates) == ((), {})
