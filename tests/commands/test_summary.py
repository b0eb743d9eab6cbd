"""What the end of a campaign says of runs that something else spoilt."""

from __future__ import annotations

from typing import Any, cast

import pytest
from made_up_runs import MadeUpRun

from commtune.commands import summary
from commtune.model import DEFAULT, Outcome, Phase
from commtune.tuner.campaign import Report
from commtune.tuner.conclusion import spent
from commtune.tuner.confirm import Comparison
from commtune.tuner.evidence import Evidence
from commtune.tuner.speeds import Speeds


def after(*outcomes: Outcome) -> dict[str, Any]:
    """The conclusion of a campaign whose runs ended like this, half of them in the search."""
    evidence = Evidence()
    for number, outcome in enumerate(outcomes):
        phase = Phase.SEARCH if number % 2 else Phase.CONFIRM
        evidence.add(MadeUpRun(DEFAULT, number, outcome=outcome, phase=phase))
    return {"spent": spent(evidence)}


def test_lost_runs_are_counted_apart_from_failed_ones() -> None:
    phases = after(*Outcome)["spent"].values()
    assert sum(phase["lost"] for phase in phases) == 5
    assert sum(phase["failed"] for phase in phases) == 8


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ([], []),
        ([Outcome.PREEMPTED], ["1 run lost, which no configuration is blamed for"]),
        ([Outcome.NODE_FAILURE] * 3, ["3 runs lost, which no configuration is blamed for"]),
    ],
)
def test_what_was_lost_is_said(lost: list[Outcome], said: list[str]) -> None:
    lines = summary._conclusions(after(Outcome.OK, Outcome.CRASHED, *lost))
    assert [line.partition(";")[0] for line in lines] == said


def test_a_conclusion_of_an_older_version_has_no_lost_runs() -> None:
    old = {"search": {"runs": 3, "failed": 1, "disturbed": 2, "wall_s": 1.0}}
    (line,) = summary._conclusions({"spent": old})
    assert line.startswith("others used the cores during 2 runs")


@pytest.mark.parametrize(
    ("benchmark_s", "said"),
    [
        (90.0, "1 min 40 s, of which 10.0% was not inside benchmark processes"),
        (400.0, "1 min 40 s; benchmark processes 6 min 40 s, several at a time"),
    ],
)
def test_runs_at_the_same_time_take_longer_than_the_campaign(
    benchmark_s: float, said: str
) -> None:
    nothing = cast("Comparison", None)  # nothing looks at it here
    report = Report((), nothing, Speeds(), 1, 1, benchmark_s, 100.0)
    assert summary._time(report) == said
