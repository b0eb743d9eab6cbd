"""A controller in an allocation that is killed between any two steps of going on in the next."""

from __future__ import annotations

from campaign_texts import ONE_CANDIDATE
from cluster_campaigns import Death, OnCluster

_STORE = "commtune.db.storage.store:Store."
_BOOK = "commtune.db.storage.jobs:StoredJobs."
#: In the place of the method that submits, which each scheduler has.
_SUBMIT = "submit"
_SUCCESSION = "commtune.cluster.jobs.allocation_chain:AllocationChain."

_SUBMITTING = (
    Death(_BOOK + "put_job", "before", command="submit"),
    Death(_BOOK + "put_job", command="submit"),
    Death(_SUBMIT, command="submit"),
)
#: In the order in which allocations come to them: each is the death of one controller.
_DEATHS = (
    Death(_STORE + "start_runs"),
    Death(_SUBMIT, "before"),
    Death(_BOOK + "put_job", holds="'prepared'"),
    Death(_SUBMIT),
    Death(_BOOK + "put_job", holds="'submitted'", count=2),
    Death(_STORE + "finish_run", "before", count=3),
    Death(_STORE + "finish_run", count=3),
    Death(_SUCCESSION + "ended", "before"),
    Death(_SUCCESSION + "ended"),
    Death(_STORE + "finish_campaign", "before"),
    Death(_SUCCESSION + "take_back", "before"),
)


def test_killed_between_any_two_steps_allocations_go_on(dying: OnCluster) -> None:
    dying.write_without_mpi(ONE_CANDIDATE)
    dying.close_gate()
    for death in _SUBMITTING:
        dying.dies(death)
    (job,) = [job for job in dying.jobs() if not job.is_over]
    again = dying("submit", "campaign.yaml")
    assert again.code == 2
    assert f"already has a {dying.words.name} job: {job.number}" in again.err

    dying.order_deaths(_DEATHS)
    dying.open_gate()
    submitted = 0
    while left := dying.deaths_left():
        dying.until(lambda: dying.deaths_left() < left or dying.all_over(), f"death {left}")
        if dying.deaths_left() and dying.all_over():
            submitted += 1
            dying.succeed("submit", "campaign.yaml")
    dying.until_over()
    # Where no next allocation waits yet, or the campaign is nearly done; never in between.
    assert submitted <= 6
    dying.check_whole()
