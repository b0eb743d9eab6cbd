"""Runs of several operations: what is read of them, when they are whole, where they failed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from commtune.cluster.exit_codes import _failed_operations, _judge_content
from commtune.model import DEFAULT, Measurement, Operation, Outcome, RunRequest, Timing, Workload
from commtune.tuner.ports import Records

_SIZES = (8, 1024)
_LATER = (Operation.ALLTOALL, Operation.RING)
_SEVERAL = RunRequest("r", DEFAULT, Workload(Operation.BROADCAST, _SIZES, then=_LATER), Timing())
_ALONE = replace(_SEVERAL, workload=Workload(Operation.BROADCAST, _SIZES))
_ALL = [(name, size) for name in ("", "alltoall", "ring") for size in _SIZES]


def _records(found: list[tuple[str, int]], wrong: str = "-") -> Records:
    measured = [
        replace(
            Measurement(size, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1.0, 1.0),
            operation=name,
            wrong=int(name == wrong),
        )
        for name, size in found
    ]
    return Records({"rank_info": []}, tuple(measured))


def test_a_run_with_all_operations_and_sizes_is_whole() -> None:
    assert _judge_content(_SEVERAL, _records(_ALL), {}, ()) == (Outcome.OK, "")


def test_sizes_of_one_operation_do_not_stand_for_those_of_another() -> None:
    for place, (name, size) in enumerate(_ALL):
        found = _records(_ALL[:place] + _ALL[place + 1 :])
        words = f"no record of {name or 'broadcast'} for 1 size: {size} bytes"
        assert _judge_content(_SEVERAL, found, {}, ()) == (Outcome.MALFORMED, words)


def test_of_many_missing_sizes_the_first_and_their_number_are_said() -> None:
    request = replace(_ALONE, workload=Workload(Operation.BROADCAST, tuple(range(1, 1001))))
    said = "no record for 1000 sizes: 1, 2, 3, 4, ... bytes"
    assert _judge_content(request, _records([]), {}, ()) == (Outcome.MALFORMED, said)


@pytest.mark.parametrize(
    ("done", "where"),
    [(0, " (at broadcast)"), (2, " (at alltoall)"), (5, " (at ring)"), (6, "")],
)
def test_a_failed_run_says_at_which_operation(done: int, where: str) -> None:
    assert _failed_operations(_SEVERAL, _records(_ALL[:done])) == where


def test_wrong_elements_are_those_of_an_operation() -> None:
    assert _failed_operations(_SEVERAL, _records(_ALL, wrong="alltoall")) == " (at alltoall)"
    assert _failed_operations(_SEVERAL, _records(_ALL, wrong="")) == " (at broadcast)"


def test_nothing_is_said_of_a_run_of_one_operation_or_before_the_first() -> None:
    assert _failed_operations(_ALONE, _records([])) == ""
    assert _failed_operations(_SEVERAL, Records()) == ""
