"""A controller on a login node that is killed between any two steps of handing in and reading."""

from __future__ import annotations

from campaign_texts import ONE_CANDIDATE
from cluster_campaigns import Death, OnCluster

_STORE = "commtune.db.storage.store:Store."
_BOOK = "commtune.db.storage.jobs:StoredJobs."
_JOBS = "commtune.cluster.jobs."
#: In the place of the method that submits, which each scheduler has.
_SUBMIT = "submit"
_FINISH = _JOBS + "block_jobs:BlockJobs._finish"

#: In the order in which a campaign comes to them: each is the death of one controller.
_DEATHS = (
    Death(_STORE + "start_runs", "before"),
    Death(_STORE + "start_runs"),
    Death(_JOBS + "job_folder:JobFolder.write_script"),
    Death(_BOOK + "put_job", holds="'prepared'"),
    Death(_SUBMIT),
    Death(_BOOK + "put_job", holds="'submitted'"),
    Death(_JOBS + "monitor:JobMonitor.over", "before"),
    Death(_FINISH, "before"),
    Death(_FINISH),
    Death(_STORE + "finish_run", count=2),
    Death(_JOBS + "block_jobs:BlockJobs.settled", "before"),
    Death(_BOOK + "put_job", "before", holds="'over'"),
    Death(_BOOK + "put_job", holds="'over'"),
    # Traces are jobs without runs.
    Death(_BOOK + "put_job", holds="'trace'"),
    Death(_SUBMIT),
    Death(_JOBS + "monitor:JobMonitor.over", holds="'trace'"),
    Death(_STORE + "add_execution", "before"),
    # The confirmation, with several jobs in flight.
    Death(_STORE + "decide", "before"),
    Death(_STORE + "plan_block", count=2),
    Death(_BOOK + "put_job", holds="'submitted'", count=3),
    Death(_STORE + "finish_run", count=3),
    Death(_STORE + "save_profiles", "before"),
    Death(_STORE + "finish_campaign", "before"),
)


def test_killed_between_any_two_steps_nothing_is_lost_or_doubled(dying: OnCluster) -> None:
    dying.write(ONE_CANDIDATE)
    for death in _DEATHS:
        dying.dies(death)
    dying.succeed("tune", "campaign.yaml")
    dying.check_whole()
