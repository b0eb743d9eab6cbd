"""Verification of profiles over a made-up machine, with the real store."""

from __future__ import annotations

import itertools
import math
import re
import time
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
from held_campaigns import hold
from made_up_spaces import made_up_space
from quiet import QuietReporter
from stated_profiles import PROFILE, SIZES, TUNED
from stores import opened_store
from synthetic import SyntheticBenchmark, Truth, VirtualClock

from commtune.app.measure.past_verifications import (
    measure_session_spread,
    read_verifications,
)
from commtune.app.measure.verification import _add_profile_sizes
from commtune.campaign.plan import Budget, Plan
from commtune.db.connection.engine import Database
from commtune.db.queries.listing import list_canaries
from commtune.db.storage.store import Store
from commtune.model import (
    DEFAULT,
    SESSION_SPREAD,
    Configuration,
    Operation,
    Outcome,
    Phase,
    Profile,
    RunRequest,
    RunResult,
    VerificationVerdict,
    Workload,
)
from commtune.spaces.space import Space
from commtune.tuner.campaign import Campaign, CampaignResult
from commtune.tuner.execution.runner import Runner
from commtune.tuner.execution.session import Session
from commtune.tuner.statistics.evidence import Evidence
from commtune.tuner.statistics.session_spread import SessionSpread
from commtune.tuner.verification.claims import Claim
from commtune.tuner.verification.phase import EARLIER, Verification, VerifyPhase

SPACE = Space("made-up", "1", "made-up", ())


def gains(*by_size: float) -> Truth:
    """A machine on which TUNED is so many times as fast, by size."""

    def truth(configuration: Configuration, size: int) -> float:
        gain = dict(zip(SIZES, by_size, strict=True))[size] if configuration == TUNED else 1.0
        return (1e-6 + size / 5e9) / gain

    return truth


@dataclass
class Laboratory:
    """A campaign in a real database, and the machine of today."""

    database: Database
    today: SyntheticBenchmark
    plan: Plan

    def session(self) -> Session:
        store = Store(self.database)
        campaign_id = hold(store, self.plan)
        runner = Runner(self.plan, campaign_id, self.today, store, clock=self.today.clock)
        runner.recover()
        runner.load()
        return Session(self.plan, runner, QuietReporter())

    def phase(self, time_s: float = 20.0, stated: Profile = PROFILE) -> VerifyPhase:
        session = self.session()
        return VerifyPhase(
            session, Claim.of_profile(stated, SIZES), session.runner.evidence, time_s
        )

    def verify(self, time_s: float = 20.0, stated: Profile = PROFILE) -> Verification:
        phase = self.phase(time_s, stated)
        found = phase.run()
        record = phase.make_record(stated.name, found.finding, time.time())
        store = Store(self.database)
        store.add_verification(hold(store, self.plan), record)
        return found

    def becomes(self, truth: Truth, **changes: object) -> Laboratory:
        """Another day on the same machine."""
        self.today = replace(self.today, truth=truth, seed=self.today.seed + 1, **changes)  # type: ignore[arg-type]  # fields of the dataclass
        return self


@pytest.fixture
def laboratory(store: Store) -> Laboratory:
    plan = Plan("test", SPACE, Workload(Operation.ALLREDUCE, SIZES))
    return Laboratory(store.database, SyntheticBenchmark(gains(1, 1.3, 1.3), VirtualClock()), plan)


# Whole verifications


@pytest.mark.parametrize(
    ("truth", "finding"),
    [
        (gains(1, 1.3, 1.3), VerificationVerdict.HOLDS),
        (gains(1, 1.1, 1.1), VerificationVerdict.WEAKER),
        (gains(1, 1.3, 1.1), VerificationVerdict.WEAKER),
        (gains(1, 1.0, 1.0), VerificationVerdict.GONE),
        (gains(1, 0.8, 0.8), VerificationVerdict.WORSE),
        (gains(1, 1.3, 0.8), VerificationVerdict.WORSE),
        (gains(0.8, 1.3, 1.3), VerificationVerdict.WORSE),
    ],
    ids=["stays", "shrinks", "shrinks at one size", "vanishes", "turns", "turns at one size",
         "begins to harm"],
)  # fmt: skip
def test_what_became_of_a_gain_is_found(
    laboratory: Laboratory, truth: Truth, finding: VerificationVerdict
) -> None:
    verification = laboratory.becomes(truth, noise=0.02).verify(40.0)
    assert verification.finding is finding, verification.sizes
    assert verification.blocks <= 100  # of 0.4 s each


def test_a_gain_that_holds_with_slow_runs_says_so(laboratory: Laboratory) -> None:
    turns, usual = itertools.cycle([1] * 15 + [10] * len(SIZES)), gains(1, 1.3, 1.3)

    def truth(configuration: Configuration, size: int) -> float:
        return usual(configuration, size) * (next(turns) if configuration == TUNED else 1)

    number = laboratory.session().runner.campaign_id
    Store(laboratory.database).save_profiles(number, [PROFILE])
    assert laboratory.verify(10.0).slow_runs == ""
    verification = laboratory.becomes(truth, noise=0.02).verify(40.0)
    assert verification.finding is VerificationVerdict.HOLDS
    said = r"more slow runs than with the default at .*; at .*, \d+ of \d+ took over 1.5 times"
    assert re.match(said, verification.slow_runs)
    read = read_verifications("1", laboratory.database.whole_url)
    assert [one.slow_runs for one in read] == ["", verification.slow_runs]


def test_past_verifications_are_read_from_their_runs(
    laboratory: Laboratory,
) -> None:
    db = laboratory.database.whole_url
    number = laboratory.session().runner.campaign_id
    Store(laboratory.database).save_profiles(number, [PROFILE])
    assert read_verifications("1", db) == []
    days = [gains(1, 1.3, 1.3), gains(1, 1.0, 1.0)]
    said = [laboratory.becomes(truth, noise=0.02).verify(40.0) for truth in days]
    read = read_verifications("1", db)
    assert [one.record.finding for one in read] == [one.finding for one in said]
    assert [one.blocks for one in read] == [one.blocks for one in said]
    assert read[0].began_at < read[1].began_at and read[0].campaign == "test"
    stated = Claim.of_profile(PROFILE, SIZES).stated
    assert [one.estimates.keys() for one in read] == [stated.keys()] * 2
    for again, then in zip(read, said, strict=True):
        for point, printed in zip(again.points, then.points, strict=True):
            assert point.gain == printed.gain


def test_later_sessions_tell_how_much_speedups_differ_on_a_system(laboratory: Laboratory) -> None:
    db = laboratory.database.whole_url
    report = tuned(laboratory)
    with laboratory.database.read() as connection:
        (system,) = connection.exec_driver_sql("SELECT fingerprint FROM systems").scalars()
    assert measure_session_spread(system, db) == SessionSpread()
    stated = next(p for p in report.profiles if not p.configuration.is_default)
    laboratory.becomes(gains(1, 1.6, 1.6)).verify(40.0, stated)
    assert measure_session_spread(system, db) == SessionSpread()  # within the hour
    with laboratory.database.write() as connection:
        connection.exec_driver_sql(
            "UPDATE runs SET started_at = started_at + 7200 WHERE phase = 'verify'"
        )
    found = measure_session_spread(system, db)
    assert found.sessions == 1
    # The log gain moved from 0.26 to 0.47, and the assumed spread counts as five sessions.
    moved = math.log(1.6 / 1.3) / math.sqrt(2) / (math.log(1.6 * 1.3) / 2)
    expected = math.sqrt((5 * SESSION_SPREAD**2 + moved**2) / 6)
    assert found.share == pytest.approx(expected, rel=0.1)
    assert measure_session_spread("another", db) == SessionSpread()


def test_canaries_are_those_of_the_evidence(laboratory: Laboratory) -> None:
    laboratory.verify()
    number = laboratory.session().runner.campaign_id
    # Of the search, one of them made again, and one of another whose second run was cut short.
    with laboratory.database.write() as connection:
        connection.exec_driver_sql("UPDATE runs SET phase = 'search' WHERE id <= 12")
        connection.exec_driver_sql("UPDATE runs SET block = 1, position = 0 WHERE id IN (2, 3)")
        connection.exec_driver_sql("UPDATE runs SET block = 2, position = 0 WHERE id IN (4, 5)")
        connection.exec_driver_sql("UPDATE runs SET outcome = 'interrupted' WHERE id = 5")
    evidence = Evidence.of_runs(Store(laboratory.database).runs(number))
    known = list(evidence.good(*EARLIER))
    listed = partial(list_canaries, laboratory.database.whole_url, number, EARLIER)
    assert sorted(listed(1000)) == sorted(evidence.canaries(*EARLIER)) != []
    assert (
        len(listed(len(known) // 2))
        < len(listed(1000))
        < len([m for run in evidence.runs for m in run.measurements])
    )


@pytest.mark.slow
def test_what_the_looks_may_get_wrong_together(laboratory: Laboratory, tmp_path: Path) -> None:
    """A gain that stays is called anything else, and one that vanished holds, in few of 40."""
    said: Counter[tuple[float, VerificationVerdict]] = Counter()
    for seed in range(40):
        truth = 1.3 if seed % 2 else 1.0
        with opened_store(tmp_path / f"{seed}.db") as store:
            machine = SyntheticBenchmark(
                gains(1, truth, truth),
                VirtualClock(),
                seed=seed,
                noise=0.08,
                slow_share=0.3 if seed % 3 == 0 else 0.0,
            )
            plan = replace(laboratory.plan, seed=seed)
            said[truth, Laboratory(store.database, machine, plan).verify(16.0).finding] += 1
    wrong_of_true = {
        VerificationVerdict.WEAKER,
        VerificationVerdict.GONE,
        VerificationVerdict.WORSE,
    }
    wrong_of_gone = {
        VerificationVerdict.HOLDS,
        VerificationVerdict.WEAKER,
        VerificationVerdict.WORSE,
    }
    # At most 5 % each: 4 or more of 20 happen once in 60 such tests.
    assert sum(said[1.3, finding] for finding in wrong_of_true) < 4, said
    assert sum(said[1.0, finding] for finding in wrong_of_gone) < 4, said
    assert said[1.3, VerificationVerdict.HOLDS] >= 15, said


def test_blocks_are_planned_stored_and_kept_apart_by_day(laboratory: Laboratory) -> None:
    first = laboratory.verify()
    runs = len(laboratory.today.runs)
    second = laboratory.becomes(gains(1, 0.8, 0.8)).verify()
    assert (first.finding, second.finding) == (
        VerificationVerdict.HOLDS,
        VerificationVerdict.WORSE,
    )
    store = Store(laboratory.database)
    campaign_id = laboratory.session().runner.campaign_id
    stored = list(store.runs(campaign_id))
    assert {run.phase for run in stored} == {Phase.VERIFY}
    assert len(stored) == runs + len(laboratory.today.runs) - runs
    plans = {plan.number: plan for plan in store.blocks(campaign_id)}
    assert {run.block for run in stored} == set(plans)
    assert len(plans) == first.blocks + second.blocks
    orders = {plan.order for plan in plans.values()}
    assert orders == {(DEFAULT, TUNED), (TUNED, DEFAULT)}


def test_a_clear_answer_ends_early_and_an_unclear_one_uses_the_time(
    laboratory: Laboratory,
) -> None:
    clear = laboratory.verify(40.0)
    assert clear.stopped == "clear"
    assert clear.blocks < 90  # 100 fit
    noisy = laboratory.becomes(gains(1, 1.03, 1.03), noise=0.3).verify(40.0)
    assert (noisy.stopped, noisy.finding) == ("time", VerificationVerdict.UNDECIDED)
    assert noisy.blocks >= 0.9 * noisy.planned
    assert noisy.more is None or noisy.more > 0


def test_the_time_holds_on_a_machine_that_became_slow(laboratory: Laboratory) -> None:
    laboratory.verify(20.0)
    started = laboratory.today.clock.now
    slow = laboratory.becomes(gains(1, 1.3, 1.3), run_s=1.0, noise=0.4).verify(20.0)
    assert laboratory.today.clock.now - started <= 20.0 + 2.0
    assert slow.blocks < slow.planned


def test_settings_that_do_not_work_any_more_are_worse(laboratory: Laboratory) -> None:
    broken = {("BUFFER", "65536"): Outcome.CRASHED}
    verification = laboratory.becomes(gains(1, 1.3, 1.3), outcomes=broken).verify()
    assert verification.finding is VerificationVerdict.WORSE
    assert verification.stopped == "failing"
    assert verification.failures == {Outcome.CRASHED: 3}


def test_lost_runs_are_no_failures(laboratory: Laboratory) -> None:
    lost = {("BUFFER", "65536"): Outcome.NODE_FAILURE}
    found = laboratory.becomes(gains(1, 1.3, 1.3), outcomes=lost).verify()
    assert (found.finding, found.stopped) == (VerificationVerdict.UNDECIDED, "time")
    assert (found.failures, found.detail, found.blocks) == ({}, "", 0)
    assert set(found.lost) == {Outcome.NODE_FAILURE}
    measure = laboratory.becomes(gains(1, 1.3, 1.3), outcomes={}).today.measure

    def now_and_then(request: RunRequest, limit: float) -> RunResult:
        result = measure(request, limit)
        is_lost = len(laboratory.today.runs) % 7 == 0
        return replace(result, outcome=Outcome.PREEMPTED, measurements=()) if is_lost else result

    laboratory.today.measure = now_and_then  # type: ignore[method-assign,assignment]  # for this test
    found = laboratory.verify()
    assert (found.finding, found.failures) == (VerificationVerdict.HOLDS, {})
    assert found.lost[Outcome.PREEMPTED] > 2


def test_interrupted_it_says_what_is_known_and_keeps_it(laboratory: Laboratory) -> None:
    measure = laboratory.today.measure

    def interrupted(request: object, limit: float) -> RunResult:
        if len(laboratory.today.runs) == 25:
            raise KeyboardInterrupt
        return measure(request, limit)  # type: ignore[arg-type]  # passed through untouched

    laboratory.today.measure = interrupted  # type: ignore[method-assign,assignment]  # for this test
    verification = laboratory.verify(100.0)
    assert (verification.stopped, verification.blocks) == ("interrupted", 12)
    assert verification.finding is VerificationVerdict.HOLDS
    store = Store(laboratory.database)
    stored = list(store.runs(laboratory.session().runner.campaign_id))
    assert Counter(run.outcome for run in stored) == {Outcome.OK: 25, Outcome.INTERRUPTED: 1}


def test_interrupted_before_its_first_block_it_is_no_verification(laboratory: Laboratory) -> None:
    def interrupted(request: object, limit: float) -> RunResult:
        del request, limit
        raise KeyboardInterrupt

    laboratory.today.measure = interrupted  # type: ignore[method-assign,assignment]  # for this test
    verification = laboratory.phase().run()
    assert (verification.stopped, verification.blocks) == ("interrupted", 0)
    assert not verification.has_result


def test_more_ranks_than_cores_say_nothing(laboratory: Laboratory) -> None:
    measure = laboratory.today.measure

    def oversubscribed(request: object, limit: float) -> RunResult:
        return replace(measure(request, limit), oversubscribed=True)  # type: ignore[arg-type]  # passed through

    laboratory.today.measure = oversubscribed  # type: ignore[method-assign,assignment]  # for this test
    verification = laboratory.verify()
    assert verification.oversubscribed
    assert verification.finding is VerificationVerdict.UNDECIDED


# With a whole campaign before


def tuned(laboratory: Laboratory) -> CampaignResult:
    """Tunes over the made-up machine: one variable, two values."""
    space = made_up_space("""
  - {name: BUFFER, kind: choice, values: ["1024", "65536"], source: test}
  - {name: NOTHING, kind: bool, source: test}
""")
    laboratory.plan = replace(laboratory.plan, space=space, budget=Budget(10, 5, 10))
    session = laboratory.session()
    return Campaign(session.plan, session.runner, session.reporter).run()


def test_what_a_campaign_recommends_is_verified_and_its_course_stays(
    laboratory: Laboratory,
) -> None:
    laboratory.today.slow_share = 0.4
    report = tuned(laboratory)
    recommended = [p for p in report.profiles if not p.configuration.is_default]
    assert recommended
    for stated in recommended:
        assert laboratory.verify(40.0, stated).finding is VerificationVerdict.HOLDS
    count = len(laboratory.today.runs)
    again = tuned(laboratory)
    assert len(laboratory.today.runs) == count
    assert [p.configuration for p in again.profiles] == [p.configuration for p in report.profiles]


def test_speeds_of_the_campaign_tell_the_speed_of_a_short_day(laboratory: Laboratory) -> None:
    laboratory.today.slow_share = 0.4
    report = tuned(laboratory)
    stated = next(p for p in report.profiles if not p.configuration.is_default)
    slow = laboratory.becomes(gains(1, 1.3, 1.3), slow_share=1.0).verify(8.0, stated)
    assert {p.speed for p in slow.points} == {"all", "slow"}
    assert slow.now == {"fast": 0.0, "slow": 1.0}
    assert 0.2 < slow.then["slow"] < 0.6
    assert slow.finding is VerificationVerdict.HOLDS


def test_known_evidence_may_be_another_campaigns(laboratory: Laboratory) -> None:
    tuned(laboratory)
    known: Evidence = laboratory.session().runner.evidence
    laboratory.plan = replace(laboratory.plan, name="another")
    session = laboratory.session()
    phase = VerifyPhase(session, Claim.of_profile(PROFILE, SIZES), known, 8.0)
    assert phase.planned_at_first == 20
    assert phase.run().finding is VerificationVerdict.HOLDS
    assert {run.phase for run in session.runner.evidence.runs} == {Phase.VERIFY}


def test_sizes_between_those_of_the_campaign_are_verified_too(laboratory: Laboratory) -> None:
    odd = replace(PROFILE.points[-1], bytes=SIZES[-1] - 4)
    plan = _add_profile_sizes(laboratory.plan, replace(PROFILE, points=(*PROFILE.points, odd)))
    assert set(plan.workload.sizes) == {*SIZES, SIZES[-1] - 4}
