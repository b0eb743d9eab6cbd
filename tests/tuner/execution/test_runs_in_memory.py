"""What a controller keeps of its runs, of which a night has thousands."""

from __future__ import annotations

from dataclasses import replace

import database_values as given

from commtune.model import Run


def test_runs_have_all_but_the_samples() -> None:
    result = given.result()
    assert all(one.samples_s for one in result.measurements)
    run = Run.from_result(given.request(), result, "session")
    assert run.measurements == tuple(replace(one, samples_s=()) for one in result.measurements)
