"""Whole campaigns whose blocks are under way together and come back out of order."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest
from known_machine import SPACE, truth
from quiet import QuietReporter
from synthetic import SyntheticBenchmark, VirtualClock
from synthetic_batches import SyntheticBatches

from commtune.campaign.plan import Budget, Plan
from commtune.errors import EnvironmentFault
from commtune.model import Configuration, Operation, Outcome, Phase, Verdict, Workload
from commtune.tuner.campaign import Campaign, CampaignResult
from commtune.tuner.execution.in_memory_store import InMemoryStore
from commtune.tuner.execution.runner import Runner
from commtune.tuner.ports import Batches
from commtune.tuner.search.model import TableModel
from commtune.tuner.search.proposals import Search
from commtune.tuner.search.standings import SpeedupReader, Speedups
from commtune.tuner.search.strategies import make_strategy
from commtune.tuner.search.strategies.strategy import DEFAULT_STRATEGY

SIZES = (8, 65536, 1048576)


@dataclass
class Laboratory:
    """What a campaign needs; each session has a runner of its own over one store."""

    batches: SyntheticBatches
    plan: Plan
    store: InMemoryStore

    def session(self) -> Campaign:
        runner = Runner(self.plan, 1, self.batches, self.store)
        return Campaign(self.plan, runner, QuietReporter())

    def run(self) -> CampaignResult:
        return self.session().run()


@pytest.fixture
def laboratory() -> Laboratory:
    plan = Plan(
        name="test",
        space=SPACE,
        workload=Workload(Operation.ALLREDUCE, SIZES),
        budget=Budget(search_s=40, ablation_s=10, confirmation_s=20),
    )
    batches = SyntheticBatches(SyntheticBenchmark(truth, VirtualClock()))
    return Laboratory(batches, plan, InMemoryStore("test"))


def test_the_double_is_the_port(laboratory: Laboratory) -> None:
    assert isinstance(laboratory.batches, Batches)
    assert not isinstance(laboratory.batches.machine, Batches)


def test_finds_what_is_there_with_several_blocks_under_way(laboratory: Laboratory) -> None:
    report = laboratory.run()
    large = [p for p in report.profiles if p.verdict is Verdict.FASTER and p.bytes_low == 65536]
    assert len(large) == 1
    assert int(large[0].configuration["BUFFER"]) >= 32768
    assert laboratory.batches.most_seen == 4
    assert sorted(laboratory.batches.collected) == sorted(laboratory.batches.submitted)
    assert len(set(laboratory.batches.submitted)) == len(laboratory.batches.submitted)


def test_budgets_count_runs_and_not_waiting(laboratory: Laboratory) -> None:
    report = laboratory.run()
    runs = laboratory.session().runner
    runs.load()
    searched = sum(r.wall_s for r in runs.evidence.of(Phase.SEARCH))
    # One block more than the time at most, for each that may be under way.
    assert 40 - 8 * 0.2 <= searched <= 40 + 4 * 8 * 0.2
    assert report.runs == len(laboratory.batches.collected)


def test_what_jobs_take_beside_their_runs_is_paid_from_the_budget(laboratory: Laboratory) -> None:
    laboratory.batches.overhead = 2.0
    report = laboratory.run()
    runner = laboratory.session().runner
    runner.load()
    for phase, budget_s in ((Phase.SEARCH, 40), (Phase.CONFIRM, 20)):
        spent = 2 * sum(r.wall_s for r in runner.evidence.of(phase))
        assert 0.6 * budget_s <= spent <= budget_s + 2 * 4 * 8 * 0.2
    assert any(p.verdict is Verdict.FASTER for p in report.profiles)


def test_blocks_that_are_lost_are_made_again(laboratory: Laboratory) -> None:
    laboratory.batches.lost_share = 0.2
    report = laboratory.run()
    assert any(p.verdict is Verdict.FASTER for p in report.profiles)
    runner = laboratory.session().runner
    runner.load()
    lost = {r.configuration for r in runner.evidence.runs if r.outcome is Outcome.NODE_FAILURE}
    good = {r.configuration for r in runner.evidence.runs if r.outcome is Outcome.OK}
    searched = {r.configuration for r in runner.evidence.of(Phase.SEARCH)}
    assert lost
    # At the end of the search, a few may have had no time for a second run.
    assert len((lost & searched) - good) <= 8
    assert report.set_aside == ()


def test_block_after_block_lost_ends_the_campaign(laboratory: Laboratory) -> None:
    laboratory.batches.lost_share = 1.0
    with pytest.raises(EnvironmentFault, match=r"5 blocks in a row were lost.*n1 died"):
        laboratory.run()


def test_what_an_earlier_controller_left_is_taken_up_and_not_made_twice(
    laboratory: Laboratory,
) -> None:
    collect = laboratory.batches.collect
    calls = 0

    def dies(*_: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 6:
            raise KeyboardInterrupt
        return collect()

    laboratory.batches.collect = dies  # type: ignore[method-assign,assignment]  # for this test
    with pytest.raises(KeyboardInterrupt):
        laboratory.run()
    left = {request.run_id for block in laboratory.batches._under_way for request in block}
    assert left
    # Another controller, with nothing in memory.
    after = SyntheticBatches(laboratory.batches.machine)
    laboratory.batches = after
    laboratory.run()
    assert after.adopted
    assert left <= set(after.collected)
    assert not left & set(after.submitted)


def test_node_hours_end_a_campaign_in_order(laboratory: Laboratory) -> None:
    laboratory.batches.limit_s = 15.0
    report = laboratory.run()
    spent = sum(r.wall_s for r in laboratory.session().runner.store.runs(1))
    assert spent <= 15.0 + 4 * 8 * 0.2
    assert report.conclusion


def test_planned_blocks_count_as_whole_ones(laboratory: Laboratory) -> None:
    laboratory.run()
    runner = laboratory.session().runner
    runner.load()
    confirmed = Counter(run.block for run in runner.evidence.of(Phase.CONFIRM))
    assert confirmed
    assert all(len(runner.plans[block].order) == count for block, count in confirmed.items())


def _distance(one: Configuration, other: Configuration) -> int:
    first, second = SPACE.assignment(one), SPACE.assignment(other)
    return sum(first[name] != second[name] for name in first)


def _close_pairs(
    runs: list[tuple[Configuration, Speedups]],
    known: list[Configuration],
    seed: int,
    *,
    waits: bool,
    rebuilt: bool,
) -> int:
    """Of 28 proposals that are under way together, pairs that differ in one parameter."""
    model = TableModel(SPACE, SIZES)
    weights = np.full(len(SIZES), 1 / len(SIZES))
    search = Search(model, make_strategy(DEFAULT_STRATEGY, model, weights, seed))
    for configuration in known:
        search.remember(configuration)
    search.rebuild(runs)
    made = []
    for _ in range(28):
        proposal = search.ask()
        assert proposal is not None
        made.append(proposal.configuration)
        if not waits:
            search.forget(proposal.configuration)
        if rebuilt:
            search.rebuild(runs)
    assert len(set(made)) == 28
    return sum(_distance(a, b) <= 1 for a, b in combinations(made, 2))


@pytest.mark.slow
@pytest.mark.parametrize("rebuilt", [False, True])
def test_what_is_under_way_keeps_proposals_apart(laboratory: Laboratory, rebuilt: bool) -> None:
    """Proposals that wait are not forgotten, also where the model is made anew meanwhile."""
    laboratory.plan = replace(laboratory.plan, budget=Budget(20, 1, 2))
    laboratory.run()
    runner = laboratory.session().runner
    runner.load()
    runs = SpeedupReader(SIZES).rebuild(runner.evidence)
    known = list(runner.trials)

    def close(*, waits: bool) -> int:
        return sum(
            _close_pairs(runs, known, seed, waits=waits, rebuilt=rebuilt) for seed in range(5)
        )

    assert close(waits=True) < close(waits=False)
