"""What a campaign planned, learned and came to, over every kind of database."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import database_values as given
import pytest
from best_rows import best_profiles
from sqlalchemy import text, update

from commtune.app.profiles.answers import best_answers
from commtune.db.damage import Damage, DamagedRows, DamagedRowWarning
from commtune.db.inspection import inspect_database
from commtune.db.queries import profiles
from commtune.db.queries.listing import count_phases
from commtune.db.storage.store import Store
from commtune.db.tables import PROFILES
from commtune.errors import DatabaseFault
from commtune.model import DEFAULT, Configuration, Followed, Operation, Phase
from commtune.model.conclusion import Conclusion, FurtherRuns
from commtune.model.effects import SizeEffect, VariableEffect
from commtune.model.profile import BoundarySide, RangeBoundary


@pytest.fixture
def campaign_id(store: Store) -> int:
    """A campaign without anything."""
    return store.open_campaign(given.campaign()).id


def test_blocks_come_back_by_number_with_their_order(store: Store, campaign_id: int) -> None:
    guard = given.block(9, phase=Phase.GUARD, operation=Operation.ALLTOALL, order=(DEFAULT,))
    store.plan_block(campaign_id, guard)
    store.plan_block(campaign_id, given.block(4))
    assert store.blocks(campaign_id) == [given.block(4), guard]
    assert [c.is_default for c in store.blocks(campaign_id)[0].order] == [False, True, False]


def test_a_block_is_planned_once(store: Store, campaign_id: int) -> None:
    other = store.open_campaign(given.campaign("other")).id
    for _ in range(2):
        store.plan_block(campaign_id, given.block())
    store.plan_block(other, given.block(order=(given.TUNED, DEFAULT)))
    reversed_order = tuple(reversed(given.block().order))
    for changed in ({"order": reversed_order}, {"phase": Phase.ABLATE}):
        with pytest.raises(DatabaseFault, match="block 4 is stored with another plan"):
            store.plan_block(campaign_id, given.block(**changed))
    assert store.blocks(campaign_id) == [given.block()]


def test_a_block_needs_its_campaign(store: Store, campaign_id: int) -> None:
    with pytest.raises(DatabaseFault):
        store.plan_block(campaign_id + 1, given.block())


def test_phases_are_counted_also_where_nothing_came_to_an_end(
    store: Store, campaign_id: int
) -> None:
    store.add_trial(campaign_id, 1, given.TUNED, "sampler")
    requests = [given.request("r1"), given.request("r2", phase=Phase.CONFIRM)]
    store.start_runs(campaign_id, requests, "s1")
    store.mark_interrupted("r1", "its controller died")
    store.finish_run(campaign_id, given.result("r2", wall_s=0.75), "allreduce")
    found = count_phases(store.database.whole_url, campaign_id)
    assert list(found.items()) == [(Phase.SEARCH, (1, 0.0)), (Phase.CONFIRM, (1, 0.75))]


def test_an_execution_is_replaced_by_a_later_one(store: Store, campaign_id: int) -> None:
    first, other = given.execution(), given.execution(operation="alltoall")
    elsewhere = store.open_campaign(given.campaign("other")).id
    for execution in (first, other, given.execution(DEFAULT)):
        store.add_execution(campaign_id, execution)
    store.add_execution(elsewhere, first)
    later = replace(
        first, followed=Followed.REPLACED, fingerprints={}, said=(), why="fell back", became="0a1b"
    )
    store.add_execution(campaign_id, later)
    assert store.executions(campaign_id) == [other, given.execution(DEFAULT), later]
    assert store.executions(elsewhere) == [first]


def test_what_a_library_says_may_hold_anything(store: Store, campaign_id: int) -> None:
    said = ("\0\udcff", "x" * 100_000)
    store.add_execution(campaign_id, given.execution(said=said, why="a\0b"))
    (execution,) = store.executions(campaign_id)
    assert execution.said == ("\ufffd?", said[1])
    assert execution.why == "a\ufffdb"
    assert execution.fingerprints == {8: "aa01", 1 << 20: "bb02"}


def test_the_newest_conclusion_holds(store: Store, campaign_id: int) -> None:
    assert store.conclusion(campaign_id) is None
    store.conclude(campaign_id, Conclusion(more=FurtherRuns(runs=5)))
    for _ in range(2):  # the same again is not stored again
        store.conclude(campaign_id, Conclusion(detectable={8: math.inf, 64: 0.5}))
    assert store.conclusion(campaign_id) == Conclusion(detectable={64: 0.5})
    assert store.conclusion(store.open_campaign(given.campaign("other")).id) is None
    with store.database.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM conclusions")).scalar() == 2


@pytest.mark.parametrize("other_load", [None, 0.0, 0.1 + 0.2])
def test_a_run_says_what_others_used(
    store: Store, campaign_id: int, other_load: float | None
) -> None:
    store.add_trial(campaign_id, 1, given.TUNED, "user")
    given.add_run(store, campaign_id, other_load=other_load)
    (run,) = store.runs(campaign_id)
    assert run.other_load == other_load


def test_a_profile_keeps_shares_and_details(url: str, store: Store, campaign_id: int) -> None:
    points = (
        replace(given.point(1024), share=0.75),
        replace(given.point(1024, "slow"), share=0.25),
    )
    effect = SizeEffect(bytes=1024, ratio=1.25, low=1.1, high=1.4, pairs=7)
    contributions = (VariableEffect(names=("A",), kept=True, points=(effect,)),)
    side = BoundarySide(bytes=512, configuration=given.TUNED, ratio=0.9, low=0.8, pairs=3)
    boundaries = (RangeBoundary(512, 1024, (side,)),)
    kept = given.profile(
        points=points,
        contributions=contributions,
        boundaries=boundaries,
        tails=(given.tail(1024), given.tail(1 << 20)),
    )
    bare = given.profile("bare", configuration=Configuration({"A": "1"}), bytes_low=1)
    store.save_profiles(campaign_id, [kept, bare])
    assert profiles.load_profile(url, "allreduce-large").profile == kept
    assert profiles.load_profile(url, "bare").profile.contributions == ()
    short = profiles.load_profile(url, "allreduce-large", with_details=False).profile
    assert short == replace(kept, contributions=(), boundaries=())
    rows = {row.name: row for row in best_profiles(url, "allreduce", 1024)}
    assert [point.share for point in rows["allreduce-large"].points] == [0.75, 0.25]
    assert [point.share for point in rows["bare"].points] == [1.0]


def test_what_stands_beside_a_speedup_may_be_missing_or_damaged(
    url: str, store: Store, campaign_id: int
) -> None:
    store.save_profiles(campaign_id, [given.profile(tails=(given.tail(1024),))])
    (answer, *_), _ = best_answers("allreduce", 1024, {}, url)
    assert answer.tail == given.tail(1024)
    (answer, *_), _ = best_answers("allreduce", 1 << 20, {}, url)
    assert answer.tail is None
    number = answer.row.id

    def put(details: dict[str, Any]) -> None:
        with store.database.write() as connection:
            connection.execute(update(PROFILES).values(details=details))

    def damage() -> list[Damage]:
        return [one for one in inspect_database(url)[1] if one.table == "profiles"]

    put({"contributions": [], "boundaries": []})  # as older versions stored it
    assert profiles.load_profile(url, str(number)).profile == given.profile()
    assert best_answers("allreduce", 1024, {}, url)[0][0].tail is None
    assert damage() == []
    damaged = {**vars(given.tail(1024)), "p95_ratio": "slow"}
    lacking = {name: value for name, value in damaged.items() if name != "pairs"}
    for one, problem in (
        (damaged, "p95_ratio: 'slow' is not a number"),
        (lacking | {"p95_ratio": 1.0}, "lacks pairs"),
    ):
        put({"tails": [one]})
        assert damage() == [Damage("profiles", str(number), "details", f"tails: {problem}")]
        with pytest.warns(DamagedRowWarning, match=problem):
            assert best_answers("allreduce", 1024, {}, url)[0][0].tail is None
        with pytest.warns(DamagedRowWarning), pytest.raises(DamagedRows):
            profiles.load_profile(url, str(number))
