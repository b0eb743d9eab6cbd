"""Runs during which others used the cores: made again, a bounded number of times, and told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import cycle

import pytest
from held_campaigns import hold
from made_up_spaces import made_up_space
from quiet import QuietReporter
from synthetic import SyntheticBenchmark, VirtualClock

from commtune.campaign.plan import Budget, Plan
from commtune.db.storage.store import Store
from commtune.model import DEFAULT, Configuration, Operation, Outcome, Phase, Workload
from commtune.tuner.campaign import Campaign
from commtune.tuner.execution.dispatch import Dispatch, repeat_blocks
from commtune.tuner.execution.in_memory_store import InMemoryStore
from commtune.tuner.execution.runner import Runner
from commtune.tuner.execution.session import Session, Timer
from commtune.tuner.outcome.conclusion import _time_spent
from commtune.tuner.statistics.blocks import whole_blocks
from commtune.tuner.statistics.evidence import _DISTURBED, Evidence

SPACE = made_up_space("""
  - {name: V, kind: integer, range: [1, 9], source: made up}
  - {name: W, kind: integer, range: [1, 9], source: made up}
""")
A = Configuration({"V": "1"})
PLAN = Plan(
    "disturbed",
    SPACE,
    Workload(Operation.ALLREDUCE, (1024,)),
    budget=Budget(20, 5, 8),
)
LOUD, CALM = 0.8, 0.01


def loads(*values: float | None) -> Callable[[], float | None]:
    """These loads, one run after the other; calm after them."""
    left = list(values)
    return lambda: left.pop(0) if left else CALM


@dataclass
class Room:
    """A session over a store in memory, on a machine with others on it."""

    session: Session
    benchmark: SyntheticBenchmark
    store: InMemoryStore
    reporter: QuietReporter

    @property
    def evidence(self) -> Evidence:
        return self.session.runner.evidence

    def run(self, *order: Configuration, phase: Phase = Phase.SEARCH) -> None:
        """One block of these, by default of A alone."""
        timer = Timer(self.session.runner, 100.0, phase)
        wanted = repeat_blocks(1, lambda: order or (A,))
        Dispatch(self.session, wanted, phase, timer).run()


def room(load: Callable[[], float | None]) -> Room:
    benchmark = SyntheticBenchmark(lambda *_: 1e-6, VirtualClock(), load=load)
    store, reporter = InMemoryStore("1"), QuietReporter()
    runner = Runner(PLAN, 1, benchmark, store, clock=benchmark.clock)
    for configuration in (DEFAULT, A):
        runner.new_trial(configuration, "test")
    return Room(Session(PLAN, runner, reporter), benchmark, store, reporter)


@pytest.mark.parametrize(
    ("loads_seen", "made"),
    [
        ((CALM,), 1),
        ((None,), 1),
        ((_DISTURBED,), 1),
        ((LOUD,), 2),
        ((LOUD, LOUD), 3),
        ((LOUD, LOUD, LOUD, LOUD), 3),
    ],
)
def test_a_disturbed_run_is_made_again_at_most_twice(
    loads_seen: tuple[float | None, ...], made: int
) -> None:
    found = room(loads(*loads_seen))
    found.run()
    assert len(found.store.stored) == made
    assert {(r.block, r.position) for r in found.store.stored} == {(0, 0)}
    # All are stored, and the last one is the evidence, disturbed or not.
    (good,) = found.evidence.good(Phase.SEARCH)
    assert good.run_id == found.store.stored[-1].run_id


def test_each_run_of_a_block_is_made_again_before_the_next() -> None:
    found = room(loads(CALM, LOUD, CALM, CALM))
    session = found.session
    found.run(A, DEFAULT, phase=Phase.CONFIRM)
    assert [r.position for r in found.store.stored] == [0, 1, 1]
    (members,) = whole_blocks(found.evidence.runs, session.runner.plans)
    assert members[DEFAULT].run_id == found.store.stored[-1].run_id
    assert members[DEFAULT].other_load == CALM


def test_a_failed_run_is_not_made_again_for_its_load() -> None:
    found = room(loads(LOUD))
    found.benchmark.outcomes = {("V", "1"): Outcome.CRASHED}
    found.run()
    assert [r.outcome for r in found.store.stored] == [Outcome.CRASHED]


def test_a_run_made_again_that_fails_leaves_no_evidence() -> None:
    """Whether the first time counts must not depend on how the second ended."""
    found = room(loads(LOUD))
    first = found.benchmark.measure

    def fails_then(request: object, limit: float) -> object:
        result = first(request, limit)  # type: ignore[arg-type]  # passed through untouched
        found.benchmark.outcomes = {("V", "1"): Outcome.CRASHED}
        return result

    found.benchmark.measure = fails_then  # type: ignore[method-assign,assignment]  # for this test
    found.run()
    assert [r.outcome for r in found.store.stored] == [Outcome.OK, Outcome.CRASHED]
    assert list(found.evidence.good(Phase.SEARCH)) == []


def test_a_run_made_again_that_was_cut_short_changes_nothing() -> None:
    """A kill is no measurement: the time before it counts, in blocks and elsewhere."""
    found = room(loads(LOUD))
    found.run()
    first, second = found.store.stored
    evidence = Evidence()
    evidence.add(first)
    evidence.add(replace(second, outcome=Outcome.INTERRUPTED))
    assert [r.run_id for r in evidence.good(Phase.SEARCH)] == [first.run_id]
    assert evidence.rerun_count == 0


def test_the_load_decides_and_never_the_time() -> None:
    """A slow run is kept and a fast one made again, if that is where others were."""
    found = room(loads(CALM, LOUD, CALM))
    times = iter([9.0, 0.1, 1.0])
    found.benchmark.truth = lambda *_: next(times)
    found.benchmark.noise = 0.0
    found.run()
    found.run()
    medians = [r.measurements[0].time_s for r in found.evidence.good(Phase.SEARCH)]
    assert medians == [9.0, 1.0]


def test_on_a_machine_that_is_never_calm_the_total_is_bounded() -> None:
    found = room(lambda: LOUD)
    for _ in range(200):
        found.run()
    again = len(found.store.stored) - 200
    # Ten, and a tenth of all runs, these among them.
    assert 10 <= again <= 10 + 0.1 * len(found.store.stored) + 1
    assert len(list(found.evidence.good(Phase.SEARCH))) == 200


def test_a_new_session_does_not_begin_the_count_anew() -> None:
    """Else a campaign that is resumed often would spend its time on repeats."""
    found = room(lambda: LOUD)
    sessions = 10
    for _ in range(sessions):
        runner = Runner(PLAN, 1, found.benchmark, found.store, clock=found.benchmark.clock)
        runner.load()
        found.session = Session(PLAN, runner, found.reporter)
        for _ in range(5):
            found.run()
    again = len(found.store.stored) - 5 * sessions
    assert again <= 10 + 0.1 * len(found.store.stored) + 1


def test_the_user_is_told_a_few_times() -> None:
    found = room(lambda: LOUD)
    for _ in range(200):
        found.run()
    assert len(found.reporter.said) == 3
    assert all("background load used 80% of the cores" in line for line in found.reporter.said)
    assert "further ones are only counted" in found.reporter.said[-1]


def test_what_is_spent_counts_the_disturbed() -> None:
    found = room(loads(LOUD, CALM, CALM, LOUD, LOUD, LOUD))
    for _ in range(3):
        found.run()
    said = _time_spent(found.evidence)["search"]
    assert (said.runs, said.disturbed, said.failed) == (6, 4, 0)
    assert said.wall_s == pytest.approx(6 * 0.2)


def test_a_whole_campaign_among_others_stores_all_and_counts_each_once(store: Store) -> None:
    campaign_id = hold(store, PLAN)
    pattern = cycle([CALM] * 9 + [LOUD])
    benchmark = SyntheticBenchmark(lambda *_: 1e-6, VirtualClock(), load=lambda: next(pattern))
    runner = Runner(PLAN, campaign_id, benchmark, store, clock=benchmark.clock)
    report = Campaign(PLAN, runner, QuietReporter()).run()

    stored = list(store.runs(campaign_id))
    loud = [r for r in stored if r.other_load == LOUD]
    assert len(stored) == report.runs
    assert len(loud) == sum(phase.disturbed for phase in report.conclusion.spent.values())
    assert len(loud) > 10
    places = {(r.block, r.position) for r in stored}
    assert len(stored) - len(places) == pytest.approx(len(loud), abs=1)
    # What a later session reads from the store counts the same runs.
    again = Evidence()
    for run in stored:
        again.add(run)
    good = {r.run_id for r in again.good(*Phase)}
    assert good == {r.run_id for r in runner.evidence.good(*Phase)}
    assert len(good) == len(places)
    assert not good & {r.run_id for r in loud[:-1]}
