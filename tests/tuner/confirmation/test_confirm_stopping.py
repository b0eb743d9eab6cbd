"""When a candidate has enough blocks: decided, futile, or out of budget."""

from __future__ import annotations

import math
from dataclasses import replace

from confirmed_blocks import ONE_SPEED, RULES, SIZE, A, blocks_of, run
from hypothesis import given
from hypothesis import strategies as st
from made_up_runs import point

from commtune.model import FEWEST_PAIRS, Interval, Outcome, PointEvidence
from commtune.tuner.confirmation.comparison import (
    Compared,
    Rules,
    more_pairs,
)
from commtune.tuner.statistics.blocks import lacks_pairs
from commtune.tuner.statistics.intervals import Estimate


def state(
    mean: float, error: float, pairs: int, rules: Rules = RULES
) -> tuple[dict[int, Estimate | None], list[PointEvidence]]:
    """An estimate at one size, and the point that comes of it."""
    found = Estimate(mean, error, max(1.0, 0.6 * pairs - 1), pairs)
    half = found.half_width(rules.interval_level)
    low, high = math.exp(max(mean - half, -700)), math.exp(min(mean + half, 700))
    return {SIZE: found}, [point(SIZE, math.exp(mean), low, high, pairs=pairs)]


def stop(
    estimates: dict[int, Estimate | None],
    points: list[PointEvidence],
    *,
    made: int,
    planned: int,
    sizes: tuple[int, ...] = (),
    is_alone: bool = False,
) -> str:
    """Why a candidate ends, with as many blocks; all sizes are those of its points."""
    measured = sizes or tuple(sorted({p.bytes for p in points})) or (SIZE,)
    compared = Compared(tuple(points), estimates, RULES.interval_level)
    return compared.stop_reason(measured, RULES, made, planned, is_alone=is_alone)


def test_a_size_without_any_pair_is_not_decided() -> None:
    surely = state(math.log(1.3), 0.005, 20)
    assert stop(*surely, made=20, planned=50, sizes=(SIZE, 2 * SIZE)) == ""


def test_whether_harm_is_done_is_waited_for_where_there_is_a_gain() -> None:
    one = state(math.log(1.3), 0.005, 20)
    nothing = state(0.0, 0.02, 20)
    wide = replace(nothing[1][0], bytes=8, gain=Interval(1.0, 0.9, 1.1, 20))
    narrow = replace(wide, gain=Interval(1.0, 0.96, 1.05, 20))
    estimates = {SIZE: one[0][SIZE], 8: nothing[0][SIZE]}
    assert stop(estimates, [*one[1], wide], made=20, planned=50) == ""
    assert stop(estimates, [*one[1], narrow], made=20, planned=50) == "decided"


def test_stopping_by_known_cases() -> None:
    surely = state(math.log(1.3), 0.005, 20)
    assert stop(*surely, made=20, planned=50) == "decided"
    slower = state(math.log(0.8), 0.005, 20)
    assert stop(*slower, made=20, planned=50) == "decided"
    nothing = state(0.0, 0.02, 20)
    assert stop(*nothing, made=20, planned=50) == "futile"
    promising = state(math.log(1.08), 0.03, 20)
    assert stop(*promising, made=20, planned=200) == ""
    assert stop(*promising, made=20, planned=20) == "budget"
    assert stop({}, [], made=50, planned=50) == "budget"


def test_what_has_nobody_to_give_its_runs_to_is_not_given_up() -> None:
    nothing = state(0.0, 0.02, 20)
    assert stop(*nothing, made=20, planned=50, is_alone=True) == ""
    assert stop(*nothing, made=50, planned=50, is_alone=True) == "budget"
    assert stop({}, [], made=FEWEST_PAIRS, planned=50, is_alone=True) == "futile"


def test_what_fails_every_time_is_given_up() -> None:
    assert stop({}, [], made=FEWEST_PAIRS - 1, planned=50) == ""
    assert stop({}, [], made=FEWEST_PAIRS, planned=50) == "futile"
    failing = [{**b, A: run(A, outcome=Outcome.CRASHED)} for b in blocks_of([1.0] * 20)]
    assert not lacks_pairs(failing, [A], ONE_SPEED)


def test_a_gain_at_one_size_and_no_hope_at_the_others_is_decided() -> None:
    one, two = state(math.log(1.3), 0.005, 20), state(0.0, 0.02, 20)
    points = [*one[1], replace(two[1][0], bytes=8)]
    estimates = {SIZE: one[0][SIZE], 8: two[0][SIZE]}
    assert stop(estimates, points, made=20, planned=50) == "decided"


def test_too_few_pairs_are_not_given_up() -> None:
    for made in range(2, FEWEST_PAIRS):
        assert stop(*state(-0.5, 0.001, made), made=made, planned=50) == ""


_means = st.floats(-0.5, 1.0)
_errors = st.floats(1e-4, 0.5)
_ASKED = (RULES.interval_level, RULES.minimum_gain)
_counts = st.tuples(st.integers(FEWEST_PAIRS, 60), st.integers(1, 200))


@given(_means, _errors, _counts)
def test_never_futile_while_the_estimate_would_win_where_it_stands(
    mean: float, error: float, counts: tuple[int, int]
) -> None:
    made, more = counts
    estimates, points = state(mean, error, made)
    why = stop(estimates, points, made=made, planned=made + more)
    at_the_end = Estimate(
        mean,
        error * math.sqrt(made / (made + more)),
        (0.6 * made - 1) * (made + more) / made,
        made + more,
    )
    if mean - at_the_end.half_width(RULES.interval_level) > math.log1p(RULES.minimum_gain):
        assert why in ("", "decided")


@given(_means, st.floats(0, 1), _errors, _counts)
def test_a_better_estimate_is_never_futile_where_a_worse_one_is_not(
    mean: float, better: float, error: float, counts: tuple[int, int]
) -> None:
    made, more = counts

    def why(value: float) -> str:
        return stop(*state(value, error, made), made=made, planned=made + more)

    if why(mean) == "":
        assert why(mean + better) != "futile"


@given(_means, _errors, _counts, st.integers(0, 300))
def test_more_blocks_to_come_never_make_it_futile(
    mean: float, error: float, counts: tuple[int, int], further: int
) -> None:
    made, more = counts
    now = state(mean, error, made)
    if stop(*now, made=made, planned=made + more) == "":
        assert stop(*now, made=made, planned=made + more + further) == ""


@given(_means, _errors, _counts)
def test_the_end_of_the_budget_ends_everything(
    mean: float, error: float, counts: tuple[int, int]
) -> None:
    made, _ = counts
    assert stop(*state(mean, error, made), made=made, planned=made) in (
        "decided",
        "budget",
    )


@given(_means, _errors, st.integers(FEWEST_PAIRS, 60))
def test_more_pairs_are_asked_for_only_where_they_help(
    mean: float, error: float, pairs: int
) -> None:
    found = state(mean, error, pairs)[0][SIZE]
    more = more_pairs(found, *_ASKED)
    assert more is None or more >= 0


def test_a_gain_at_the_very_minimum_can_never_be_decided() -> None:
    assert more_pairs(state(math.log(1.02), 0.01, 20)[0][SIZE], *_ASKED) is None
    assert more_pairs(None, *_ASKED) is None
