"""What blocks say: which of them count, what makes a pair, verdicts by machine speed, stopping."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_runs import FAST_S, SLOW_S, THRESHOLD_S, MadeUpRun, block, plan_of, point, sizes

from commtune.model import DEFAULT, Configuration, Interval, Outcome, PointEvidence, Verdict
from commtune.tuner.confirm import (
    FEWEST_BLOCKS,
    LOOK_SHARES,
    LOOK_TIMES,
    Blocks,
    Course,
    Decision,
    Look,
    Rules,
    block_order,
    compare_one,
    complete_blocks,
    error_share,
    lacks_pairs,
    more_pairs,
    pairs,
    planned_blocks,
    stop_reason,
    whole_blocks,
)
from commtune.tuner.speeds import ALL, Speeds
from commtune.tuner.stats import FEWEST_PAIRS, Estimate, half_width

A, B = Configuration({"V": "a"}), Configuration({"V": "b"})
SIZE = 1024
RULES = Rules(level=0.95, minimum_gain=0.02, tolerance=0.05, comparisons=1)
ONE_SPEED, TWO_SPEEDS = Speeds(), Speeds((THRESHOLD_S,))


def run(
    configuration: Configuration,
    number: int = 0,
    time_s: float = 1.0,
    outcome: Outcome = Outcome.OK,
    session: str = "one",
) -> MadeUpRun:
    found = sizes({SIZE: time_s}) if outcome is Outcome.OK else ()
    return MadeUpRun(configuration, number, found, outcome=outcome, session=session)


def ratios(count: int, ratio: float, spread: float = 0.01, seed: int = 1) -> list[float]:
    rng = random.Random(seed)
    return [ratio * math.exp(rng.gauss(0, spread)) for _ in range(count)]


def blocks_of(
    found: list[float], canary_s: float | None = None, candidate: Configuration = A
) -> Blocks:
    """Blocks in which a candidate is faster by these ratios, at one size and machine speed."""
    return [block({SIZE: 1.0}, {candidate: {SIZE: 1 / r}}, canary_s=canary_s) for r in found]


def overall(points: tuple[PointEvidence, ...]) -> PointEvidence:
    (found,) = [p for p in points if p.speed == ALL]
    return found


# Which blocks count


def test_a_block_counts_when_all_that_was_planned_has_a_run() -> None:
    plans = {0: plan_of(0, A, DEFAULT, B), 1: plan_of(1, DEFAULT, A, B)}
    runs = [run(A), run(DEFAULT), run(B), run(DEFAULT, 1), run(A, 1)]
    (only,) = whole_blocks(runs, plans)
    assert set(only) == {DEFAULT, A, B}
    assert {r.block for r in only.values()} == {0}


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_interrupted_run_drops_its_block_whole(place: int) -> None:
    runs = [run(A), run(DEFAULT), run(B)]
    runs[place] = replace(runs[place], outcome=Outcome.INTERRUPTED, measurements=())
    assert whole_blocks(runs, {0: plan_of(0, A, DEFAULT, B)}) == []


def test_a_block_across_two_sessions_is_dropped() -> None:
    runs = [run(A), run(DEFAULT), run(B, session="two")]
    assert whole_blocks(runs, {0: plan_of(0, A, DEFAULT, B)}) == []


def test_runs_without_a_planned_block_make_none() -> None:
    assert whole_blocks([run(A), run(DEFAULT)], {1: plan_of(1, DEFAULT, A)}) == []


def test_a_run_made_again_counts_as_its_last_time() -> None:
    runs = [run(DEFAULT), run(A, time_s=9.0), run(A, time_s=2.0), run(A, time_s=3.0)]
    (only,) = whole_blocks(runs, {0: plan_of(0, DEFAULT, A)})
    assert only[A].measurements[0].median_s == 3.0


def test_a_run_made_again_that_failed_counts_as_failed() -> None:
    """Else a slow first time could be kept, or a fast one, by how the second ended."""
    runs = [run(DEFAULT), run(A, time_s=0.1), run(A, outcome=Outcome.CRASHED)]
    (only,) = whole_blocks(runs, {0: plan_of(0, DEFAULT, A)})
    assert only[A].outcome is Outcome.CRASHED
    assert pairs([only], DEFAULT, A, ONE_SPEED) == {}


def test_blocks_come_by_number_whatever_the_order_of_runs() -> None:
    plans = {n: plan_of(n, DEFAULT, A) for n in (3, 1, 2)}
    runs = [run(c, n, time_s=n) for n in (2, 3, 1) for c in (A, DEFAULT)]
    found = [members[A].measurements[0].median_s for members in whole_blocks(runs, plans)]
    assert found == [1, 2, 3]


@pytest.mark.parametrize("outcome", [o for o in Outcome if o.blames_configuration])
def test_a_failed_candidate_makes_no_pair_and_the_others_stay_paired(outcome: Outcome) -> None:
    runs = [run(DEFAULT), run(A, outcome=outcome), run(B, time_s=0.5)]
    found = whole_blocks(runs, {0: plan_of(0, DEFAULT, A, B)})
    assert complete_blocks(found, [A, B]) == 1
    assert pairs(found, DEFAULT, A, ONE_SPEED) == {}
    assert pairs(found, DEFAULT, B, ONE_SPEED) == {(SIZE, ALL): [(1.0, 0.5)]}


def test_a_failed_default_makes_no_pair_for_anyone() -> None:
    runs = [run(DEFAULT, outcome=Outcome.TRUNCATED), run(A), run(B)]
    found = whole_blocks(runs, {0: plan_of(0, DEFAULT, A, B)})
    assert pairs(found, DEFAULT, A, ONE_SPEED) == pairs(found, DEFAULT, B, ONE_SPEED) == {}
    assert set(pairs(found, A, B, ONE_SPEED)) == {(SIZE, ALL)}


def test_a_size_that_one_run_lacks_makes_no_pair_there() -> None:
    members = block({8: 1.0, 64: 1.0}, {A: {64: 0.5}})
    assert set(pairs([members], DEFAULT, A, ONE_SPEED)) == {(64, ALL)}


def test_different_or_mixed_machine_speeds_make_no_pair() -> None:
    members = block({SIZE: 1.0}, {A: {SIZE: 1.0}}, canary_s=FAST_S)
    other = {**members, A: replace(members[A], measurements=sizes({SIZE: 3.0}, SLOW_S))}
    flipped = replace(members[A].measurements[0], canary_after_s=SLOW_S)
    mixed = {**members, A: replace(members[A], measurements=(flipped,))}
    found = pairs([members, other, mixed], DEFAULT, A, TWO_SPEEDS)
    assert found == {(SIZE, "fast"): [(1.0, 1.0)]}


def test_the_order_of_a_block_is_shuffled_and_can_be_made_again() -> None:
    orders = [block_order([A, B], 1, number) for number in range(200)]
    assert all(sorted(map(str, o)) == sorted(map(str, (DEFAULT, A, B))) for o in orders)
    assert orders == [block_order([A, B], 1, number) for number in range(200)]
    first = sum(order[0].is_default for order in orders)
    # A third of 200, within four standard deviations.
    assert 40 <= first <= 94


@pytest.mark.parametrize(
    ("budget_s", "block_s", "expected"),
    [(30, 1, 30), (1, 1, FEWEST_BLOCKS), (1e9, 1, 400), (30, 0, 400), (0, 1, FEWEST_BLOCKS)],
)
def test_planned_blocks(budget_s: float, block_s: float, expected: int) -> None:
    assert planned_blocks(budget_s, block_s) == expected


def test_a_speed_that_comes_up_often_has_to_be_spoken_for() -> None:
    fast, slow = blocks_of([1.0] * 20, FAST_S), blocks_of([1.0] * 4, SLOW_S)
    assert lacks_pairs([*fast, *slow], [A], TWO_SPEEDS)
    assert not lacks_pairs([*fast, *slow, *blocks_of([1.0], SLOW_S)], [A], TWO_SPEEDS)
    # Two of 22: too rare to be waited for.
    assert not lacks_pairs([*fast, *slow[:2]], [A], TWO_SPEEDS)


# Looks


def test_the_looks_spend_no_more_than_the_error_rate() -> None:
    assert math.fsum(LOOK_SHARES) <= 1 + 1e-12
    assert all(share > 0 for share in LOOK_SHARES)
    assert LOOK_TIMES[-1] == 1.0
    assert list(LOOK_TIMES) == sorted(set(LOOK_TIMES))
    assert len(LOOK_SHARES) == len(LOOK_TIMES)


@settings(derandomize=True, deadline=None)
@given(st.integers(0, 500), st.floats(0.5, 0.999), st.integers(1, 60))
def test_all_intervals_of_all_looks_together_keep_the_level(
    blocks: int, level: float, comparisons: int
) -> None:
    decision = Decision((A,), blocks, 0, 1.0)
    assert len(decision.shares) == len(decision.times)
    spent = sum(
        (1 - replace(RULES, level=level, comparisons=comparisons, share=share).each) * comparisons
        for share in decision.shares
    )
    assert spent <= (1 - level) * (1 + 1e-9)
    assert decision.times[-1] == 1.0


def test_the_level_of_each_look_by_hand() -> None:
    rules = [replace(RULES, comparisons=24, share=share) for share in LOOK_SHARES]
    assert [1 - r.each for r in rules] == pytest.approx(
        [0.05 * 0.15 / 24, 0.05 * 0.25 / 24, 0.05 * 0.6 / 24]
    )


def test_further_confirmations_share_what_is_left_of_the_error_rate() -> None:
    shares = [error_share(number) for number in range(50)]
    assert math.fsum(shares) <= 1 + 1e-12
    assert shares == sorted(shares, reverse=True)
    second = Decision((A,), 30, 0, 1.0, number=1, error_share=error_share(1))
    assert math.fsum(second.shares) == pytest.approx(0.1)
    assert Decision.from_plain(second.plain()) == second


def test_few_blocks_are_looked_at_once() -> None:
    assert Decision((A,), 11, 0, 1.0).shares == (1.0,)
    assert Decision((A,), 12, 0, 1.0).shares == LOOK_SHARES


_looks = st.builds(
    Look,
    st.integers(0, 400),
    st.integers(0, 400),
    st.dictionaries(st.integers(0, 2), st.sampled_from(["decided", "futile", "budget"])),
)


@settings(derandomize=True, deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from("ABC"), st.sampled_from("12")), max_size=3),
    st.integers(0, 400),
    st.integers(0, 9999),
    st.floats(0, 1e6),
    st.lists(_looks, max_size=3),
)
def test_a_decision_survives_the_store(
    candidates: list[dict[str, str]], blocks: int, first: int, budget_s: float, looks: list[Look]
) -> None:
    made = tuple(Configuration(values) for values in candidates)
    decision = Decision(made, blocks, first, budget_s, tuple(looks))
    again = Decision.from_plain(json.loads(json.dumps(decision.plain())))
    assert again == decision
    assert again.open() == decision.open()


def test_a_candidate_ends_at_the_first_look_that_says_so() -> None:
    decision = Decision((A, B), 20, 0, 1.0)
    assert decision.open() == (A, B)
    decision = decision.after(Look(8, 20, {1: "futile"}))
    assert decision.open() == (A,)
    decision = decision.after(Look(14, 24, {0: "decided"}))
    assert decision.open() == ()
    assert decision.stop_of(0) == (1, "decided")
    assert decision.stop_of(1) == (0, "futile")
    assert decision.stop_of(2) is None


# Verdicts


def test_a_gain_at_one_speed_is_claimed() -> None:
    points, estimates = compare_one(blocks_of(ratios(12, 1.3)), A, "allreduce", ONE_SPEED, RULES)
    assert [p.speed for p in points] == [ALL]
    assert points[0].verdict is Verdict.FASTER
    assert points[0].gain.low < 1.3 < points[0].gain.high
    assert points[0].gain.pairs == 12
    found = estimates[SIZE]
    assert found is not None
    assert math.exp(found.mean) == points[0].gain.ratio


def test_a_machine_speed_at_which_it_is_slower_blocks_the_claim() -> None:
    fast = blocks_of(ratios(30, 1.3), FAST_S)
    good = [*fast, *blocks_of(ratios(8, 1.0), SLOW_S)]
    bad = [*fast, *blocks_of(ratios(8, 0.97), SLOW_S)]
    for blocks, expected in ((good, Verdict.FASTER), (bad, Verdict.UNDECIDED)):
        points, _ = compare_one(blocks, A, "allreduce", TWO_SPEEDS, RULES)
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
    points, _ = compare_one(blocks, A, "allreduce", TWO_SPEEDS, RULES)
    assert overall(points).verdict is expected


def test_a_single_pair_at_a_speed_is_told_as_it_was() -> None:
    """It proves nothing, so its interval reaches everywhere; its ratio is no invention."""
    blocks = [*blocks_of(ratios(30, 1.3), FAST_S), *blocks_of([0.5], SLOW_S)]
    points, _ = compare_one(blocks, A, "allreduce", TWO_SPEEDS, RULES)
    (slow,) = [p for p in points if p.speed == "slow"]
    assert slow.gain == Interval(slow.gain.ratio, 0.0, math.inf, 1)
    assert slow.gain.ratio == pytest.approx(0.5)
    assert slow.default_s / slow.tuned_s == pytest.approx(slow.gain.ratio)
    assert slow.verdict is Verdict.UNDECIDED


def test_the_verdict_over_all_speeds_combines_them_by_their_shares() -> None:
    fast, slow = ratios(20, 1.1, 0.005, seed=2), ratios(10, 1.4, 0.005, seed=3)
    blocks = [*blocks_of(fast, FAST_S), *blocks_of(slow, SLOW_S)]
    points, _ = compare_one(blocks, A, "allreduce", TWO_SPEEDS, RULES)
    expected = math.exp((20 * math.log(1.1) + 10 * math.log(1.4)) / 30)
    assert overall(points).gain.ratio == pytest.approx(expected, rel=0.01)
    assert overall(points).gain.pairs == 30
    assert [p.share for p in points] == pytest.approx([1.0, 2 / 3, 1 / 3])


def test_a_single_pair_does_not_warn() -> None:
    blocks = [*blocks_of(ratios(30, 1.3), FAST_S), *blocks_of([0.9], SLOW_S)]
    points, _ = compare_one(blocks, A, "allreduce", TWO_SPEEDS, RULES)
    assert overall(points).verdict is Verdict.FASTER


def test_speeds_do_not_add_to_the_noise() -> None:
    """Three times slower runs in one third of the blocks: the intervals stay as narrow."""
    found = ratios(30, 1.05)
    fast = blocks_of(found[:20], FAST_S)
    slow = [block({SIZE: 3.0}, {A: {SIZE: 3 / r}}, canary_s=SLOW_S) for r in found[20:]]
    points, _ = compare_one([*fast, *slow], A, "allreduce", TWO_SPEEDS, RULES)
    alone, _ = compare_one(blocks_of(found), A, "allreduce", ONE_SPEED, RULES)
    wide = overall(points).gain.high / overall(points).gain.low
    assert wide < 1.3 * (alone[0].gain.high / alone[0].gain.low)


def test_too_few_pairs_are_never_believed() -> None:
    blocks = blocks_of([1.5] * (FEWEST_PAIRS - 1))
    points, _ = compare_one(blocks, A, "allreduce", ONE_SPEED, RULES)
    assert points[0].verdict is Verdict.UNDECIDED


def test_a_candidate_that_never_worked_has_no_points() -> None:
    assert compare_one(blocks_of([1.0] * 9), B, "allreduce", ONE_SPEED, RULES) == ((), {})


# Stopping


def state(
    mean: float, error: float, pairs: int, rules: Rules = RULES
) -> tuple[dict[int, Estimate | None], list[PointEvidence]]:
    """An estimate at one size, and the point that comes of it."""
    found = Estimate(mean, error, max(1.0, 0.6 * pairs - 1), pairs)
    half = half_width(found, rules.each)
    low, high = math.exp(max(mean - half, -700)), math.exp(min(mean + half, 700))
    return {SIZE: found}, [point(SIZE, math.exp(mean), low, high, pairs=pairs)]


def stop(
    estimates: dict[int, Estimate | None],
    points: list[PointEvidence],
    *,
    made: int,
    planned: int,
    sizes: tuple[int, ...] = (),
) -> str:
    """Why a candidate ends, with as many blocks; all sizes are those of its points."""
    measured = sizes or tuple(sorted({p.bytes for p in points})) or (SIZE,)
    return stop_reason(estimates, points, Course(measured, RULES, made, planned))


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
_counts = st.tuples(st.integers(FEWEST_PAIRS, 60), st.integers(1, 200))


@settings(derandomize=True, deadline=None)
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
    if mean - half_width(at_the_end, RULES.each) > math.log1p(RULES.minimum_gain):
        assert why in ("", "decided")


@settings(derandomize=True, deadline=None)
@given(_means, st.floats(0, 1), _errors, _counts)
def test_a_better_estimate_is_never_futile_where_a_worse_one_is_not(
    mean: float, better: float, error: float, counts: tuple[int, int]
) -> None:
    made, more = counts

    def why(value: float) -> str:
        return stop(*state(value, error, made), made=made, planned=made + more)

    if why(mean) == "":
        assert why(mean + better) != "futile"


@settings(derandomize=True, deadline=None)
@given(_means, _errors, _counts, st.integers(0, 300))
def test_more_blocks_to_come_never_make_it_futile(
    mean: float, error: float, counts: tuple[int, int], further: int
) -> None:
    made, more = counts
    now = state(mean, error, made)
    if stop(*now, made=made, planned=made + more) == "":
        assert stop(*now, made=made, planned=made + more + further) == ""


@settings(derandomize=True, deadline=None)
@given(_means, _errors, _counts)
def test_the_end_of_the_budget_ends_everything(
    mean: float, error: float, counts: tuple[int, int]
) -> None:
    made, _ = counts
    assert stop(*state(mean, error, made), made=made, planned=made) in (
        "decided",
        "budget",
    )


@settings(derandomize=True, deadline=None)
@given(_means, _errors, st.integers(FEWEST_PAIRS, 60))
def test_more_pairs_are_asked_for_only_where_they_help(
    mean: float, error: float, pairs: int
) -> None:
    found = state(mean, error, pairs)[0][SIZE]
    more = more_pairs(found, RULES)
    assert more is None or more >= 0


def test_a_gain_at_the_very_minimum_can_never_be_decided() -> None:
    assert more_pairs(state(math.log(1.02), 0.01, 20)[0][SIZE], RULES) is None
    assert more_pairs(None, RULES) is None
