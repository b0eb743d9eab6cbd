"""One environment for all sizes, what it may cost, and what it loses against one per range."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_runs import comparison, point
from stated_evidence import SIZES, A, B, faster, plan, unharmed

from commtune.model import Verdict
from commtune.tuner.outcome.displayed_points import overall_points
from commtune.tuner.outcome.profiles import ProfileMaker
from commtune.tuner.outcome.ranges import _mean_gain, best_single, find_ranges, trade_off


def test_one_for_all_sizes_hurts_none_beyond_the_tolerance() -> None:
    rest = [faster(s) for s in SIZES[1:]]
    for low, allowed in ((0.951, True), (0.949, False)):
        found = comparison({A: [point(8, 0.98, low, 1.01), *rest]})
        assert best_single(plan(), found) == (A if allowed else None)


def test_one_for_all_sizes_is_measured_at_all_of_them() -> None:
    assert best_single(plan(), comparison({A: [faster(s) for s in SIZES[1:]]})) is None
    few = [point(8, 1.0, 0.99, 1.01, pairs=4), *(faster(s) for s in SIZES[1:])]
    assert best_single(plan(), comparison({A: few})) is None


def test_one_for_all_sizes_is_faster_somewhere() -> None:
    assert best_single(plan(), comparison({A: [unharmed(s, 1.01) for s in SIZES]})) is None
    assert best_single(plan(), comparison({})) is None


def test_what_loses_more_than_it_gains_is_not_for_all_sizes() -> None:
    losing = [faster(8, 1.04), *(point(s, 0.96, 0.955, 0.97) for s in SIZES[1:])]
    assert best_single(plan(), comparison({A: losing})) is None


_ratio = st.floats(0.7, 1.6)
_width = st.floats(0.001, 0.2)


@given(
    st.lists(st.tuples(_ratio, _width), min_size=5, max_size=5),
    st.lists(st.tuples(_ratio, _width), min_size=5, max_size=5),
    st.dictionaries(st.sampled_from([0, 1, 100, 70000]), st.floats(0.1, 1e6)),
)
def test_nothing_slower_beyond_the_tolerance_is_ever_for_all_sizes(
    one: list[tuple[float, float]],
    other: list[tuple[float, float]],
    messages: dict[int, float],
) -> None:
    found = comparison(
        {
            c: [
                point(size, ratio, ratio / (1 + width), ratio * (1 + width))
                for size, (ratio, width) in zip(SIZES, rows, strict=True)
            ]
            for c, rows in ((A, one), (B, other))
        }
    )
    the_plan = plan(messages=messages)
    chosen = best_single(the_plan, found)
    if chosen is not None:
        assert all(p.gain.low >= 0.95 for p in found[chosen].points)
        assert any(p.verdict is Verdict.FASTER for p in found[chosen].points)
        points = overall_points(found[chosen].points)
        ratios = {size: p.gain.ratio for size, p in points.items()}
        default_s = {size: p.default_s for size, p in points.items()}
        assert _mean_gain(ratios, default_s, messages) > 0
    for profile in ProfileMaker(the_plan, found).recommend():
        if profile.name == "all-sizes":
            assert profile.configuration == chosen


def test_messages_change_the_choice() -> None:
    """A gains at small sizes, B at large ones: what programs send decides."""
    two = (8, 32768)
    found = comparison(
        {
            A: [faster(8, 1.5, default_s=1e-6), unharmed(32768, default_s=1e-5)],
            B: [unharmed(8, default_s=1e-6), faster(32768, 1.4, default_s=1e-5)],
        }
    )
    assert best_single(plan(two), found) == A
    assert best_single(plan(two, {8: 1000, 32768: 1}), found) == A
    assert best_single(plan(two, {8: 1, 32768: 1}), found) == B


def test_the_mean_gain_by_hand() -> None:
    ratios, default_s = {8: 1.5, 1024: 1.2}, {8: 1e-6, 1024: 4e-6}
    assert _mean_gain(ratios, default_s, {}) == pytest.approx((math.log(1.5) + math.log(1.2)) / 2)
    # 10 messages of 4 bytes take as long as of 8; 3 of 4,096 four times as long as of 1,024.
    default = 10 * 1e-6 + 3 * 4 * 4e-6
    tuned = 10 * 1e-6 / 1.5 + 3 * 4 * 4e-6 / 1.2
    messages = {4: 10.0, 4096: 3.0}
    assert _mean_gain(ratios, default_s, messages) == pytest.approx(math.log(default / tuned))
    assert _mean_gain({}, {}, {8: 1}) == 0.0


def test_messages_without_content_are_messages_too() -> None:
    default_s = {8: 1e-6, 1024: 4e-6}
    assert _mean_gain({8: 1.5, 1024: 1.2}, default_s, {0: 7}) == pytest.approx(math.log(1.5))


# Trade-offs


def test_the_trade_off_by_hand() -> None:
    two = (8, 64)
    found = comparison({A: [faster(8, 1.5), faster(64, 1.2)], B: [unharmed(8), faster(64, 1.6)]})
    the_plan = plan(two)
    parts = find_ranges(the_plan, found)
    assert [p.configuration for p in parts] == [A, B]
    said = trade_off(the_plan, found, parts, A)
    assert said.one_mean_gain == pytest.approx(math.sqrt(1.5 * 1.2))
    assert said.ranges_mean_gain == pytest.approx(math.sqrt(1.5 * 1.6))
    assert said.lost_by_one == {8: pytest.approx(0.0), 64: pytest.approx(0.25)}


def test_the_trade_off_where_a_range_keeps_the_default() -> None:
    two = (8, 64)
    found = comparison({A: [unharmed(8, 0.98), faster(64, 1.2)]})
    parts = find_ranges(plan(two), found)
    said = trade_off(plan(two), found, parts, A)
    assert said.one_mean_gain == pytest.approx(math.sqrt(0.98 * 1.2))
    assert said.ranges_mean_gain == pytest.approx(math.sqrt(1.2))
    assert said.lost_by_one == {8: pytest.approx(0.02), 64: pytest.approx(0.0)}


def test_the_trade_off_is_weighted_where_a_range_keeps_the_default() -> None:
    """Both sides by the same messages, else a range each may seem worse than one for all."""
    two, messages = (8, 64), {8: 1.0, 64: 3.0}
    found = comparison({A: [unharmed(8, 0.98, default_s=1e-6), faster(64, 1.2, default_s=2e-6)]})
    the_plan = plan(two, messages)
    said = trade_off(the_plan, found, find_ranges(the_plan, found), A)
    default = 1e-6 + 3 * 2e-6
    assert said.one_mean_gain == pytest.approx(default / (1e-6 / 0.98 + 6e-6 / 1.2))
    assert said.ranges_mean_gain == pytest.approx(default / (1e-6 + 6e-6 / 1.2))


def test_the_trade_off_without_anything() -> None:
    said = trade_off(plan(), comparison({}), find_ranges(plan(), comparison({})), None)
    assert (said.one_mean_gain, said.ranges_mean_gain) == (1.0, 1.0)
    weighted = plan(messages={8: 1})
    said = trade_off(weighted, comparison({}), find_ranges(weighted, comparison({})), None)
    assert (said.one_mean_gain, said.ranges_mean_gain) == (1.0, 1.0)
