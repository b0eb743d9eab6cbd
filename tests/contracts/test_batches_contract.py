"""One suite of laws over batches of width 1, and over several at a time (``tuner.ports.Batches``).

Those of Slurm need a cluster: tests/cluster/jobs/test_block_jobs.py tests them.
"""

from __future__ import annotations

from collections.abc import Callable

import database_values as given
import pytest
from synthetic import SyntheticBenchmark, VirtualClock
from synthetic_batches import SyntheticBatches

from commtune.model import Outcome, RunRequest
from commtune.tuner.execution.local_batches import LocalBatches
from commtune.tuner.ports import Batches


def machine() -> SyntheticBenchmark:
    return SyntheticBenchmark(lambda *_: 1e-6, VirtualClock())


MAKERS: list[Callable[[], Batches]] = [
    lambda: LocalBatches(machine(), clock=VirtualClock()),
    lambda: SyntheticBatches(machine()),
    lambda: SyntheticBatches(machine(), lost_share=1.0),
]


@pytest.fixture(params=MAKERS, ids=["local", "jobs", "lost jobs"])
def batches(request: pytest.FixtureRequest) -> Batches:
    made: Batches = request.param()
    return made


def block(number: int) -> list[RunRequest]:
    return [given.request(f"{number}-{place}", block=number, position=place) for place in range(3)]


def collected(batches: Batches) -> list[str]:
    """Everything that is under way, by run; those submitted together stay together."""
    found = []
    while batches.in_flight:
        found += [result.run_id for result in batches.collect()]
        batches.settled()
    return found


def test_every_request_comes_back_once_and_in_order(batches: Batches) -> None:
    wanted = []
    for number in range(batches.most_in_flight):
        batches.submit(block(number), 10.0)
        wanted += [request.run_id for request in block(number)]
    assert batches.in_flight == batches.most_in_flight
    found = collected(batches)
    assert sorted(found) == wanted
    for number in range(batches.most_in_flight):
        mine = [run for run in found if run.startswith(f"{number}-")]
        assert mine == sorted(mine)


def test_nothing_under_way_is_nothing_to_collect(batches: Batches) -> None:
    assert list(batches.collect()) == []
    assert batches.in_flight == 0


def test_what_is_adopted_comes_back_once_whatever_is_left_of_it(batches: Batches) -> None:
    batches.adopt(block(7))
    assert collected(batches) == [request.run_id for request in block(7)]


def test_the_time_used_never_falls(batches: Batches) -> None:
    before = batches.used_s()
    batches.submit(block(0), 10.0)
    collected(batches)
    assert batches.used_s() >= before


def test_of_a_run_that_left_nothing_local_batches_say_that_it_is_lost() -> None:
    batches = LocalBatches(machine())
    batches.adopt(block(1)[:1])
    (result,) = batches.collect()
    assert result.outcome is Outcome.INTERRUPTED
