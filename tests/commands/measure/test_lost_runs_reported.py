"""What ``verify`` and ``compare`` say of runs that were lost, beside those that failed."""

from __future__ import annotations

from typing import Any

from commtune.commands.measure import compare
from commtune.commands.profiles import verify
from commtune.model import Estimand, Outcome, VerificationVerdict
from commtune.tuner.statistics.machine_states import MachineStates
from commtune.tuner.statistics.tails import describe_slow_runs, measure_tail
from commtune.tuner.verification.pairwise import Arm, PairwiseResult
from commtune.tuner.verification.phase import Verification


def versus(**changes: Any) -> PairwiseResult:
    nothing: dict[str, Any] = {
        "differences": (), "blocks": 9, "failures": {Arm.A: {}, Arm.B: {}}, "details": {},
        "level": 0.95, "estimand": Estimand.MEDIAN, "speeds": MachineStates(()),
        "oversubscribed": False, "repeats": 0,
    }  # fmt: skip
    return PairwiseResult(**{**nothing, **changes})


def verification(**changes: Any) -> Verification:
    nothing: dict[str, Any] = {
        "finding": VerificationVerdict.HOLDS, "sizes": (), "points": (), "level": 0.95,
        "blocks": 9,
        "planned": 9, "stopped": "clear", "failures": {}, "lost": {}, "detail": "", "run_s": 1.0,
        "speeds": MachineStates(()), "then": {}, "now": {}, "oversubscribed": False,
    }  # fmt: skip
    return Verification(**{**nothing, **changes})


def of_profile(found: Verification) -> list[str]:
    return verify._remarks(found, ())


def test_nothing_lost_is_not_mentioned() -> None:
    assert compare._remarks(versus()) == of_profile(verification()) == []


def test_what_was_lost_is_said_and_nobody_is_blamed() -> None:
    lost = {Outcome.NODE_FAILURE: 2, Outcome.PREEMPTED: 1}
    counted = "2 node-failure, 1 preempted"
    assert compare._remarks(versus(lost=lost)) == [
        f"runs were lost; neither side is blamed: {counted}"
    ]
    assert of_profile(verification(lost=lost)) == [
        f"runs were lost; the profile is not blamed: {counted}"
    ]


def test_failures_stand_beside_it() -> None:
    failed = versus(
        lost={Outcome.CANCELLED: 1},
        failures={Arm.A: {}, Arm.B: {Outcome.CRASHED: 2}},
        details={Arm.B: ("signal 11", "")},
    )
    lost, crashed = compare._remarks(failed)
    assert lost.endswith("1 cancelled")
    assert crashed == "B failed in 2 of 9 runs (2 crashed): signal 11"


def test_slow_runs_stand_beside_what_was_found() -> None:
    tails = (measure_tail(8, [[(1.1, 1.0)] * 16 + [(1.1, 3.0)] * 4]),)
    found = verification(tails=tails)
    slow = describe_slow_runs(tails)
    assert "at 8 B, 4 of 20 took over 1.5 times" in slow
    assert verify._finding(verification()) == "holds"
    assert verify._finding(found) == "holds, with more slow runs than the default"
    assert of_profile(found) == [slow.replace("; ", ";\n  ")]
