"""Which blocks count, and what makes a pair of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from confirmed_blocks import ONE_SPEED, SIZE, TWO_SPEEDS, A, B, blocks_of, run
from made_up_runs import FAST_S, SLOW_S, block, plan_of, sizes

from commtune.model import DEFAULT, FEWEST_BLOCKS, Configuration, Outcome
from commtune.tuner.statistics.blocks import (
    balanced_order,
    complete_blocks,
    lacks_pairs,
    planned_blocks,
    whole_blocks,
)
from commtune.tuner.statistics.evidence import Evidence, never_works
from commtune.tuner.statistics.machine_states import ALL
from commtune.tuner.statistics.pairs import pair_by_size, pair_times


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
    assert only[A].measurements[0].time_s == 3.0


def test_a_run_made_again_that_failed_counts_as_failed() -> None:
    """Else a slow first time could be kept, or a fast one, by how the second ended."""
    runs = [run(DEFAULT), run(A, time_s=0.1), run(A, outcome=Outcome.CRASHED)]
    (only,) = whole_blocks(runs, {0: plan_of(0, DEFAULT, A)})
    assert only[A].outcome is Outcome.CRASHED
    assert pair_times([only], DEFAULT, A, ONE_SPEED) == {}


def test_what_failed_three_times_and_never_worked_is_given_up() -> None:
    failed = [run(A, number, outcome=Outcome.CRASHED) for number in range(3)]
    assert never_works(failed)
    assert not never_works(failed[:2])
    assert not never_works([*failed, run(A, 3)])
    assert Evidence.of_runs(failed).rerun_count == 0
    assert Evidence.of_runs([*failed, run(A, 2)]).rerun_count == 1


def test_blocks_come_by_number_whatever_the_order_of_runs() -> None:
    plans = {n: plan_of(n, DEFAULT, A) for n in (3, 1, 2)}
    runs = [run(c, n, time_s=n) for n in (2, 3, 1) for c in (A, DEFAULT)]
    found = [members[A].measurements[0].time_s for members in whole_blocks(runs, plans)]
    assert found == [1, 2, 3]


@pytest.mark.parametrize("outcome", [o for o in Outcome if o.blames_configuration])
def test_a_failed_candidate_makes_no_pair_and_the_others_stay_paired(outcome: Outcome) -> None:
    runs = [run(DEFAULT), run(A, outcome=outcome), run(B, time_s=0.5)]
    found = whole_blocks(runs, {0: plan_of(0, DEFAULT, A, B)})
    assert complete_blocks(found, [A, B]) == 1
    assert pair_times(found, DEFAULT, A, ONE_SPEED) == {}
    assert pair_times(found, DEFAULT, B, ONE_SPEED)[SIZE, ALL].times_s == [(1.0, 0.5)]


def test_a_failed_default_makes_no_pair_for_anyone() -> None:
    runs = [run(DEFAULT, outcome=Outcome.TRUNCATED), run(A), run(B)]
    found = whole_blocks(runs, {0: plan_of(0, DEFAULT, A, B)})
    assert (
        pair_times(found, DEFAULT, A, ONE_SPEED) == pair_times(found, DEFAULT, B, ONE_SPEED) == {}
    )
    assert set(pair_times(found, A, B, ONE_SPEED)) == {(SIZE, ALL)}


def test_a_size_that_one_run_lacks_makes_no_pair_there() -> None:
    members = block({8: 1.0, 64: 1.0}, {A: {64: 0.5}})
    assert set(pair_times([members], DEFAULT, A, ONE_SPEED)) == {(64, ALL)}


def test_what_running_second_costs_is_no_gain() -> None:
    """A candidate that came second more often is not slower for that."""
    blocks = []
    for number in range(24):
        first, second = (A, DEFAULT) if number < 8 else (DEFAULT, A)
        later = replace(run(second, number, time_s=1.1), position=1)
        blocks.append({first: run(first, number), second: later})
    found = pair_times(blocks, DEFAULT, A, ONE_SPEED)[SIZE, ALL].estimate()
    assert found is not None
    assert (found.mean, found.error) == pytest.approx((0.0, 0.0))


def test_different_or_mixed_machine_speeds_make_no_pair() -> None:
    members = block({SIZE: 1.0}, {A: {SIZE: 1.0}}, canary_s=FAST_S)
    other = {**members, A: replace(members[A], measurements=sizes({SIZE: 3.0}, SLOW_S))}
    flipped = replace(members[A].measurements[0], canary_after_s=SLOW_S)
    mixed = {**members, A: replace(members[A], measurements=(flipped,))}
    found = pair_times([members, other, mixed], DEFAULT, A, TWO_SPEEDS)
    assert {cell: pairs.times_s for cell, pairs in found.items()} == {(SIZE, "fast"): [(1.0, 1.0)]}


def test_pairs_of_all_machine_states_are_one_where_no_state_has_enough_of_them() -> None:
    fast = block({SIZE: 1.0}, {A: {SIZE: 1.0}}, canary_s=FAST_S)
    slower = {**fast, A: replace(fast[A], measurements=sizes({SIZE: 3.0}, SLOW_S))}
    flipped = replace(fast[A].measurements[0], canary_after_s=SLOW_S)
    mixed = {**fast, A: replace(fast[A], measurements=(flipped,))}
    unknown = {**fast, A: replace(fast[A], measurements=sizes({SIZE: 1.0}))}

    few = pair_by_size([fast] * 4 + [slower, mixed, unknown], DEFAULT, A, TWO_SPEEDS)
    assert set(few[SIZE]) == {ALL}
    assert few[SIZE][ALL].shifts == [0, 0, 0, 0, -1, -0.5]
    enough = pair_by_size([fast] * 5 + [slower, mixed, unknown], DEFAULT, A, TWO_SPEEDS)
    assert {state: len(pairs) for state, pairs in enough[SIZE].items()} == {"fast": 5}
    alike = pair_by_size([slower] * 7, DEFAULT, A, TWO_SPEEDS)
    assert alike == {}


def test_the_order_of_a_block_is_shuffled_and_can_be_made_again() -> None:
    orders = [balanced_order([DEFAULT, A, B], "1", number) for number in range(200)]
    assert all(sorted(map(str, o)) == sorted(map(str, (DEFAULT, A, B))) for o in orders)
    assert orders == [balanced_order([DEFAULT, A, B], "1", number) for number in range(200)]
    first = sum(order[0].is_default for order in orders)
    # A third of 200, within four standard deviations.
    assert 40 <= first <= 94


def test_of_four_blocks_each_side_leads_in_two_also_after_another_has_left() -> None:
    arrangements = set()
    for first in range(0, 400, 4):
        leads = [_leads(A, [A, B] if n < 2 else [A], first + n) for n in range(4)]
        arrangements.add(tuple(leads))
        assert sum(leads) == 2
        assert sum(_leads(B, [A, B], first + n) for n in range(4)) == 2
    # Two of four can be chosen in six ways, and none can be foreseen.
    assert len(arrangements) == 6


def _leads(candidate: Configuration, candidates: Sequence[Configuration], block: int) -> bool:
    order = balanced_order([DEFAULT, *candidates], "1", block)
    return order.index(candidate) < order.index(DEFAULT)


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
