"""What a campaign came to, as plain data: JSON for every kind of campaign, and numbers by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from held_campaigns import hold
from made_up_runs import block, made_up_run, sizes
from made_up_spaces import made_up_space
from quiet import QuietReporter
from synthetic import SyntheticBenchmark, VirtualClock

from commtune.campaign.plan import Budget, Plan
from commtune.db.codec import dump_model
from commtune.db.storage.store import Store
from commtune.formatting import describe_conditions
from commtune.model import (
    DEFAULT,
    Configuration,
    Estimand,
    Execution,
    Followed,
    Operation,
    Outcome,
    Phase,
    PointEvidence,
    Run,
    RunResult,
    Verdict,
    Workload,
)
from commtune.model.conclusion import CONFIRMATION_SHARES, Decision, Look, error_share
from commtune.tuner.campaign import Campaign, CampaignResult
from commtune.tuner.confirmation.comparison import Compared, Rules, compare_candidate
from commtune.tuner.execution.in_memory_store import InMemoryStore
from commtune.tuner.execution.runner import Runner
from commtune.tuner.outcome.conclusion import (
    _default_noise,
    _more_runs,
    detectable_gains,
    draw_conclusion,
)
from commtune.tuner.outcome.detectability import UNINFORMATIVE_GAIN
from commtune.tuner.outcome.profiles import ProfileMaker
from commtune.tuner.ports import Store as StorePort
from commtune.tuner.statistics.blocks import Blocks
from commtune.tuner.statistics.evidence import Evidence
from commtune.tuner.statistics.intervals import Estimate, interval_of_ratio
from commtune.tuner.statistics.machine_states import MachineStates
from commtune.tuner.statistics.power import detectable_gain

SPACE = made_up_space("""
  - {name: V, kind: integer, values: [1, 2, 3], source: made up}
  - {name: W, kind: integer, values: [1, 2, 3], source: made up}
""")
A = Configuration({"V": "1"})
B = Configuration({"V": "2"})
RULES = Rules(0.95, 0.02, 0.05, 1)
PLAN = Plan(
    "conclusions",
    SPACE,
    Workload(Operation.ALLREDUCE, (8, 65536)),
    budget=Budget(8, 3, 4),
)


def benchmark(gain: float = 1.5, noise: float = 0.03) -> SyntheticBenchmark:
    """V=2 makes large messages faster."""

    def truth(configuration: Configuration, size: int) -> float:
        faster = gain if size > 8 and configuration.get("V") == "2" else 1.0
        return (1e-6 + size / 5e9) / faster

    return SyntheticBenchmark(truth, VirtualClock(), noise=noise)


def campaign(
    plan: Plan = PLAN,
    made: SyntheticBenchmark | None = None,
    store: StorePort | None = None,
    id: int = 1,
) -> CampaignResult:
    chosen = made or benchmark()
    runner = Runner(plan, id, chosen, store or InMemoryStore(str(plan.seed)), clock=chosen.clock)
    return Campaign(plan, runner, QuietReporter()).run()


def failing() -> SyntheticBenchmark:
    made = benchmark()
    made.outcomes = {(n, v): Outcome.CRASHED for n in "VW" for v in "123"}
    return made


def oversubscribed() -> SyntheticBenchmark:
    made = benchmark()
    measure = made.measure

    def too_many(request: Any, limit: float) -> RunResult:
        return replace(measure(request, limit), oversubscribed=True)

    made.measure = too_many  # type: ignore[method-assign,assignment]  # for this test
    return made


def two_speeds() -> SyntheticBenchmark:
    made = benchmark()
    made.slow_share = 0.03  # so rare that it gets a pair or none
    return made


_KINDS: Mapping[str, tuple[Plan, Callable[[], SyntheticBenchmark]]] = {
    "a gain": (PLAN, benchmark),
    "nothing": (PLAN, lambda: benchmark(1.0)),
    "no candidates": (replace(PLAN, budget=Budget(0.5, 0.5, 0.5)), lambda: benchmark(1.0)),
    "all failed": (PLAN, failing),
    "oversubscribed": (PLAN, oversubscribed),
    "one size": (replace(PLAN, workload=Workload(Operation.ALLREDUCE, (8,))), benchmark),
    "hardly any time": (replace(PLAN, budget=Budget(2, 0.1, 0.1)), benchmark),
    "no time at all": (replace(PLAN, budget=Budget(0, 0, 0)), benchmark),
    "wild": (PLAN, lambda: benchmark(1.5, noise=3.0)),
    "rare speed": (PLAN, two_speeds),
    "messages": (replace(PLAN, messages={0: 3.0, 100: 1.0}), benchmark),
    "without noise": (PLAN, lambda: benchmark(1.5, noise=0.0)),
}


@pytest.mark.parametrize("kind", list(_KINDS))
def test_every_conclusion_is_json(kind: str) -> None:
    plan, made = _KINDS[kind]
    report = campaign(plan, made())
    found = dump_model(report.conclusion)
    text = json.dumps(found, allow_nan=False)
    assert json.loads(text) == found, "keys and values come back as they were"
    assert found["version"] == 1
    assert (
        found["method"].items() >= {"level": 0.95, "minimum_gain": 0.02, "tolerance": 0.05}.items()
    )
    assert sum(phase["runs"] for phase in found["spent"].values()) == report.runs
    if kind in ("all failed", "oversubscribed", "no time at all"):
        assert found["confirmed"] == found["ablations"] == []
        assert found["answers"]["one"] is None
        assert found["more"] is None
        (only,) = found["answers"]["ranges"]
        assert only["configuration"] == {}
    for profile in report.profiles:
        for said in (*profile.contributions, *profile.boundaries):
            json.dumps(dump_model(said), allow_nan=False)


@pytest.mark.parametrize("kind", ["a gain", "rare speed", "hardly any time"])
def test_the_store_gives_it_back_as_it_was(kind: str, store: Store) -> None:
    plan, made = _KINDS[kind]
    campaign_id = hold(store, plan)
    report = campaign(plan, made(), store, campaign_id)
    assert store.conclusion(campaign_id) == report.conclusion
    assert campaign(plan, made(), store, campaign_id).conclusion == report.conclusion


def looked(made: int, planned: int) -> Decision:
    """A decision about one candidate, ended by the budget at its last look."""
    return Decision((A,), planned, 0, 1.0, (Look(made, planned, {0: "budget"}),))


def concluded(
    blocks: Blocks,
    speeds: MachineStates | None = None,
    evidence: Evidence | None = None,
    **more: Any,
) -> dict[str, Any]:
    """The conclusion of one candidate's blocks."""
    compared = compare_candidate(blocks, A, "allreduce", speeds or MachineStates(), RULES)
    comparison = {A: replace(compared, stopped="budget")}
    decision = looked(len(blocks), len(blocks))
    found = draw_conclusion(
        PLAN,
        evidence or Evidence(),
        decision,
        comparison,
        detectable_gains(decision, comparison, RULES),
        rules=RULES,
        run_s=0.5,
        **more,
    )
    return dump_model(found)


def ratios(found: Sequence[float]) -> Blocks:
    return [block({8: 1.0, 65536: 2.0}, {A: {8: 1 / r, 65536: 2 / r}}) for r in found]


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_few_blocks_are_json(count: int) -> None:
    found = concluded(ratios([1.1, 1.3, 1.2, 1.1, 1.3][:count]))
    json.dumps(found, allow_nan=False)
    (candidate,) = found["confirmed"]
    assert candidate["blocks"] == count
    if count == 1:
        point = candidate["points"][0]
        # No interval: its upper end is not known, and that is not a number.
        assert (point["pairs"], point["high"], point["more_pairs"]) == (1, None, None)
        assert point["ratio"] == pytest.approx(1.1)


def test_times_and_ratios_by_hand() -> None:
    found = concluded(ratios([1.2, 1.2, 1.3, 1.3, 1.2, 1.3]))
    (candidate,) = found["confirmed"]
    assert candidate["configuration"] == {"V": "1"}
    assert candidate["stopped"] == "budget"
    large = candidate["points"][1]
    assert (large["bytes"], large["speed"], large["pairs"], large["verdict"]) == (
        65536,
        "all",
        6,
        "faster",
    )
    assert large["ratio"] == pytest.approx(math.sqrt(1.2 * 1.3))
    assert large["default_s"] == pytest.approx(2.0)
    assert found["answers"]["one"]["configuration"] == {"V": "1"}
    assert found["answers"]["one"]["gains"] == {
        "8": pytest.approx(math.sqrt(1.56)),
        "65536": pytest.approx(math.sqrt(1.56)),
    }
    assert found["answers"]["ranges"][0]["low"] == 8
    assert found["answers"]["ranges"][0]["high"] == 65536


def test_what_was_detectable_follows_from_the_noise_of_the_pairs() -> None:
    rules = replace(RULES, spread=0.0)
    # No two are equal, as of equal ones rounding would be a part of the error.
    spread = [(0.02 + 1e-6 * n) * (-1) ** n for n in range(20)]
    blocks = ratios([math.exp(x) for x in spread])
    compared = compare_candidate(blocks, A, "allreduce", MachineStates(), rules)
    comparison = {A: replace(compared, pairs={})}
    found = detectable_gains(looked(20, 20), comparison, rules)
    estimate = compared.estimates[8]
    assert estimate is not None
    expected = detectable_gain(estimate, rules.interval_level, 0.02)
    assert found[8] == pytest.approx(expected)
    # Four times the blocks, half of what is above the minimum.
    more = detectable_gains(looked(20, 80), comparison, rules)
    assert (more[8] - 0.02) / (found[8] - 0.02) == pytest.approx(0.5, abs=0.1)


def test_what_rounding_hides_was_not_detectable() -> None:
    # Always 0.40 and 0.39 us: nothing is known of what is between, however many blocks there are.
    blocks = [block({8: 0.40e-6}, {A: {8: 0.39e-6}}) for _ in range(20)]
    compared = compare_candidate(blocks, A, "allreduce", MachineStates(), RULES)
    point = compared.points[0]
    assert (point.verdict, point.gain.pairs) == (Verdict.UNDECIDED, 20)
    comparison = {A: replace(compared, pairs={})}
    assert (
        detectable_gains(looked(20, 20), comparison, RULES)[8] > 0.02 + 0.005 / 0.4 + 0.005 / 0.4
    )


@pytest.mark.parametrize("slow", [(0.8, 0.01), (0.01, 0.5)])
def test_what_was_detectable_is_of_the_noisiest_that_is_not_ruled_out(
    slow: tuple[float, float],
) -> None:
    made = {}
    for candidate, (ratio, spread) in {A: slow, B: (1.0, 0.1)}.items():
        logs = [(spread + 1e-6 * n) * (-1) ** n for n in range(20)]
        blocks = [block({8: 1.0}, {candidate: {8: 1 / (ratio * math.exp(x))}}) for x in logs]
        one = compare_candidate(blocks, candidate, "allreduce", MachineStates(), RULES)
        made[candidate] = replace(one, pairs={})
    assert [made[c].points[0].verdict for c in (A, B)] == [Verdict.DEFAULT, Verdict.UNDECIDED]
    looks = (Look(20, 20, {0: "budget", 1: "budget"}),)
    found = detectable_gains(Decision((A, B), 20, 0, 1.0, looks), made, RULES)
    open_ = made[B].estimates[8]
    assert open_ is not None
    assert found == {8: detectable_gain(open_, RULES.interval_level, 0.02)}


def test_nothing_was_detectable_where_a_rare_speed_leaves_nearly_no_freedom() -> None:
    estimate = Estimate(0.0, 0.05, 1.0, 20)
    rules = replace(RULES, comparisons=24)
    gain = interval_of_ratio(estimate, rules.interval_level)
    point = PointEvidence("allreduce", 8, "all", 1.0, 1.0, gain, Verdict.UNDECIDED)
    comparison = {A: Compared((point,), {8: estimate}, 0.95)}
    assert gain.high > 1e6
    assert detectable_gains(looked(20, 20), comparison, rules) == {}


@pytest.mark.parametrize(("blocks", "is_stated"), [(19, False), (20, True)])
def test_few_pairs_do_not_tell_what_was_detectable(blocks: int, is_stated: bool) -> None:
    found = concluded(ratios([math.exp((0.02 + 1e-6 * n) * (-1) ** n) for n in range(blocks)]))
    assert bool(found["detectable"]) is is_stated


def test_more_runs_are_asked_for_where_a_gain_is_near() -> None:
    blocks = ratios([1.05 * math.exp(0.06 * (-1) ** n) for n in range(12)])
    comparison = {A: compare_candidate(blocks, A, "allreduce", MachineStates(), RULES)}
    found = _more_runs(looked(12, 12), comparison, RULES, 0.5)
    assert found is not None
    assert found.runs > 0 and found.runs % 2 == 0
    assert found.seconds == pytest.approx(0.5 * found.runs)
    # A further confirmation with so many pairs of the same kind does decide it.
    enough = ratios([1.05 * math.exp(0.06 * (-1) ** n) for n in range(found.runs // 2)])
    last = replace(RULES, share=error_share(1) * CONFIRMATION_SHARES[-1])
    again = compare_candidate(enough, A, "allreduce", MachineStates(), last)
    assert any(str(p.verdict) == "faster" for p in again.points)


def test_no_number_of_runs_is_named_where_nothing_is_known() -> None:
    """Beside the profile's note, which says so, it would be a contradiction."""
    blocks = ratios([0.03, 30.0, 0.05, 40.0, 0.02, 80.0, 50.0])
    comparison = {A: compare_candidate(blocks, A, "allreduce", MachineStates(), RULES)}
    assert comparison[A].points[0].gain.high > 1 + UNINFORMATIVE_GAIN
    assert _more_runs(looked(7, 7), comparison, RULES, 0.5) is None


def evidence_of(runs: Sequence[Run]) -> Evidence:
    found = Evidence()
    for run in runs:
        found.add(run)
    return found


def default_run(number: int, time_s: float, started_at: float = 0.0) -> Run:
    return made_up_run(
        DEFAULT, number, sizes({8: time_s}), started_at=started_at, run_id=str(number)
    )


def test_the_noise_of_the_default_by_hand() -> None:
    runs = [default_run(n, math.exp(x)) for n, x in enumerate((0.1, 0.2, 0.3))]
    (only,) = _default_noise(evidence_of(runs))
    assert (only.bytes, only.speed, only.runs, only.share) == (8, "all", 3, 1.0)
    assert only.spread == pytest.approx(0.1)
    assert only.drift_per_hour is None
    assert _default_noise(evidence_of(runs[:2]))[0].spread is None
    assert _default_noise(Evidence()) == ()


def test_a_drift_by_hand() -> None:
    """10 % an hour over two hours, in spite of a wild run."""
    runs = [default_run(n, math.exp(0.1 * n / 10), started_at=360.0 * n) for n in range(20)]
    runs[3] = default_run(3, 50.0, started_at=360.0 * 3)
    (only,) = _default_noise(evidence_of(runs))
    assert only.drift_per_hour == pytest.approx(0.1, rel=0.15)


def test_guards_and_other_configurations_are_not_the_noise_of_the_default() -> None:
    runs = [default_run(n, 1.0) for n in range(3)]
    runs.append(replace(default_run(3, 9.0), phase=Phase.GUARD))
    runs.append(replace(default_run(4, 9.0), configuration=A))
    runs.append(replace(default_run(5, 9.0), outcome=Outcome.WRONG_RESULT))
    (only,) = _default_noise(evidence_of(runs))
    assert only.runs == 3
    assert only.spread == pytest.approx(0.0)


def test_only_what_was_not_followed_is_named() -> None:
    told = [
        Execution(A, "allreduce", Followed.IGNORED, why="no such variable"),
        Execution(DEFAULT, "allreduce", Followed.EXECUTED),
        Execution(Configuration({"W": "1"}), "allreduce", Followed.UNKNOWN),
    ]
    found = concluded(ratios([1.0] * 6), executions=told, set_aside=[("W", None)])
    assert found["not_followed"] == [
        {"configuration": {"V": "1"}, "followed": "ignored", "why": "no such variable"}
    ]
    assert found["set_aside"] == [["W", None]]


def test_a_default_that_is_disturbed_a_thousandfold_confirms_nothing() -> None:
    """Most runs of the default on an overloaded machine take 10 to 100,000 times longer."""
    blocks = ratios([1.5, 9.0, 40.0, 700.0, 9e3, 8e4, 500.0, 2e3, 60.0, 3e4])
    compared = {A: compare_candidate(blocks, A, "allreduce", MachineStates(), RULES)}
    (point,) = (one for one in compared[A].points if one.bytes == 8)
    assert point.gain.low > 1.02 and point.gain.is_too_noisy
    assert point.verdict is Verdict.UNDECIDED
    plan = replace(PLAN, workload=Workload(Operation.ALLREDUCE, (8,)))
    assert ProfileMaker(plan, compared).list_likely() == []
    (profile,) = ProfileMaker(plan, compared).recommend()
    assert profile.configuration.is_default
    assert "nothing is known at 8 B: too noisy" in profile.note


@pytest.mark.parametrize(
    ("slow", "default_slow", "typical", "mean"),
    [
        (4, 0, Verdict.FASTER, Verdict.UNDECIDED),
        (0, 0, Verdict.FASTER, Verdict.FASTER),
        (0, 12, Verdict.FASTER, Verdict.FASTER),
    ],
)
def test_slow_runs_count_in_the_mean(
    slow: int, default_slow: int, typical: Verdict, mean: Verdict
) -> None:
    """The candidate is 10 % faster in most runs; so many of 24 take three times as long."""
    times = [(1 + 1e-3 * n, (1 + 1e-3 * (n * 7 % 24)) / 1.1) for n in range(24)]
    blocks = [
        block({8: one * (3 if n < default_slow else 1)}, {A: {8: other * (3 if n < slow else 1)}})
        for n, (one, other) in enumerate(times)
    ]
    for estimand, expected in ((Estimand.MEDIAN, typical), (Estimand.MEAN, mean)):
        rules = replace(RULES, estimand=estimand)
        points = compare_candidate(blocks, A, "allreduce", MachineStates(), rules).points
        assert points[0].verdict is expected
    saved = (24 + default_slow * 2) / (24 + slow * 2) * 1.1
    assert points[0].gain.ratio == pytest.approx(saved, rel=0.02)


def test_a_campaign_about_mean_times_says_so() -> None:
    plan = replace(PLAN, estimand=Estimand.MEAN)
    found = [one for one in campaign(plan).profiles if not one.configuration.is_default]
    assert found
    for profile in found:
        assert profile.conditions.estimand == "mean"
        assert profile.note.startswith("faster on average: speedups are of mean times")
        assert describe_conditions(profile.conditions) == "speedups are ratios of mean times"
    assert plan.comparable({}) == {**PLAN.comparable({}), "estimand": "mean"}
