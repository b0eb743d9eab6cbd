"""Ctrl-C at any statement of the database: no run is left behind as if it were under way."""

from __future__ import annotations

import os
import signal
from collections import Counter
from dataclasses import dataclass

import pytest
from held_campaigns import hold
from made_up_spaces import made_up_space
from struck_statements import struck
from synthetic import SyntheticBenchmark, VirtualClock

from commtune.campaign.plan import Plan
from commtune.db.storage.store import Store
from commtune.errors import AllocationOver
from commtune.model import DEFAULT, Operation, Outcome, Phase, RunRequest, RunResult, Workload
from commtune.tuner.execution.runner import Runner

SPACE = made_up_space("""
  - {name: V, kind: integer, values: [1, 2], source: made up}
""")
PLAN = Plan("struck", SPACE, Workload(Operation.ALLREDUCE, (8,)))


def run_once(runner: Runner) -> None:
    runner.submit([DEFAULT], Phase.SEARCH, runner.new_block())
    runner.collect()


def test_wherever_it_comes_a_run_is_whole_or_marked_or_nothing(store: Store) -> None:
    benchmark = SyntheticBenchmark(lambda *_: 1e-6, VirtualClock())
    campaign_id = hold(store, PLAN)
    runner = Runner(PLAN, campaign_id, benchmark, store, clock=benchmark.clock)
    runner.new_trial(DEFAULT, "baseline")
    ways: Counter[str] = Counter()
    for statement in range(1, 100):
        before = len(list(store.runs(campaign_id)))
        interrupted = False
        with struck(store.database, statement) as seen:
            try:
                run_once(runner)
            except KeyboardInterrupt:
                interrupted = True
        if len(seen) < statement:
            break
        assert interrupted, seen
        assert store.open_runs(campaign_id) == [], f"struck in {seen[-1]}"
        new = [run.outcome for run in store.runs(campaign_id)][before:]
        assert len(new) <= 1
        ways.update(map(str, new))
    else:
        pytest.fail("a run never ends")
    # It came while a run was registered, and while its result was stored.
    assert ways.keys() == {str(Outcome.INTERRUPTED), str(Outcome.OK)}, ways


@dataclass
class Impatient(SyntheticBenchmark):
    """Ctrl-C while a run is under way, and again while it is looked for what is left of it."""

    def measure(self, request: RunRequest, time_limit_s: float) -> RunResult:
        os.kill(os.getpid(), signal.SIGINT)
        return super().measure(request, time_limit_s)

    def recover(self, request: RunRequest) -> RunResult | None:
        os.kill(os.getpid(), signal.SIGINT)
        return super().recover(request)


def test_a_second_one_waits_until_the_run_is_settled(store: Store) -> None:
    campaign_id = hold(store, PLAN)
    runner = Runner(PLAN, campaign_id, Impatient(lambda *_: 1e-6, VirtualClock()), store)
    runner.new_trial(DEFAULT, "baseline")
    with pytest.raises(KeyboardInterrupt):
        run_once(runner)
    assert [run.outcome for run in store.runs(campaign_id)] == [Outcome.INTERRUPTED]
    assert store.open_runs(campaign_id) == []


@dataclass
class Over(SyntheticBenchmark):
    """The time of its job is over after a run."""

    def measure(self, request: RunRequest, time_limit_s: float) -> RunResult:
        if request.block:
            raise AllocationOver("the time of job 7 is nearly over")
        return super().measure(request, time_limit_s)


def test_a_run_that_the_end_of_our_job_kept_from_its_start_is_not_lost(store: Store) -> None:
    campaign_id = hold(store, PLAN)
    runner = Runner(PLAN, campaign_id, Over(lambda *_: 1e-6, VirtualClock()), store)
    runner.new_trial(DEFAULT, "baseline")
    run_once(runner)
    with pytest.raises(AllocationOver):
        run_once(runner)
    assert [run.outcome for run in store.runs(campaign_id)] == [Outcome.OK]
    assert store.open_runs(campaign_id) == []
