"""How an ablation goes: what it gives up, how long it takes, kills, and the store."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import pytest
import simulated
from ablations import (
    FROM_BYTES,
    SEEDS,
    WINNER,
    Bench,
    Holds,
    effect,
    either,
    has,
    one,
    only,
    two,
)
from killed_campaigns import Killed
from simulated import SimulatedBenchmark

from commtune.db.codec import dump_model, load_model
from commtune.model import DEFAULT, Configuration, Outcome, Phase, RunRequest, RunResult
from commtune.model.conclusion import Ablation

# What there is no hope for, and time


def test_a_candidate_that_is_slower_goes_at_once() -> None:
    def slower(configuration: Configuration, size: int) -> float:
        del size
        return math.log(1.4) * has(configuration, "V3")

    for seed in SEEDS:
        bench = Bench(slower, seed)
        (ablation,) = bench.run()
        assert ablation.after == DEFAULT
        assert ablation.note == "fresh runs showed no gain"
        assert len(bench.store.stored) <= 10 * 6


def test_what_was_left_out_is_known_at_sizes_that_it_was_not_left_out_for() -> None:
    def both_ways(configuration: Configuration, size: int) -> float:
        return has(configuration, "V3") * math.log(0.7 if size >= FROM_BYTES else 1.3)

    bench = Bench(both_ways)
    bench.run()
    found = bench.phase.blocks.read_standings()
    without = Configuration({name: value for name, value in WINNER.items() if name != "V3"})
    for size in simulated.SIZES:
        assert found[without].mean[size] == pytest.approx(0.0, abs=0.1)
        assert found[WINNER].mean[size] == pytest.approx(-both_ways(WINNER, size), abs=0.1)
        assert 0 < found[WINNER].error[size] < 0.1


def test_a_candidate_that_gains_nothing_is_rarely_made_much_of() -> None:
    """Some end with the default; of the others what is left is the confirmation's to refute."""
    found = [Bench(effect(lambda _: 0.0), seed).run()[0] for seed in SEEDS]
    assert all(a.after.items() <= WINNER.items() for a in found)


@pytest.mark.parametrize("budget_s", [0.0, 0.5, 3.0, 10.0, 20.0, 60.0])
@pytest.mark.parametrize("holds", [one, either])
def test_the_budget_is_kept(budget_s: float, holds: Holds) -> None:
    others = [Configuration({**WINNER, "V9": value}) for value in "13"]
    bench = Bench(effect(holds), budget_s=budget_s)
    found = bench.run([WINNER, *others])
    assert [a.before for a in found] == [WINNER, *others]
    # The block that is under way when the time is over is made to its end.
    largest = max((len(plan.order) for plan in bench.store.plans), default=0)
    assert bench.benchmark.now <= budget_s + 0.165 * largest + 1e-6
    if not budget_s:
        assert bench.store.stored == []
        assert [a.after for a in found] == [WINNER, *others]


def test_candidates_share_the_default_of_the_first_blocks() -> None:
    several = [only("V3 V5"), only("V3 V6")]
    bench = Bench(effect(one))
    bench.run([*several, only("V4")])
    arms = {DEFAULT, *several, *map(only, ("V3", "V5", "V6"))}
    assert [set(plan.order) for plan in bench.store.plans][:4] == [arms] * 4


def test_blocks_of_all_that_do_not_fit_are_of_the_first_candidate() -> None:
    bench = Bench(effect(one), budget_s=4.5)  # 27 runs: four blocks of both are 40
    bench.run([only("V3")])  # now it is known how long a run takes
    made = len(bench.store.plans)
    first, _ = bench.run([only("V3 V5 V6 V7"), only("V0 V1 V2 V4")])
    parts = map(only, ("V3 V5 V6", "V3 V5 V7", "V3 V6 V7", "V5 V6 V7"))
    assert set(bench.store.plans[made].order) == {DEFAULT, first.before, *parts}


def test_out_of_time_what_gains_less_than_a_standard_error_is_dropped() -> None:
    """Four blocks fit, and none that compares what is left with the whole."""
    found = [Bench(effect(one), seed, budget_s=7.5).run()[0] for seed in SEEDS]
    assert {ablation.note for ablation in found} == {"too little time to check all variables"}
    assert all(ablation.gain_kept is None for ablation in found)
    assert all("V3" in ablation.after for ablation in found)
    assert sum(len(ablation.after) for ablation in found) <= len(SEEDS) * 4
    for ablation in found:
        assert {e.name for e in ablation.variables if e.kept} == set(ablation.after)


def test_of_one_variable_only_other_values_are_tried() -> None:
    bench = Bench(effect(one))
    (ablation,) = bench.run([only("V3")])
    assert ablation.after == only("V3")
    assert all(set(run.configuration) <= {"V3"} for run in bench.store.stored)


def test_without_candidates_nothing_runs() -> None:
    bench = Bench(effect(one))
    assert bench.run([]) == []
    assert bench.store.stored == []


def test_candidates_that_share_what_matters_end_alike() -> None:
    other = Configuration({"V3": "2", "V8": "1", "V9": "1"})
    found = Bench(effect(one), 3, budget_s=60.0).run([WINNER, other])
    assert [a.after for a in found] == [only("V3"), only("V3")]
    assert [a.before for a in found] == [WINNER, other]


def test_a_variable_without_which_nothing_works_stays() -> None:
    @dataclass
    class Fragile(SimulatedBenchmark):
        def measure(self, request: RunRequest, time_limit_s: float) -> RunResult:
            if request.configuration and not has(request.configuration, "V5"):
                self.now += 0.165
                return RunResult(request.run_id, Outcome.CRASHED, self.now, 0.165)
            return super().measure(request, time_limit_s)

    for seed in SEEDS:
        bench = Bench(effect(one), seed)
        bench.benchmark = Fragile(bench.benchmark.noise, effect(one))
        (ablation,) = bench.run()
        assert has(ablation.after, "V3") and has(ablation.after, "V5")


# Resuming, and the store


def test_an_ablation_that_was_ended_and_begun_again_comes_to_the_same() -> None:
    """It is judged by what is stored, so that next to nothing is measured a second time."""
    for seed in SEEDS:
        bench = Bench(effect(two), seed)
        (first,) = bench.run()
        count = len(bench.store.stored)
        (again,) = bench.run()
        assert again.after == first.after
        assert len(bench.store.stored) <= 1.2 * count


def test_blocks_of_an_earlier_sitting_count_when_the_time_is_over() -> None:
    """The controller died in the last comparison; what was found before must not be lost."""
    for seed in SEEDS:
        whole = Bench(effect(one), seed, budget_s=12.0)
        (expected,) = whole.run()
        again = Bench(effect(one), seed, budget_s=12.0, store=whole.store)
        again.benchmark.now = whole.benchmark.now
        assert again.run()[0].after == expected.after


@pytest.mark.parametrize("after", [1, 12, 30, 45, 61])
def test_a_kill_changes_neither_what_stays_nor_the_budget(after: int) -> None:
    bench = Bench(effect(two), 2)
    measure, left = bench.benchmark.measure, [after]

    def dies_once(request: RunRequest, limit: float) -> RunResult:
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        return measure(request, limit)

    bench.benchmark.measure = dies_once  # type: ignore[method-assign,assignment]  # dies once
    with pytest.raises(Killed):
        bench.run()
    (ablation,) = bench.run()
    assert ablation.after.items() >= only("V3 V5").items()
    assert all(run.phase is Phase.ABLATE for run in bench.store.stored)
    assert bench.benchmark.now <= 20 + 0.165 * 11


def test_an_ablation_survives_the_store() -> None:
    (ablation,) = Bench(effect(two)).run()
    plain = json.loads(json.dumps(dump_model(ablation), allow_nan=False))
    assert load_model(Ablation, plain) == ablation
