"""The store's contract, over every kind of database."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import database_values as given
import pytest
from database_values import profiles_of
from sqlalchemy import text

from commtune.db.codec import pack_samples, unpack_samples
from commtune.db.lock_owner import LockOwner
from commtune.db.queries.profiles import load_profile
from commtune.db.storage import runs as runs_module
from commtune.db.storage.campaigns import rename_campaign
from commtune.db.storage.store import Store
from commtune.errors import CampaignLocked, DatabaseFault
from commtune.model import (
    DEFAULT,
    FEWEST_PAIRS,
    Configuration,
    Interval,
    Operation,
    Outcome,
    Phase,
    SizeTime,
    SubMeasurement,
    Timing,
    Verdict,
    Workload,
)
from commtune.model.conclusion import Decision


@pytest.fixture
def campaign_id(store: Store) -> int:
    """A campaign with the baseline and one more trial."""
    handle = store.open_campaign(given.campaign())
    store.add_trial(handle.id, 0, DEFAULT, "baseline")
    store.add_trial(handle.id, 1, given.TUNED, "sampler")
    return handle.id


def test_campaigns_draw_their_orders_from_seeds_of_their_own(store: Store) -> None:
    # All have the seed that the search has by default.
    one, other = (store.open_campaign(given.campaign(name)).id for name in ("shm", "net"))
    simulated = store.open_campaign(given.campaign("made-up", simulated=True)).id
    assert store.order_seed(one) != store.order_seed(other)
    assert store.order_seed(simulated) == "7"
    # Neither going on with it nor another name changes that.
    before = store.order_seed(one)
    assert store.open_campaign(given.campaign("shm")).id == one
    with store.database.write() as connection:
        rename_campaign(connection, one, "renamed")
    assert Store(store.database).order_seed(one) == before


def test_what_runs_cost_is_told_part_by_part(store: Store, campaign_id: int) -> None:
    header = {"init_s": 0.05, "library": {"init_s": 0.1}, "rank_info": [{"rank": 0}]}
    footer = {"elapsed_s": 0.5, "measure_s": 0.2}
    good = given.result(header=header, footer=footer, end_s=0.0625, wall_s=0.75)
    without = tuple(replace(m, first_call_s=None) for m in good.measurements)
    results = [
        good,
        replace(good, run_id="r2", end_s=None, measurements=without, header={"init_s": 0.05}),
        replace(good, run_id="r3", header=None, footer=None),
        replace(good, run_id="r4", outcome=Outcome.FAILED),
        # Read from its records by another controller, which saw nothing of its launcher.
        replace(good, run_id="r5", wall_s=0.5, end_s=None),
        replace(good, run_id="guard"),
    ]
    for result in results:
        phase = Phase.GUARD if result.run_id == "guard" else Phase.SEARCH
        store.start_runs(campaign_id, [given.request(result.run_id, phase=phase)], "s1")
        store.finish_run(campaign_id, result, "allreduce")
    found = store.costs(campaign_id)
    assert list(found) == ["r1", "r2"]
    first = found["r1"]
    assert first.launch_s == pytest.approx(0.75 - 0.5 - 0.0625)
    assert first.first_calls_s == pytest.approx(3 * 4e-4)
    assert (first.mpi_init_s, first.library_init_s, first.end_s) == (0.05, 0.1, 0.0625)
    assert first.measuring_s == pytest.approx(0.2 - 3 * 4e-4)
    assert first.rest_s == pytest.approx(0.5 - 0.05 - 0.1 - 0.2)
    second = found["r2"]
    assert (second.launch_s, second.end_s, second.first_calls_s) == (None, None, None)
    assert (second.around_s, second.measuring_s, second.library_init_s) == (0.25, 0.2, 0.0)


def test_costs_of_a_long_campaign_are_those_of_some_of_its_runs(
    store: Store, campaign_id: int
) -> None:
    record = {"init_s": 0.05}, {"elapsed_s": 0.5, "measure_s": 0.2}
    for name in (f"r{number}" for number in range(9)):
        given.add_run(store, campaign_id, name, header=record[0], footer=record[1])
    assert len(store.costs(campaign_id)) == 9
    some = store.costs(campaign_id, most=4)
    assert len(some) == 3 and None not in [one.first_calls_s for one in some.values()]


def test_a_campaign_is_made_once_and_found_by_name(store: Store) -> None:
    first = store.open_campaign(given.campaign())
    second = store.open_campaign(given.campaign())
    other = store.open_campaign(given.campaign("other"))
    assert first.id == second.id != other.id
    assert given.count(store, "systems") == given.count(store, "stacks") == 1
    assert given.count(store, "campaigns") == 2


def test_settings_may_change_with_the_lock(store: Store) -> None:
    first, _ = store.begin(given.campaign())
    changed = given.campaign(settings={"budget": {"wall_s": 600}}, folder="/data/shm")
    store.open_campaign(changed)
    assert given.summaries_of(store)[0].settings == {"budget": {"wall_s": 60}}
    again, reason = store.begin(changed)
    assert (again.id, reason) == (first.id, "")
    (summary,) = given.summaries_of(store)
    assert summary.settings == {"budget": {"wall_s": 600}}
    assert summary.folder == "/data/shm"
    store.touch(again.id)


def test_a_second_controller_changes_nothing(store: Store) -> None:
    holder = LockOwner("node2", "boot-c", 4711, 5, 6)
    handle, _ = store.begin(given.campaign(), holder)
    changed = given.campaign(settings={"budget": {}}, space={"version": 2}, folder="/elsewhere")
    with pytest.raises(CampaignLocked, match="process 4711 on node2"):
        store.begin(changed)
    (summary,) = given.summaries_of(store)
    assert (summary.settings, summary.folder) == (
        {"budget": {"wall_s": 60}},
        "/home/ann/campaigns/shm",
    )
    with store.database.read() as connection:
        assert connection.execute(text("SELECT space_key FROM campaigns")).scalar() == (
            given.campaign().space_key
        )
    store.touch(handle.id)
    assert store.begin(changed, take_over=True)[1] == "it left its lock behind"
    assert given.summaries_of(store)[0].settings == {"budget": {}}


def test_a_trial_is_added_once(store: Store, campaign_id: int) -> None:
    store.add_trial(campaign_id, 1, given.TUNED, "sampler")
    assert len(store.trials(campaign_id)) == len(store.origins(campaign_id)) == 2
    with pytest.raises(DatabaseFault, match="trial 1"):
        store.add_trial(campaign_id, 1, Configuration({"OTHER": "1"}), "sampler")


def test_an_open_run_is_rebuilt_as_it_was_asked_for(store: Store, campaign_id: int) -> None:
    workload = Workload(
        Operation.ALLTOALL, (8, 16), ranks=4, nodes=2, backend="mpi-host", dtype="int32"
    )
    asked = given.request(
        "r2",
        workload=workload,
        timing=Timing(min_samples=3, relative_ci=0.5),
        phase=Phase.GUARD,
        configuration=DEFAULT,
        trial=0,
    )
    store.start_runs(campaign_id, [given.request("r1")], "s1")
    store.start_runs(campaign_id, [asked], "s1")
    store.start_runs(campaign_id, [asked], "s1")
    assert store.open_runs(campaign_id) == [given.request("r1"), asked]
    assert list(store.runs(campaign_id)) == []


def test_a_run_needs_its_trial(store: Store, campaign_id: int) -> None:
    with pytest.raises(DatabaseFault, match="unknown trial 9"):
        store.start_runs(campaign_id, [given.request(trial=9)], "s1")
    assert given.count(store, "runs") == 0


def test_measurements_come_back_as_they_were(store: Store, campaign_id: int) -> None:
    given.add_run(store, campaign_id)
    (run,), wanted = store.runs(campaign_id), given.result().measurements
    assert [replace(one, operation="") for one in run.measurements] == [*map(SizeTime.of, wanted)]
    given.check_measurements(store, "r1", wanted)


def test_a_campaign_about_95th_percentiles_reads_those(store: Store) -> None:
    what = {**given.campaign().what, "timing": {"warmup": 5, "percentile": 95}}
    campaign_id = store.open_campaign(given.campaign(what=what)).id
    store.add_trial(campaign_id, 1, given.TUNED, "sampler")
    given.add_run(store, campaign_id)
    (run,), wanted = store.runs(campaign_id), given.result().measurements
    assert [replace(one, operation="") for one in run.measurements] == [
        SizeTime.of(one, 95) for one in wanted
    ]
    _, times = store.timed_runs(campaign_id)
    assert [*times.time_s] == [m.p95_s for m in wanted]


def test_samples_keep_seven_digits_from_nanoseconds_to_hours() -> None:
    values = [1.2345678e-9, 2.5e-6, 3600.125, 0.0]
    assert unpack_samples(pack_samples(values)) == pytest.approx(values, rel=1e-7)
    assert unpack_samples(pack_samples([])) == ()
    assert len(pack_samples([1.25e-6] * 200)) < 100


def test_a_failed_run_keeps_what_it_measured_and_said(store: Store, campaign_id: int) -> None:
    given.add_run(
        store,
        campaign_id,
        outcome=Outcome.CRASHED,
        measurements=given.result().measurements[:1],
        header=None,
        footer=None,
        detail="signal 11",
        output_tail="x" * 9000 + "\0last\udcff line",
        exit_code=None,
        oversubscribed=True,
    )
    (run,) = store.runs(campaign_id)
    assert (run.outcome, run.detail, run.oversubscribed) == (Outcome.CRASHED, "signal 11", True)
    assert [row.bytes for row in run.measurements] == [8]
    with store.database.read() as connection:
        tail, header = connection.execute(text("SELECT output_tail, header FROM runs")).one()
    assert tail.endswith("�last? line") and len(tail) == 4000
    assert header is None


def test_headers_that_json_does_not_know_are_stored(store: Store, campaign_id: int) -> None:
    store.start_runs(campaign_id, [given.request()], "s1")
    header = {"speed": math.nan, "path": Path("/opt/mpi"), "text": "a\0b", "sizes": (8, 16)}
    store.finish_run(campaign_id, given.result(header=header), "allreduce")


def test_what_an_aggressor_sent_beside_runs_that_count_is_a_range(
    store: Store, campaign_id: int
) -> None:
    assert store.traffic(campaign_id) is None
    outcomes = [Outcome.OK, Outcome.OK, Outcome.OK, Outcome.CRASHED]
    for number, (outcome, rate) in enumerate(zip(outcomes, (3.5, 0.25, 11, 99), strict=True)):
        header = {"library": "MPICH", "beside": {"gigabits_per_s": rate}}
        given.add_run(store, campaign_id, f"r{number}", outcome=outcome, header=header)
    given.add_run(store, campaign_id, "without")
    assert store.traffic(campaign_id) == (0.25, 11.0)
    other = store.open_campaign(given.campaign("other")).id
    assert store.traffic(other) is None


def test_parts_of_an_operation_are_kept_by_run_and_pairs_are_not(
    store: Store, campaign_id: int
) -> None:
    """There is no table for them: they stand in the footer, without their samples."""
    pieces = (
        SubMeasurement(given.measurement(8, 2e-6), "split", None),
        SubMeasurement(given.measurement(1024, 3e-6), "split", None),
        SubMeasurement(given.measurement(8, 1e-6), "", (0, 1)),
    )
    given.add_run(store, campaign_id, "r1", pieces=pieces)
    given.add_run(store, campaign_id, "r2")
    given.add_run(store, campaign_id, "r3", outcome=Outcome.CRASHED, pieces=pieces)
    found = store.parts(campaign_id)
    assert list(found) == ["r1"]
    assert [(p["part"], p["bytes"], p["median_s"]) for p in found["r1"]] == [
        ("split", 8, 2e-6), ("split", 1024, 3e-6),
    ]  # fmt: skip
    assert set(found["r1"][0]) == {"part", "bytes", "median_s", "min_s", "p95_s", "algbw"}


def test_a_result_of_no_known_run_is_refused(store: Store, campaign_id: int) -> None:
    with pytest.raises(DatabaseFault, match="r1 was never registered"):
        store.finish_run(campaign_id, given.result(), "allreduce")
    other = store.open_campaign(given.campaign("other")).id
    store.start_runs(campaign_id, [given.request()], "s1")
    with pytest.raises(DatabaseFault, match="r1 was never registered"):
        store.finish_run(other, given.result(), "allreduce")
    assert given.count(store, "measurements") == 0


def test_an_interrupted_run_is_closed(store: Store, campaign_id: int) -> None:
    store.start_runs(campaign_id, [given.request()], "s1")
    store.mark_interrupted("r1", "its controller died")
    assert store.open_runs(campaign_id) == []
    store.finish_run(campaign_id, given.result(), "allreduce")
    (run,) = store.runs(campaign_id)
    assert (run.outcome, run.detail) == (Outcome.INTERRUPTED, "its controller died")
    assert (run.wall_s, run.measurements) == (0.0, ())


def test_a_stored_run_is_not_interrupted_later(store: Store, campaign_id: int) -> None:
    given.add_run(store, campaign_id)
    store.mark_interrupted("r1", "its controller died")
    (run,) = store.runs(campaign_id)
    assert run.outcome is Outcome.OK


def test_runs_come_in_order_over_pages_and_only_this_campaign(
    store: Store, campaign_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_module, "_PAGE_RUNS", 3)
    other = given.begin(store, given.campaign("other"))
    names = [f"r{number}" for number in range(8)]
    for name in names:
        given.add_run(store, campaign_id, name)
        given.add_run(store, other, f"other-{name}")
    runs = list(store.runs(campaign_id))
    assert [run.run_id for run in runs] == names
    assert all(len(run.measurements) == len(given.SIZES) for run in runs)


def test_writing_goes_on_while_runs_are_read(store: Store, campaign_id: int) -> None:
    for name in ("r1", "r2"):
        given.add_run(store, campaign_id, name)
    reading = store.runs(campaign_id)
    assert next(reading).run_id == "r1"
    store.start_runs(campaign_id, [given.request("r3")], "s1")
    assert next(reading).run_id == "r2"


def test_a_number_that_json_does_not_know_comes_back_as_the_default(
    store: Store, campaign_id: int
) -> None:
    store.decide(campaign_id, Decision(blocks=7, budget_s=math.inf, budget={"wall_s": math.nan}))
    assert store.decision(campaign_id) == Decision(blocks=7)


def test_profiles_replace_earlier_ones_and_never_take_their_numbers(
    store: Store, campaign_id: int
) -> None:
    small = given.profile("small", bytes_low=8, bytes_high=512)
    store.save_profiles(campaign_id, [given.profile(), small])
    earlier = profiles_of(store)
    store.save_profiles(campaign_id, [replace(small, configuration=DEFAULT)])
    (now,) = profiles_of(store, "shm")
    assert [line.name for line in earlier] == ["small", "allreduce-large"]
    assert (now.name, now.configuration, now.system) == ("small", DEFAULT, "laptop")
    assert now.id > max(line.id for line in earlier)
    assert given.count(store, "profile_points") == len(small.points) + len(small.guards)
    assert profiles_of(store, "other") == []


def test_the_same_profiles_again_keep_their_numbers_and_dates(
    store: Store, campaign_id: int
) -> None:
    found = [given.profile("small", bytes_low=8, bytes_high=512), given.profile()]
    store.save_profiles(campaign_id, found)
    earlier = profiles_of(store)
    store.save_profiles(campaign_id, found)
    assert profiles_of(store) == earlier
    measured = replace(found[0], points=found[0].points[:-1])
    store.save_profiles(campaign_id, [measured, found[1]])
    first, second = profiles_of(store)
    assert first.name == "small" and first.id not in {line.id for line in earlier}
    assert second in earlier


def test_a_profile_of_which_more_is_said_keeps_its_number_and_date(
    store: Store, campaign_id: int
) -> None:
    store.save_profiles(campaign_id, [given.profile()])
    (earlier,) = profiles_of(store)
    said = replace(given.profile(), note="more", tails=(given.tail(1024),))
    store.save_profiles(campaign_id, [said])
    (now,) = profiles_of(store)
    assert (now.id, now.created, now.note) == (earlier.id, earlier.created, "more")
    stored = load_profile(store.database.url, str(now.id)).profile
    assert stored.tails == said.tails


def test_a_finished_campaign_keeps_its_date_unless_a_run_followed(
    store: Store, campaign_id: int
) -> None:
    def finished() -> float | None:
        store.finish_campaign(campaign_id)
        (summary,) = given.summaries_of(store)
        return summary.finished

    first = finished()
    assert first is not None and finished() == first
    given.add_run(store, campaign_id, started_at=first + 1)
    later = finished()
    assert later is not None and later > first


def test_profiles_are_stored_all_or_none(store: Store, campaign_id: int) -> None:
    store.save_profiles(campaign_id, [given.profile()])
    with pytest.raises(DatabaseFault):
        store.save_profiles(campaign_id, [given.profile("new"), given.profile("new")])
    assert [line.name for line in profiles_of(store)] == ["allreduce-large"]
    assert given.count(store, "profile_points") == 4


def test_summaries_count_runs_by_outcome(store: Store, campaign_id: int) -> None:
    outcomes = [Outcome.OK, Outcome.OK, Outcome.TIMED_OUT]
    for number, outcome in enumerate(outcomes):
        given.add_run(store, campaign_id, f"r{number}", outcome=outcome, started_at=100.0 + number)
    store.start_runs(campaign_id, [given.request("open")], "s1")
    store.save_profiles(campaign_id, [given.profile()])
    store.finish_campaign(campaign_id)
    store.lock(campaign_id, LockOwner("node7", "boot", 4711, 1, 2))  # it goes on
    empty = store.open_campaign(given.campaign("empty")).id
    newest, summary = given.summaries_of(store)
    assert (newest.id, newest.trials, newest.outcomes, newest.best) == (empty, 0, {}, None)
    assert (newest.finished, newest.last_run, newest.locked_by) == (None, None, "")
    assert (summary.trials, summary.open_runs, summary.profiles) == (2, 1, 1)
    assert summary.outcomes == {"ok": 2, "timed-out": 1}
    assert summary.wall_s == pytest.approx(2.25)
    assert summary.finished is not None and summary.finished >= summary.created
    assert summary.best is not None
    assert (summary.best.bytes, summary.best.speed, summary.best.low) == (1 << 20, "fast", 1.6)
    assert summary.locked_by.startswith("process 4711 on node7")


@pytest.mark.parametrize(("pairs", "best"), [(FEWEST_PAIRS, 1024), (FEWEST_PAIRS - 1, 1 << 20)])
def test_a_machine_state_counts_where_all_together_have_too_few_pairs(
    store: Store, campaign_id: int, pairs: int, best: int
) -> None:
    unsure = replace(
        given.point(1 << 20, "all"),
        gain=Interval(1.1, 0.9, 1.3, pairs),
        verdict=Verdict.UNDECIDED,
    )
    points = (*given.profile().points, unsure)
    store.save_profiles(campaign_id, [given.profile(points=points)])
    (summary,) = given.summaries_of(store)
    assert summary.best is not None and summary.best.bytes == best
