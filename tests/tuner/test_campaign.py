"""Whole campaigns over a made-up machine whose truth is known, some with the real store."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from held_campaigns import hold, record
from known_machine import SPACE, truth
from quiet import QuietReporter
from synthetic import SyntheticBenchmark, VirtualClock

from commtune.campaign.plan import Budget, Plan
from commtune.db.storage.store import Store
from commtune.errors import EnvironmentFault
from commtune.model import (
    Configuration,
    Operation,
    Outcome,
    Phase,
    Verdict,
    Workload,
)
from commtune.spaces.customizing import customize_space
from commtune.tuner.campaign import Campaign, CampaignResult
from commtune.tuner.execution.in_memory_store import InMemoryStore
from commtune.tuner.execution.runner import Runner
from commtune.tuner.ports import Store as AnyStore

SIZES = (8, 1024, 65536, 1048576)


@dataclass
class Laboratory:
    """What a campaign needs; each session has a runner of its own.

    Attributes:
        begin: gives the store, and the campaign's number in it.
    """

    begin: Callable[[Plan], tuple[AnyStore, int]]
    plan: Plan
    benchmark: SyntheticBenchmark

    def session(self) -> tuple[Campaign, QuietReporter]:
        store, campaign_id = self.begin(self.plan)
        runner = Runner(self.plan, campaign_id, self.benchmark, store, clock=self.benchmark.clock)
        reporter = QuietReporter()
        return Campaign(self.plan, runner, reporter), reporter

    def run(self) -> CampaignResult:
        return self.session()[0].run()


@pytest.fixture
def laboratory() -> Laboratory:
    """Over a store in memory: most of the time would be the database's."""
    memory = InMemoryStore("test")
    plan = Plan(
        name="test",
        space=SPACE,
        workload=Workload(Operation.ALLREDUCE, SIZES),
        budget=Budget(search_s=40, ablation_s=10, confirmation_s=20),
    )
    return Laboratory(lambda _: (memory, 1), plan, SyntheticBenchmark(truth, VirtualClock()))


@pytest.fixture
def stored(laboratory: Laboratory, store: Store) -> Laboratory:
    """Over a database."""

    def begin(plan: Plan) -> tuple[Store, int]:
        anew = Store(store.database)
        return anew, hold(anew, plan)

    laboratory.begin = begin
    return laboratory


def test_finds_and_confirms_what_is_there(stored: Laboratory) -> None:
    report = stored.run()

    large = [p for p in report.profiles if p.bytes_high == SIZES[-1] and p.bytes_low == 65536]
    assert len(large) == 1, report.profiles
    assert large[0].verdict is Verdict.FASTER
    assert int(large[0].configuration["BUFFER"]) >= 32768
    point = next(p for p in large[0].points if p.bytes == 1048576)
    assert point.gain.low <= 1.5 <= point.gain.high
    small = [p for p in report.profiles if p.bytes_low == 8 and p.name != "all-sizes"]
    assert [p.configuration.is_default for p in small] == [True]
    assert all(p.simulated for p in report.profiles)


@pytest.mark.slow
@pytest.mark.parametrize("confirmation_s", [6.0, 200.0])
def test_too_little_time_for_an_ablation_is_said(
    laboratory: Laboratory, confirmation_s: float
) -> None:
    def both(configuration: Configuration, size: int) -> float:
        is_fast = configuration.get("NOTHING") == "7" and configuration.get("NEITHER") == "1"
        return (1e-6 + size / 5e9) / (2 if is_fast else 1)

    laboratory.benchmark.truth = both
    laboratory.plan = replace(
        laboratory.plan,
        first=tuple(
            map(
                Configuration,
                ({"NOTHING": "7", "NEITHER": "1"}, {"NOTHING": "7"}, {"NEITHER": "1"}),
            )
        ),
        budget=Budget(40, 0, confirmation_s, trials=20),
    )
    campaign, tell = laboratory.session()
    campaign.run()
    ablated = bool(campaign.runner.evidence.of(Phase.ABLATE))
    assert ablated == (confirmation_s > 100)
    assert any(line.startswith("no ablation: ") for line in tell.said) == (not ablated)


def test_two_machine_speeds_are_compared_within_each(laboratory: Laboratory) -> None:
    laboratory.benchmark.slow_share = 0.4
    report = laboratory.run()

    assert len(report.speeds.thresholds_s) == 1
    points = [p for profile in report.profiles for p in profile.points if p.bytes == 1048576]
    assert {p.speed for p in points} == {"all", "fast", "slow"}
    assert all(0.9 < p.gain.ratio / 1.5 < 1.1 for p in points if p.gain.pairs >= 5)


@pytest.mark.slow
def test_claims_nothing_where_nothing_is(laboratory: Laboratory) -> None:
    claimed = 0
    for seed in range(20):
        benchmark = SyntheticBenchmark(
            lambda _, size: 1e-6 + size / 5e9,
            VirtualClock(),
            seed=seed,
            noise=0.08,
            slow_share=0.3 if seed % 2 else 0.0,
        )
        plan = replace(laboratory.plan, seed=seed, budget=Budget(15, 5, 8))
        runner = Runner(plan, 1, benchmark, InMemoryStore(str(seed)), clock=benchmark.clock)
        report = Campaign(plan, runner, QuietReporter()).run()
        claimed += any(p.verdict is Verdict.FASTER for p in report.profiles)
    # At most 5 % of campaigns may claim anything: 5 or more of 20 happen once in 380 such tests.
    assert claimed < 5


def test_failures_are_remembered_and_their_value_set_aside(laboratory: Laboratory) -> None:
    laboratory.benchmark.outcomes = {
        ("ALGORITHM", "hang"): Outcome.TIMED_OUT,
        ("ALGORITHM", "bad"): Outcome.WRONG_RESULT,
    }
    campaign, reporter = laboratory.session()
    report = campaign.run()

    assert report.set_aside == (("ALGORITHM", "bad"), ("ALGORITHM", "hang"))
    assert any("setting aside ALGORITHM=hang" in line for line in reporter.said)
    # Twice in the search, and at most twice more alone, to tell the culprit from its company.
    for value in ("hang", "bad"):
        runs = laboratory.benchmark.runs
        tried = [r.configuration for r in runs if r.configuration.get("ALGORITHM") == value]
        assert 2 <= len(tried) <= 4
        assert sum(len(one) > 1 for one in tried) <= 2
    assert not any(p.configuration.get("ALGORITHM") == "hang" for p in report.profiles)


def _failing(numbers: range, outcome: Outcome) -> Callable[[int], Outcome]:
    """Runs with these numbers fail, from 1, whatever they are runs of."""
    return lambda number: outcome if number in numbers else Outcome.OK


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.NODE_FAILURE])
def test_a_passing_fault_of_the_machine_costs_no_value(
    laboratory: Laboratory, outcome: Outcome
) -> None:
    laboratory.benchmark.machine = _failing(range(12, 16), outcome)
    campaign, _ = laboratory.session()
    assert campaign.run().set_aside == ()
    runs = laboratory.benchmark.runs
    failed, later = runs[11:15], runs[15:]
    # What failed first is doubted, and a run of the default told.
    assert any(request.configuration.is_default for request in failed)
    again = {request.configuration for request in later}
    assert {request.configuration for request in failed} <= again


def test_no_budget_pays_for_waiting_until_a_fault_passes(laboratory: Laboratory) -> None:
    laboratory.benchmark.machine = _failing(range(12, 15), Outcome.NODE_FAILURE)
    laboratory.benchmark.simulated = False  # of which nobody waits for the machine
    campaign, reporter = laboratory.session()
    report = campaign.run()
    assert len([line for line in reporter.said if line.startswith("waiting ")]) == 2
    # By a clock that stands still between runs; 1 and 2 s were waited.
    evidence = campaign.runner.evidence
    lost_s = math.fsum(r.wall_s for r in evidence.runs if r.outcome.is_lost)
    searched_s = math.fsum(r.wall_s for r in evidence.of(Phase.SEARCH))
    assert lost_s > 0
    assert evidence.wall_s(Phase.SEARCH) == pytest.approx(searched_s - lost_s)  # when it resumes
    assert laboratory.benchmark.clock.now - report.wall_s == pytest.approx(3.0 + lost_s)


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome.FAILED, "the default configuration failed three times in a row"),
        (Outcome.NODE_FAILURE, "5 runs in a row were lost"),
    ],
)
def test_a_lasting_fault_stops_the_campaign_which_then_goes_on(
    laboratory: Laboratory, outcome: Outcome, said: str
) -> None:
    laboratory.benchmark.machine = _failing(range(12, 999), outcome)
    with pytest.raises(EnvironmentFault, match=said):
        laboratory.run()
    failed = laboratory.benchmark.runs[11:]
    assert len(failed) == 5
    laboratory.benchmark.machine = _failing(range(0), outcome)
    assert laboratory.run().set_aside == ()
    again = {request.configuration for request in laboratory.benchmark.runs[11 + len(failed) :]}
    assert {request.configuration for request in failed} <= again


@pytest.mark.parametrize(
    ("time_limit_s", "hint"), [(None, "run_time_limit"), (60.0, "commtune bench")]
)
def test_a_default_that_takes_too_long_comes_with_the_key_of_the_limit(
    laboratory: Laboratory, time_limit_s: float | None, hint: str
) -> None:
    laboratory.plan = replace(laboratory.plan, time_limit_s=time_limit_s)
    laboratory.benchmark.machine = _failing(range(12, 999), Outcome.TIMED_OUT)
    with pytest.raises(EnvironmentFault, match="in a row: timed-out") as stopped:
        laboratory.run()
    assert hint in stopped.value.hint


def test_what_a_session_set_aside_before_its_default_failed_is_tried_again(
    laboratory: Laboratory,
) -> None:
    """Also where the default ran in between, and happened to work."""
    laboratory.benchmark.outcomes = {("ALGORITHM", "hang"): Outcome.CRASHED}
    laboratory.benchmark.machine = _failing(range(100, 999), Outcome.FAILED)
    campaign, reporter = laboratory.session()
    with pytest.raises(EnvironmentFault):
        campaign.run()
    assert any("setting aside ALGORITHM=hang" in line for line in reporter.said)
    before = len(laboratory.benchmark.runs)
    laboratory.benchmark.outcomes = {}
    laboratory.benchmark.machine = _failing(range(0), Outcome.OK)
    assert laboratory.run().set_aside == ()
    assert "hang" in {r.configuration.get("ALGORITHM") for r in laboratory.benchmark.runs[before:]}


def test_a_small_space_is_tried_whole_and_once(laboratory: Laboratory) -> None:
    small = customize_space(
        laboratory.plan.space,
        narrow={"BUFFER": ["1024", "65536"], "ALGORITHM": ["ring"], "NOTHING": ["1"]},
    )
    laboratory.plan = replace(laboratory.plan, space=small, budget=Budget(60, 5, 5))
    laboratory.run()

    searched = [
        r.configuration
        for r in laboratory.benchmark.runs
        if r.phase is Phase.SEARCH and not r.configuration.is_default
    ]
    assert set(searched) == set(small.configurations()) - {Configuration()}


def test_configurations_of_the_user_go_first(laboratory: Laboratory) -> None:
    mine = Configuration({"NOTHING": "7"})
    laboratory.plan = replace(laboratory.plan, first=(mine,))
    laboratory.run()
    tried = [r.configuration for r in laboratory.benchmark.runs if len(r.configuration)]
    assert tried[0] == mine


def test_no_configuration_is_searched_twice_before_the_finalists(
    stored: Laboratory, store: Store
) -> None:
    stored.plan = replace(stored.plan, budget=Budget(60, 2, 2, trials=100))
    stored.run()
    handle = store.open_campaign(record(stored.plan))
    trials = store.trials(handle.id)
    assert len({t.configuration for t in trials}) == len(trials)
    searched = [r.configuration for r in stored.benchmark.runs if r.phase is Phase.SEARCH]
    assert len({one for one in searched if not one.is_default}) == 100


def test_a_finished_campaign_makes_no_further_run(laboratory: Laboratory) -> None:
    first = laboratory.run()
    count = len(laboratory.benchmark.runs)
    second = laboratory.run()
    assert len(laboratory.benchmark.runs) == count
    assert [p.configuration for p in second.profiles] == [p.configuration for p in first.profiles]


def test_a_default_that_never_works_ends_the_campaign(laboratory: Laboratory) -> None:
    def fails(request: object, limit: float) -> object:
        result = SyntheticBenchmark.measure(laboratory.benchmark, request, limit)  # type: ignore[arg-type]  # passed through untouched
        return replace(result, outcome=Outcome.CRASHED, measurements=(), detail="boom")

    laboratory.benchmark.measure = fails  # type: ignore[method-assign,assignment]  # for this test
    with pytest.raises(EnvironmentFault, match="default configuration failed three times"):
        laboratory.run()


def test_more_ranks_than_cores_yield_no_profile(laboratory: Laboratory) -> None:
    def oversubscribed(request: object, limit: float) -> object:
        result = SyntheticBenchmark.measure(laboratory.benchmark, request, limit)  # type: ignore[arg-type]  # passed through untouched
        return replace(result, oversubscribed=True)

    laboratory.benchmark.measure = oversubscribed  # type: ignore[method-assign,assignment]  # for this test
    report = laboratory.run()
    assert report.oversubscribed
    assert report.profiles == ()


def test_guard_operations_are_measured_under_the_winners(laboratory: Laboratory) -> None:
    laboratory.plan = replace(laboratory.plan, guards=(Operation.BROADCAST,))
    report = laboratory.run()
    faster = [p for p in report.profiles if p.verdict is Verdict.FASTER]
    assert faster
    for profile in faster:
        assert {p.operation for p in profile.guards} == {"broadcast"}
        assert {p.bytes for p in profile.guards} == set(SIZES)
