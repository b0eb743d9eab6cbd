"""Launches that fail: named in a profile, and too many of them withhold the recommendation."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up_runs import block
from made_up_spaces import made_up_space

from commtune.campaign.plan import Plan
from commtune.model import DEFAULT, Configuration, Operation, Outcome, Workload
from commtune.tuner.confirmation.comparison import (
    Rules,
    _count_failures,
    compare_candidate,
)
from commtune.tuner.outcome.profiles import ProfileMaker
from commtune.tuner.statistics.machine_states import MachineStates

SPACE = made_up_space("""
  - {name: V, kind: integer, values: [1, 2, 3], source: made up}
  - {name: W, kind: integer, values: [1, 2, 3], source: made up}
""")
A = Configuration({"V": "2"})
RULES = Rules(0.95, 0.02, 0.05, 1)


@pytest.mark.parametrize(("failed", "verdict"), [(0, "faster"), (4, "faster"), (5, "undecided")])
def test_what_fails_more_often_than_the_default_is_not_recommended(
    failed: int, verdict: str
) -> None:
    blocks = [
        block({8: 1 + 1e-3 * n}, {A: {8: (1 + 1e-3 * (n * 7 % 24)) / 1.3}}) for n in range(24)
    ]
    for one in blocks[:failed]:
        one[A] = replace(one[A], outcome=Outcome.TIMED_OUT, measurements=())
    compared = {A: compare_candidate(blocks, A, "allreduce", MachineStates(), RULES)}
    points = compared[A].points
    assert [str(one.verdict) for one in points] == [verdict]
    assert points[0].gain.low > 1.02
    plan = Plan("failures", SPACE, Workload(Operation.ALLREDUCE, (8,)))
    (profile,) = ProfileMaker(plan, compared).recommend()
    assert ProfileMaker(plan, compared).list_likely() == []
    said = f"{failed} of 24 launches failed (default: 0)"
    assert profile.configuration == (A if verdict == "faster" else DEFAULT)
    assert (said in profile.note) is bool(failed)
    assert ("is not recommended" in profile.note) is (verdict == "undecided")


def test_launches_that_were_lost_are_no_failures_and_the_default_may_fail_as_well() -> None:
    blocks = [block({8: 1.0}, {A: {8: 1.0}}) for _ in range(9)]
    for one in blocks[:6]:
        one[A] = replace(one[A], outcome=Outcome.NODE_FAILURE, measurements=())
    assert _count_failures(blocks, A).failed == 0
    for one in blocks:
        one[A] = replace(one[A], outcome=Outcome.CRASHED, measurements=())
        one[DEFAULT] = replace(one[DEFAULT], outcome=Outcome.CRASHED, measurements=())
    found = _count_failures(blocks, A)
    assert (found.launches, found.failed, found.default_failed) == (9, 9, 9)
    assert not found.is_worse
