"""GPUs that held back their clocks."""

from __future__ import annotations

from typing import Any

import pytest

from commtune.cluster.exit_codes import _find_throttled_ranks, _judge_content
from commtune.model import DEFAULT, Measurement, Operation, Outcome, RunRequest, Timing, Workload
from commtune.tuner.ports import Records


def state(*words: str) -> dict[str, Any]:
    return {"sm_clock_MHz": 1980, "throttle": list(words), "temperature_C": 40}


def footer(*ranks: tuple[Any, Any]) -> dict[str, Any]:
    return {"status": "ok", "gpus": [{"before": b, "after": a} for b, a in ranks]}


def test_why_and_on_which_rank() -> None:
    said = _find_throttled_ranks(
        footer(
            (state(), state()),
            (state("power-cap"), state("power-cap", "hardware-thermal")),
            (state(), state("power-brake")),
        )
    )
    assert said == (
        "GPUs were slowed down: rank 1 power-cap, hardware-thermal; rank 2 power-brake"
    )


@pytest.mark.parametrize(
    "said",
    [
        None,
        {},
        {"gpus": "many"},
        {"gpus": [None, 3, {"before": None, "after": None}]},
        footer((state("applications-clocks"), state("applications-clocks", "idle"))),
        footer(({"throttle": None}, {"throttle": 5}), ({"throttle": [["power-cap"]]}, None)),
    ],
)
def test_nothing_is_said_of_what_is_fine_or_unknown(said: dict[str, Any] | None) -> None:
    assert _find_throttled_ranks(said) == ""


def test_a_run_whose_gpus_were_slowed_is_still_a_good_one() -> None:
    workload = Workload(Operation.ALLREDUCE, (8,))
    request = RunRequest("r", DEFAULT, workload, Timing())
    measured = Measurement(8, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1.0, 1.0)
    found = Records({"rank_info": []}, (measured,), footer((state(), state("sync-boost"))))
    outcome, detail = _judge_content(request, found, {}, ())
    assert outcome is Outcome.OK
    assert detail == "GPUs were slowed down: rank 0 sync-boost"
