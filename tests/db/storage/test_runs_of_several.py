"""Runs that measure several operations, over every kind of database."""

from __future__ import annotations

from dataclasses import replace

import database_values as given
import pytest

from commtune.db.storage.store import Store
from commtune.model import Operation, Outcome, Workload
from commtune.tuner.statistics.evidence import select_operation

_LATER = (Operation.ALLTOALL, Operation.RING)
_SEVERAL = Workload(Operation.BROADCAST, given.SIZES, then=_LATER)


@pytest.fixture
def campaign_id(store: Store) -> int:
    """A campaign with the trial that runs belong to, and a run of a single operation."""
    number = given.begin(store)
    given.add_run(store, number, "alone")
    return number


def test_a_run_that_is_under_way_comes_back_with_all_it_was_to_measure(
    store: Store, campaign_id: int
) -> None:
    request = given.request(workload=_SEVERAL)
    store.start_runs(campaign_id, [request], "session")
    assert store.open_runs(campaign_id) == [request]


def test_each_operation_has_its_own_sizes(store: Store, campaign_id: int) -> None:
    store.start_runs(campaign_id, [given.request(workload=_SEVERAL)], "session")
    names = ("", *_LATER)
    measured = tuple(
        replace(given.measurement(size, (place + 1) * 1e-6), operation=str(name))
        for place, name in enumerate(names)
        for size in given.SIZES
    )
    store.finish_run(campaign_id, given.result(measurements=measured), "broadcast")
    alone, several = store.runs(campaign_id)
    assert (alone.then, several.then) == ((), ("alltoall", "ring"))
    assert len(several.measurements) == 3 * len(given.SIZES)
    for place, name in enumerate(_SEVERAL.operations):
        (found,) = select_operation(store.runs(campaign_id), str(name))
        assert [(m.bytes, m.time_s) for m in found.measurements] == [
            (size, (place + 1) * 1e-6) for size in given.SIZES
        ]
    assert list(select_operation(store.runs(campaign_id), "allreduce")) == [alone]
    # Of a run, those of its first operation.
    assert given.samples_of(store, "r1", 8)[5] == pytest.approx(1e-6)


def test_one_that_failed_was_to_measure_all(store: Store, campaign_id: int) -> None:
    store.start_runs(campaign_id, [given.request(workload=_SEVERAL)], "session")
    crashed = given.result(measurements=(), outcome=Outcome.CRASHED)
    store.finish_run(campaign_id, crashed, "broadcast")
    for name in _SEVERAL.operations:
        (found,) = select_operation(store.runs(campaign_id), str(name))
        assert (found.outcome, list(found.measurements)) == (Outcome.CRASHED, [])
