"""What the runs of a search go to: few first runs of the default; no limit for later phases."""

from __future__ import annotations

from dataclasses import replace

import pytest
from held_campaigns import hold
from made_up_spaces import made_up_space
from search.ours import Silent
from synthetic import SyntheticBenchmark, VirtualClock

from commtune.campaign.plan import Budget, Plan
from commtune.db.storage.store import Store
from commtune.model import (
    DEFAULT,
    Configuration,
    Operation,
    Outcome,
    Phase,
    RunRequest,
    RunResult,
    Workload,
)
from commtune.tuner.campaign import Campaign
from commtune.tuner.execution.in_memory_store import InMemoryStore
from commtune.tuner.execution.runner import Runner
from commtune.tuner.execution.session import Session
from commtune.tuner.search.phase import SearchPhase

SPACE = made_up_space("""
  - {name: BUFFER, kind: power-of-two, range: [1024, 65536], source: test}
""")
PLAN = Plan("test", SPACE, Workload(Operation.ALLREDUCE, (8, 65536)))


def truth(configuration: Configuration, size: int) -> float:
    del configuration  # none makes a difference
    return 1e-6 + size / 5e9


def search(plan: Plan, benchmark: SyntheticBenchmark) -> Runner:
    """Searches; returns what has all that was measured."""
    runner = Runner(plan, 1, benchmark, InMemoryStore("1"), clock=benchmark.clock)
    runner.recover()
    runner.load()
    runner.new_trial(DEFAULT, "baseline")
    SearchPhase(Session(plan, runner, Silent())).run()
    return runner


@pytest.mark.parametrize("phase", [Phase.ABLATE, Phase.CONFIRM, Phase.GUARD, Phase.VERIFY])
def test_what_later_phases_made_is_no_trial_of_the_search(store: Store, phase: Phase) -> None:
    benchmark = SyntheticBenchmark(truth, VirtualClock())
    plan = replace(PLAN, budget=Budget(search_s=30, ablation_s=1, confirmation_s=1, trials=2))
    campaign = hold(store, plan)
    first = Runner(plan, campaign, benchmark, store, clock=benchmark.clock)
    first.new_trial(DEFAULT, "baseline")
    first.new_trial(Configuration({"BUFFER": "2048"}), "sampler")
    first.plan_block([DEFAULT, Configuration({"BUFFER": "65536"})], phase)

    later = Runner(plan, campaign, benchmark, store, clock=benchmark.clock)
    later.load()

    assert len(later.trials) == 3
    assert (first.searched, later.searched) == (1, 1)


@pytest.mark.parametrize(("runs", "first"), [(7, 2), (20, 3), (200, 4)])
def test_the_first_runs_of_the_default_leave_a_small_budget_to_others(
    runs: int, first: int
) -> None:
    benchmark = SyntheticBenchmark(truth, VirtualClock())
    plan = replace(
        PLAN, budget=Budget(search_s=runs * benchmark.run_s, ablation_s=0, confirmation_s=0)
    )
    search(plan, benchmark)

    # Blocks of one run come first; the first of more is the search's.
    blocks = [run.block for run in benchmark.runs]
    assert next(n for n, block in enumerate(blocks) if blocks.count(block) > 1) == first
    assert all(run.configuration.is_default for run in benchmark.runs[:first])


def test_without_trials_the_default_is_measured_alone() -> None:
    benchmark = SyntheticBenchmark(truth, VirtualClock())
    plan = replace(
        PLAN,
        budget=Budget(search_s=100 * benchmark.run_s, ablation_s=0, confirmation_s=0, trials=0),
    )
    runner = Runner(plan, 1, benchmark, InMemoryStore("1"), clock=benchmark.clock)
    result = Campaign(plan, runner, Silent()).run()
    assert [run.configuration.is_default for run in benchmark.runs] == [True] * 10
    assert {size: len(times) for size, times in result.default_s.items()} == {8: 10, 65536: 10}


class LosesFirst(SyntheticBenchmark):
    """The first run of what is not the default is lost, with its node."""

    lost = False

    def measure(self, request: RunRequest, time_limit_s: float) -> RunResult:
        result = super().measure(request, time_limit_s)
        if self.lost or request.configuration.is_default:
            return result
        self.lost = True
        return replace(result, outcome=Outcome.NODE_FAILURE, measurements=())


def test_a_lost_run_of_what_the_user_listed_is_made_again_without_a_budget() -> None:
    benchmark = LosesFirst(truth, VirtualClock())
    listed = Configuration({"BUFFER": "4096"})
    plan = replace(
        PLAN,
        budget=Budget(search_s=benchmark.run_s / 10, ablation_s=0, confirmation_s=0),
        first=(listed,),
    )
    runner = search(plan, benchmark)

    measured = [run.outcome for run in runner.evidence.runs if run.configuration == listed]
    assert measured == [Outcome.NODE_FAILURE, Outcome.OK]
