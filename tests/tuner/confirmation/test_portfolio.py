"""Which configurations go on to confirmation, and at which sizes: from standings made by hand."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

import numpy as np
import pytest
import simulated
from simulated import MadeUpNoise, Planted, run_campaign

from commtune.campaign.plan import Budget, Plan
from commtune.model import Configuration, Operation, Workload
from commtune.tuner.confirmation.portfolio import (
    Prospects,
    assign_sizes,
    measure_pair_noise,
)
from commtune.tuner.search.improvement import weigh_sizes
from commtune.tuner.search.standings import Standing

SIZES = (8, 1024, 65536, 1048576)
SMALL, LARGE, BOTH = (Configuration({"V1": value}) for value in "123")
TOLERANCE = 0.05


def standing(configuration: Configuration, *ratios: float, error: float = 0.02) -> Standing:
    means = {size: math.log(ratio) for size, ratio in zip(SIZES, ratios, strict=True)}
    return Standing(configuration, means, dict.fromkeys(SIZES, error))


def prospects(
    *standings: Standing, spread: float = 0.03, messages: Mapping[int, float] | None = None
) -> Prospects:
    workload = Workload(Operation.ALLREDUCE, SIZES)
    plan = Plan("portfolio", simulated.space(), workload, messages=messages or {})
    weights = weigh_sizes(np.array(SIZES, float), plan.messages, np.full(len(SIZES), 1e-6))
    by_size = dict(zip(SIZES, weights.tolist(), strict=True))
    return Prospects(plan, standings, by_size, dict.fromkeys(SIZES, spread))


def chosen(
    *standings: Standing, runs: int = 200, messages: Mapping[int, float] | None = None
) -> list[Configuration]:
    found, _ = prospects(*standings, messages=messages).choose(runs)
    return [standing.configuration for standing in found]


SPECIALISTS = (standing(SMALL, 1.5, 1.5, 0.7, 0.7), standing(LARGE, 0.7, 0.7, 1.5, 1.5))
COMPROMISE = standing(BOTH, 1.15, 1.15, 1.15, 1.15)


def test_what_covers_the_table_goes_on_and_compromises_do_not() -> None:
    assert set(chosen(*SPECIALISTS, COMPROMISE)) == {SMALL, LARGE}


def test_few_runs_confirm_few_candidates() -> None:
    """16 runs are eight blocks with one candidate, and too few with two."""
    assert len(chosen(*SPECIALISTS, runs=16)) == 1


def test_of_configurations_alike_one_goes_on() -> None:
    rng = random.Random(1)
    alike = [
        standing(Configuration({"V1": a, "V2": b}), *(rng.uniform(1.5, 1.51) for _ in SIZES))
        for a in "123"
        for b in "123"
    ]
    assert len(chosen(*alike)) == 1


def test_of_two_alike_the_smaller_goes_on() -> None:
    larger = Configuration({**SMALL, "V5": "1", "V6": "1", "V7": "1"})
    even = (1.5, 1.5, 1.5, 1.5)
    assert chosen(standing(larger, *even), standing(SMALL, *even)) == [SMALL]


def test_what_adds_little_does_not_take_the_time_of_ablation() -> None:
    first = standing(Configuration({"V1": "1", "V2": "1"}), 1.5, 1.5, 1.5, 1.5)
    six = Configuration({f"V{number}": "2" for number in range(1, 7)})
    further = standing(six, 0.9, 0.9, 0.9, 1.65)
    alone, both = ([one.configuration for one in those] for those in ([first], [first, further]))
    # Each variable of both can be left out in 300 runs; in 80, those of the first alone.
    assert chosen(first, further, runs=300) == both
    assert chosen(first, further, runs=80) == alone
    much = standing(six, 0.9, 0.9, 0.9, 2.5)
    without, runs = prospects(first, much).choose(80)
    assert (len(without), runs) == (2, 0)
    both_at_80 = prospects(first, much)
    assert both_at_80.count_ablation_runs([0, 1], 80) == 0
    assert both_at_80.count_ablation_runs([0, 1], 80, of_each=False) >= 5 * (1 + 1 + 2)


@pytest.mark.parametrize(("ratio", "ablation_runs"), [(2.0, 172), (1.06, 80), (0.9, 80)])
def test_ablation_has_what_large_gains_leave_and_else_its_share(
    ratio: float, ablation_runs: int
) -> None:
    """2x takes 14 blocks of two runs, the fewest; less takes all that are left of 200 runs."""
    _, found = prospects(standing(SMALL, *[ratio] * 4), spread=0.1).choose(200)
    assert found == ablation_runs


def test_a_lucky_single_run_stays_behind_what_is_known_well() -> None:
    lucky = standing(LARGE, 1.6, 1.6, 1.6, 1.6, error=0.2)
    assert chosen(standing(SMALL, 1.5, 1.5, 1.5, 1.5), lucky) == [SMALL]


def test_where_pairs_differ_widely_only_large_gains_can_be_confirmed() -> None:
    """Of one candidate: a moderate gain at all sizes, or a large one at one of them."""
    everywhere, somewhere = (
        standing(SMALL, 1.25, 1.25, 1.25, 1.25),
        standing(LARGE, 1.0, 1.0, 1.0, 1.7),
    )
    for spread, best in ((0.03, SMALL), (0.3, LARGE)):
        (found,), _ = prospects(everywhere, somewhere, spread=spread).choose(16)
        assert found.configuration == best


def test_without_any_promise_the_closest_is_confirmed() -> None:
    assert chosen(standing(SMALL, 0.9, 0.9, 0.9, 0.9), standing(LARGE, 0.99, 0.9, 0.9, 0.9)) == [
        LARGE
    ]
    assert chosen() == []


def test_what_ablation_met_joins_where_it_adds_enough() -> None:
    """The first one stays, whatever the others promise; and each costs a run in every block."""
    first, better = standing(SMALL, 1.5, 1.5, 1.1, 1.1), standing(LARGE, 1.1, 1.1, 1.1, 2.0)
    alike = standing(BOTH, 1.51, 1.5, 1.1, 1.1)

    def joins(*others: Standing, runs: int = 200) -> list[Standing]:
        return prospects(first, *others).choose_further(1, runs)

    assert joins(alike, better) == [better]
    assert joins(alike) == joins() == []
    assert joins(better, runs=16) == []


def test_messages_decide_which_sizes_count() -> None:
    """With few runs there is one candidate: that for the sizes that programs send."""
    assert chosen(*SPECIALISTS, runs=16, messages={8: 1e6}) == [SMALL]
    assert chosen(*SPECIALISTS, runs=16, messages={1048576: 10}) == [LARGE]


def test_each_size_has_its_best_and_no_size_is_left_out() -> None:
    members = {found.configuration: found for found in SPECIALISTS}
    assert assign_sizes(members, SIZES, TOLERANCE) == {SMALL: SIZES[:2], LARGE: SIZES[2:]}
    assert assign_sizes({}, SIZES, TOLERANCE) == {}


def test_what_seems_to_harm_nothing_is_confirmed_at_all_sizes() -> None:
    members = {found.configuration: found for found in (*SPECIALISTS, COMPROMISE)}
    shares = assign_sizes(members, SIZES, TOLERANCE)
    assert shares[BOTH] == SIZES
    assert shares[SMALL] == SIZES[:2]


def test_the_spread_of_a_pair_comes_from_runs_of_the_same_configuration() -> None:
    rng = random.Random(1)
    runs = [
        (configuration, np.array([level + rng.gauss(0, 0.05)]))
        for configuration, level in ((SMALL, 0.1), (LARGE, 0.7))
        for _ in range(200)
    ]
    assert measure_pair_noise(runs, [8])[8] == pytest.approx(math.sqrt(2) * 0.05, rel=0.1)
    wild = [*runs, (SMALL, np.array([9.0]))]
    assert measure_pair_noise(wild, [8])[8] < 2 * math.sqrt(2) * 0.05


@pytest.mark.slow
@pytest.mark.parametrize("whole_s", [7.0, 10.0, 20.0, 60.0])
def test_small_budgets_are_not_overdrawn(whole_s: float) -> None:
    """42 to 360 runs for search, ablation and confirmation together."""
    for seed in range(2):
        noise = MadeUpNoise("normal", random.Random(seed))
        budget = Budget(0.5 * whole_s, 0.2 * whole_s, 0.3 * whole_s)
        _, report = run_campaign(noise, Planted(0.5), seed, budget)
        assert report.benchmark_s <= whole_s + 2 * noise.run_s
