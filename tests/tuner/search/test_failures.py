"""What is set aside after failures, in campaigns over a made-up machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from made_up_spaces import made_up_space
from quiet import QuietReporter
from synthetic import SyntheticBenchmark, VirtualClock

from commtune.campaign.plan import Budget, Plan
from commtune.model import Configuration, Operation, Outcome, Phase, Workload
from commtune.tuner.campaign import Campaign
from commtune.tuner.execution.in_memory_store import InMemoryStore
from commtune.tuner.execution.runner import Runner

MINE = Configuration({"V": "1"})
PLAN = Plan(
    "failures",
    made_up_space("  - {name: V, kind: integer, range: [1, 9], source: made up}"),
    Workload(Operation.ALLREDUCE, (1024,)),
    budget=Budget(20, 5, 8),
)


def set_aside(
    benchmark: SyntheticBenchmark,
    fails: Callable[[list[Configuration]], bool],
    plan: Plan = PLAN,
) -> tuple[object, ...]:
    """Runs a campaign; ``fails`` is given what ran so far, and says whether the last run fails."""

    def judge(_: int) -> Outcome:
        ran = [run.configuration for run in benchmark.runs]
        return Outcome.TIMED_OUT if fails(ran) else Outcome.OK

    benchmark.machine = judge
    runner = Runner(plan, 1, benchmark, InMemoryStore("1"), clock=benchmark.clock)
    found = Campaign(plan, runner, QuietReporter()).run()
    assert any(run.configuration == MINE for run in benchmark.runs if run.phase is Phase.SEARCH)
    return found.set_aside


def made_up_machine() -> SyntheticBenchmark:
    return SyntheticBenchmark(lambda *_: 1e-6, VirtualClock())


def test_what_worked_while_others_used_the_cores_is_not_set_aside() -> None:
    benchmark = made_up_machine()

    def load() -> float:
        return 0.8 if benchmark.runs[-1].configuration == MINE else 0.0

    benchmark.load = load
    # Two runs that worked are repeated, the third fails, and so does the run that checks it.
    assert not set_aside(benchmark, lambda ran: ran[-1] == MINE and 2 < ran.count(MINE) < 5)


def test_a_fault_that_lasts_for_two_runs_sets_nothing_aside() -> None:
    assert not set_aside(
        made_up_machine(), lambda ran: MINE in ran and len(ran) - ran.index(MINE) <= 2
    )


def test_what_fails_twice_where_the_default_works_is_set_aside() -> None:
    assert set_aside(made_up_machine(), lambda ran: ran[-1] == MINE) == (("V", "1"),)


@pytest.mark.slow
def test_a_value_that_the_user_listed_and_that_failed_once_runs_again() -> None:
    large = made_up_space("  - {name: V, kind: integer, range: [1, 999], source: made up}")
    benchmark = made_up_machine()
    assert not set_aside(
        benchmark,
        lambda ran: ran[-1] == MINE and ran.count(MINE) < 2,
        replace(PLAN, space=large, first=(MINE,)),
    )
    assert sum(run.configuration == MINE for run in benchmark.runs) > 1
