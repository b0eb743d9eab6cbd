"""A killed controller's run does not go on beside the campaign that begins anew."""

from __future__ import annotations

import os
import subprocess

import database_values as given
import pytest
from quiet import QuietReporter

from commtune.db.storage.store import Store
from commtune.model import DEFAULT, JobStage, Outcome
from commtune.process_trees import MARKER
from commtune.wiring.campaign_control import controlled_campaign


@pytest.mark.parametrize("job", [False, True])
def test_its_processes_are_ended_and_it_is_marked(sqlite_store: Store, job: bool) -> None:
    earlier = sqlite_store.open_campaign(given.campaign()).id
    sqlite_store.add_trial(earlier, 0, DEFAULT, "baseline")
    run_id = f"left-{os.getpid()}-{job}"
    sqlite_store.start_runs(earlier, [given.request(run_id, configuration=DEFAULT, trial=0)], "s1")
    if job:  # which may still be at work on it, elsewhere
        sqlite_store.job_book(earlier).put_job(given.job(stage=JobStage.SUBMITTED))
    left = subprocess.Popen(["sleep", "100"], env={**os.environ, MARKER: run_id})
    try:
        corrected = given.campaign(what={"operation": "ring"})
        with controlled_campaign(
            sqlite_store.database, corrected, QuietReporter(), take_over=False
        ) as (
            _,
            number,
        ):
            assert number != earlier
        assert [run.outcome for run in sqlite_store.runs(earlier)] == [Outcome.INTERRUPTED] * (
            not job
        )
        assert (left.poll() is None) is job
    finally:
        left.kill()
        left.wait()
