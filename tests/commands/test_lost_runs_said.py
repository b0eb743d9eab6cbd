"""What ``verify`` and ``compare`` say of runs that were lost, beside those that failed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from commtune.commands import compare, verify
from commtune.model import Outcome
from commtune.tuner.comparing import Side, Versus
from commtune.tuner.speeds import Speeds
from commtune.tuner.verification import Finding
from commtune.tuner.verifying import Verification


def versus(**changes: Any) -> Versus:
    nothing: dict[str, Any] = {
        "differences": (), "blocks": 9, "failures": {Side.A: {}, Side.B: {}}, "details": {},
        "level": 0.95, "speeds": Speeds(()), "oversubscribed": False, "repeats": 0,
    }  # fmt: skip
    return Versus(**{**nothing, **changes})


def verification(**changes: Any) -> Verification:
    nothing: dict[str, Any] = {
        "finding": Finding.HOLDS, "sizes": (), "points": (), "level": 0.95, "blocks": 9,
        "planned": 9, "stopped": "clear", "failures": {}, "lost": {}, "detail": "", "run_s": 1.0,
        "speeds": Speeds(()), "then": {}, "now": {}, "oversubscribed": False,
    }  # fmt: skip
    return Verification(**{**nothing, **changes})


def of_profile(found: Verification) -> list[str]:
    return verify._remarks(cast(Any, SimpleNamespace(changes=())), found)


def test_nothing_lost_is_not_mentioned() -> None:
    assert compare._remarks(versus()) == of_profile(verification()) == []


def test_what_was_lost_is_said_and_nobody_is_blamed() -> None:
    lost = {Outcome.NODE_FAILURE: 2, Outcome.PREEMPTED: 1}
    counted = "2 node-failure, 1 preempted"
    assert compare._remarks(versus(lost=lost)) == [
        f"runs were lost, for which neither is blamed: {counted}"
    ]
    assert of_profile(verification(lost=lost)) == [
        f"runs were lost, for which nothing is blamed: {counted}"
    ]


def test_failures_stand_beside_it() -> None:
    failed = versus(
        lost={Outcome.CANCELLED: 1},
        failures={Side.A: {}, Side.B: {Outcome.CRASHED: 2}},
        details={Side.B: ("signal 11", "")},
    )
    lost, crashed = compare._remarks(failed)
    assert lost.endswith("1 cancelled")
    assert crashed == "B failed in 2 of 9 runs (2 crashed): signal 11"
