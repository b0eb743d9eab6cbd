"""Sizes between those of the search: which are looked at, and that ranges end where they tell."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import simulated
from quiet import QuietReporter
from synthetic import SyntheticBenchmark, VirtualClock

from commtune.campaign.plan import Budget, Plan
from commtune.model import Configuration, Operation, Phase, Timing, Verdict, Workload
from commtune.tuner.campaign import Campaign
from commtune.tuner.confirmation.between import SizesBetween
from commtune.tuner.confirmation.portfolio import assign_sizes
from commtune.tuner.execution.in_memory_store import InMemoryStore
from commtune.tuner.execution.runner import Runner
from commtune.tuner.search.standings import Standing

KIB, MIB = 2**10, 2**20
SIZES = tuple(16 * KIB * 2**n for n in range(8))
TUNED, OTHER = (Configuration({"V1": value}) for value in "12")


def plan(sizes: tuple[int, ...] = SIZES, ranks: int = 2) -> Plan:
    workload = Workload(Operation.ALLREDUCE, sizes, ranks)
    return Plan("between", simulated.space(), workload, looks_between=True)


def between(
    gains: dict[Configuration, tuple[float, ...]], on: Plan, *, run_s: float = 1.0
) -> dict[Configuration, tuple[int, ...]]:
    """The sizes that were added for each candidate with these gains."""
    sizes = on.workload.sizes
    members = {
        one: Standing(
            one,
            {size: math.log(ratio) for size, ratio in zip(sizes, ratios, strict=True)},
            dict.fromkeys(sizes, 0.01),
        )
        for one, ratios in gains.items()
    }
    default_s = dict.fromkeys(sizes, 1e-6)
    shares = assign_sizes(members, sizes, on.tolerance)
    found = SizesBetween(on, members, default_s, run_s).add_to(shares)
    assert all(set(shares[one]) <= set(mine) for one, mine in found.items())
    return {one: tuple(size for size in mine if size not in sizes) for one, mine in found.items()}


def test_inside_of_a_range_are_an_odd_size_and_one_element_more() -> None:
    found = between({TUNED: (1.5,) * 8}, plan())
    assert found == {TUNED: (192 * KIB, MIB + 4)}


def test_of_a_total_one_element_more_is_one_for_every_rank() -> None:
    on = plan(ranks=3)
    on = replace(on, workload=replace(on.workload, operation=Operation.ALLGATHER))
    assert between({TUNED: (1.5,) * 8}, on)[TUNED][-1] == MIB + 12


def test_a_border_is_bisected_by_both_winners() -> None:
    found = between({TUNED: (1.5,) * 4 + (0.7,) * 4, OTHER: (0.7,) * 4 + (1.5,) * 4}, plan())
    assert 192 * KIB in found[TUNED]
    assert 192 * KIB in found[OTHER]


def test_where_the_gain_ends_is_bisected_too_and_nothing_is_looked_at_beyond() -> None:
    found = between({TUNED: (0.7,) * 4 + (1.5,) * 4}, plan())[TUNED]
    assert min(found) == 192 * KIB


def test_the_further_apart_two_sizes_are_the_more_often_they_are_halved() -> None:
    found = between({TUNED: (0.7, 1.5)}, plan((16 * KIB, 128 * KIB)))[TUNED]
    assert found == (24 * KIB, 48 * KIB)  # of two sizes, two are all that is allowed
    sizes = (8, 64, 512, 4 * KIB, 16 * KIB, 128 * KIB)
    found = between({TUNED: (0.7,) * 5 + (1.5,)}, plan(sizes))[TUNED]
    assert found == (24 * KIB, 48 * KIB, 64 * KIB)


def test_without_a_gain_nothing_is_looked_at() -> None:
    assert between({TUNED: (1.0,) * 8}, plan()) == {TUNED: ()}
    assert between({}, plan()) == {}


def test_a_run_gets_no_longer_than_it_has_time_for() -> None:
    assert between({TUNED: (1.5,) * 8}, plan(), run_s=0.02) == {TUNED: (192 * KIB,)}
    assert between({TUNED: (1.5,) * 8}, plan(), run_s=0.001) == {TUNED: ()}


def campaign(on: Plan, tell: QuietReporter) -> Campaign:
    """On a machine where V1=1 gains 1.5x, and loses half at sizes that are no powers of two."""

    def truth(configuration: Configuration, size: int) -> float:
        gain = 1.5 if size & (size - 1) == 0 else 0.5
        return (1e-6 + size / 5e9) / (gain if configuration.get("V1") == "1" else 1)

    benchmark = SyntheticBenchmark(truth, VirtualClock())
    runner = Runner(on, 1, benchmark, InMemoryStore("1"), clock=benchmark.clock)
    return Campaign(on, runner, tell)


@pytest.mark.parametrize("looks", [True, False])
def test_no_range_is_claimed_over_a_size_where_it_is_slower(looks: bool) -> None:
    found = replace(plan(), budget=Budget(6, 0.1, 10), timing=Timing(max_samples=20))
    tell = QuietReporter()
    made = campaign(replace(found, looks_between=looks), tell)
    result = made.run()
    said = [line for line in tell.said if line.startswith("confirmation also measures ")]
    assert ["192 KiB, 1 MiB + 4 B: " in line for line in said] == [True] * looks
    claimed = [p for p in result.profiles if p.verdict is Verdict.FASTER]
    assert {size for p in claimed for size in (p.bytes_low, p.bytes_high)} <= set(SIZES)
    assert {p.configuration["V1"] for p in claimed} == {"1"}
    odd = {192 * KIB, MIB + 4}
    covered = {size for size in odd for p in claimed if p.bytes_low <= size <= p.bytes_high}
    assert covered == (set() if looks else odd)
    measured = {m.bytes for run in made.runner.evidence.of(Phase.SEARCH) for m in run.measurements}
    assert measured == set(SIZES)
