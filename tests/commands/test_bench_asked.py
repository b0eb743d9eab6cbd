"""What ``commtune bench`` is asked for, before anything runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from commtune.commands.bench import Settings, request_of
from commtune.errors import UserError

_ASKED = Settings("allreduce", 2, "8", (), "auto", "float32", "0.05s")


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ("pairs", "--op: pairs has no time of the whole"),
        ("matrix", "--op: matrix can't be asked for here"),
        ("allredduce", "--op: 'allredduce' is not known here"),
    ],
)
def test_operations_that_it_has_not_are_refused(operation: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        request_of(replace(_ASKED, op=operation))


@pytest.mark.parametrize("operation", ["stream", "incast", "one-to-many", "ping-pong"])
def test_some_operations_need_two_ranks(operation: str) -> None:
    with pytest.raises(UserError, match="--ranks: 1 is out of range"):
        request_of(replace(_ASKED, op=operation, ranks=1))


@pytest.mark.parametrize("operation", ["ring", "self", "allreduce"])
def test_others_are_done_by_one_rank(operation: str) -> None:
    assert request_of(replace(_ASKED, op=operation, ranks=1)).workload.ranks == 1
