"""Runs with too few samples for the percentile that they are compared by."""

from __future__ import annotations

from dataclasses import replace

import pytest

from commtune.cluster.exit_codes import judge_whole
from commtune.model import DEFAULT, Measurement, Operation, Outcome, RunRequest, Timing, Workload
from commtune.tuner.ports import Records

_ASKED = RunRequest("r", DEFAULT, Workload(Operation.ALLREDUCE, (8,)), Timing(min_samples=60))
_TAIL = replace(_ASKED, timing=replace(_ASKED.timing, percentile=95))


def _judged(asked: RunRequest, samples: int, benchmark: dict[str, list[str]]) -> str:
    measured = replace(
        Measurement(8, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1.0, 1.0), samples_s=(1e-6,) * samples
    )
    found = Records({"rank_info": [], "benchmark": benchmark}, (measured,))
    outcome, said = judge_whole(asked, found, (Outcome.OK, ""), {}, ())
    assert outcome is (Outcome.MALFORMED if said else Outcome.OK)
    return said


@pytest.mark.parametrize(
    ("benchmark", "least", "hint"),
    [({}, 60, "raise timing.time_cap"), ({"command": ["sh"]}, 20, "print them as times_s")],
)
def test_a_95th_percentile_takes_its_samples(
    benchmark: dict[str, list[str]], least: int, hint: str
) -> None:
    said = f"{least - 1} of {least} samples for the 95th percentile at 8 bytes: {hint}"
    assert _judged(_TAIL, least - 1, benchmark) == said
    assert _judged(_TAIL, least, benchmark) == ""
    assert _judged(_ASKED, 1, benchmark) == ""
