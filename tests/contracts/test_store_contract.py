"""One suite of laws over every store of a campaign (see ``tuner.ports.Store``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import database_values as given
import pytest
from stores import opened_store

from commtune.model import DEFAULT, Outcome, Phase, RunResult
from commtune.model.conclusion import Decision
from commtune.tuner.execution.in_memory_store import InMemoryStore
from commtune.tuner.ports import Store


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    if request.param == "memory":
        yield InMemoryStore()
        return
    url = "new_postgresql_url" if request.param == "postgresql" else "url"
    with opened_store(request.getfixturevalue(url)) as found:
        assert found.open_campaign(given.campaign()).id == ID
        yield found


#: The first campaign of a database.
ID = 1


@pytest.fixture
def begun(store: Store) -> Store:
    """One with the trials that the requests name."""
    store.add_trial(ID, 0, DEFAULT, "baseline")
    store.add_trial(ID, 1, given.TUNED, "sampler")
    return store


def test_the_order_is_drawn_from_the_same_seed_for_the_life_of_a_campaign(store: Store) -> None:
    assert store.order_seed(ID) == store.order_seed(ID) != ""


def test_trials_come_by_number_and_once(begun: Store) -> None:
    begun.add_trial(ID, 1, given.TUNED, "sampler")
    found = [(t.number, t.configuration, t.origin) for t in begun.trials(ID)]
    assert found == [(0, DEFAULT, "baseline"), (1, given.TUNED, "sampler")]


def test_a_run_is_open_from_its_start_until_it_has_a_result_or_is_withdrawn(begun: Store) -> None:
    requests = [given.request("r1"), given.request("r2", position=3)]
    begun.start_runs(ID, requests, "s1")
    assert list(begun.open_runs(ID)) == requests
    assert list(begun.runs(ID)) == []
    begun.finish_run(ID, given.result(), "allreduce")
    assert list(begun.open_runs(ID)) == requests[1:]
    (run,) = begun.runs(ID)
    wanted = (run.run_id, run.trial, run.configuration, run.block, run.position, run.session)
    assert wanted == ("r1", 1, given.TUNED, 4, 2, "s1")
    for run_id in ("r1", "r2"):
        begun.withdraw_run(ID, run_id)
    assert list(begun.open_runs(ID)) == []
    assert list(begun.runs(ID)) == [run]


def test_a_result_is_stored_once(begun: Store) -> None:
    begun.start_runs(ID, [given.request()], "s1")
    begun.finish_run(ID, given.result(), "allreduce")
    begun.finish_run(ID, replace(given.result(), wall_s=9.0), "allreduce")
    (run,) = begun.runs(ID)
    found = (run.phase, run.operation, run.outcome, run.started_at, run.wall_s)
    wanted = given.result()
    assert found == (Phase.SEARCH, "allreduce", Outcome.OK, wanted.started_at, wanted.wall_s)
    assert len(run.measurements) == len(given.SIZES)


def test_all_measurements_are_stored_with_the_run(begun: Store) -> None:
    given.add_run(begun, ID)
    (run,) = begun.runs(ID)
    expected = [(m.bytes, m.median_s, m.canary_s) for m in given.result().measurements]
    assert [(m.bytes, m.time_s, m.canary_s) for m in run.measurements] == expected


def test_a_run_that_left_nothing_is_a_lost_one(begun: Store) -> None:
    begun.start_runs(ID, [given.request()], "s1")
    nothing = RunResult("r1", Outcome.INTERRUPTED, 0.0, 0.0, detail="its controller died")
    begun.finish_run(ID, nothing, "allreduce")
    (run,) = begun.runs(ID)
    assert (run.outcome, run.detail) == (Outcome.INTERRUPTED, "its controller died")
    assert run.measurements == ()


def test_the_last_decision_counts(store: Store) -> None:
    assert store.decision(ID) is None
    first, second = (Decision((given.TUNED,), blocks, first_block=3) for blocks in (5, 7))
    store.decide(ID, first)
    store.decide(ID, second)
    assert store.decision(ID) == second


def test_blocks_are_planned_once(begun: Store) -> None:
    begun.plan_block(ID, given.block())
    begun.plan_block(ID, given.block())
    assert list(begun.blocks(ID)) == [given.block()]


def test_a_later_execution_replaces_the_earlier(begun: Store) -> None:
    begun.add_execution(ID, given.execution())
    begun.add_execution(ID, replace(given.execution(), why="asked again"))
    assert [one.why for one in begun.executions(ID)] == ["asked again"]
