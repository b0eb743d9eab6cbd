"""A controller on a login node that is killed between any two steps of handing in and reading."""

from __future__ import annotations

from slurm_campaigns import TWO_NODES, OnSlurm

_STORE = "commtune.db.store:Store."
_BOOK = "commtune.db.jobs:StoredJobs."
_FOLDER = "commtune.cluster.slurm.folders:JobFolder."
_SBATCH = "commtune.cluster.slurm.submitting:Submission."
_JOBS = "commtune.cluster.slurm.block_jobs:BlockJobs."
_WATCH = "commtune.cluster.slurm.watching:Watch."

#: In the order in which a campaign comes to them: each is the death of one controller.
_DEATHS = (
    (_STORE + "start_runs", "before", "", 1),
    (_STORE + "start_runs", "after", "", 1),
    (_FOLDER + "write_script", "after", "", 1),
    (_BOOK + "put_job", "after", "'prepared'", 1),
    (_SBATCH + "submit", "after", "", 1),
    (_BOOK + "put_job", "after", "'submitted'", 1),
    (_WATCH + "over", "before", "", 2),
    (_JOBS + "_land", "before", "", 1),
    (_JOBS + "_land", "after", "", 1),
    (_STORE + "finish_run", "after", "", 2),
    (_JOBS + "settled", "before", "", 1),
    (_BOOK + "put_job", "before", "'over'", 1),
    (_BOOK + "put_job", "after", "'over'", 1),
)
_DEATHS_OF_TRACES = (
    (_BOOK + "put_job", "after", "'trace'", 1),
    (_SBATCH + "submit", "after", "", 1),
    (_WATCH + "over", "after", "'trace'", 1),
    (_STORE + "add_execution", "before", "", 1),
)
_LATE_DEATHS = (
    (_STORE + "decide", "before", "", 1),
    (_STORE + "plan_block", "after", "", 2),
    (_BOOK + "put_job", "after", "'submitted'", 3),
    (_STORE + "finish_run", "after", "", 3),
    (_STORE + "save_profiles", "before", "", 1),
    (_STORE + "conclude", "before", "", 1),
    (_STORE + "finish_campaign", "before", "", 1),
)


def test_killed_between_any_two_steps_nothing_is_lost_or_doubled(dying: OnSlurm) -> None:
    dying.write(TWO_NODES)
    for method, when, holds, count in (*_DEATHS, *_DEATHS_OF_TRACES, *_LATE_DEATHS):
        dying.dies(method, when, "tune", "campaign.yaml", holds=holds, count=count)
    said = dying("tune", "campaign.yaml")
    assert said.code == 0, said.err
    dying.check_whole()
