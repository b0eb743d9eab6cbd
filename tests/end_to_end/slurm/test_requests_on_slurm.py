"""What slurmctld is asked by campaigns of one user that begin together and wait."""

from __future__ import annotations

from campaign_texts import ONE_BLOCK
from slurm_campaigns import OnSlurm
from slurm_cluster import NODES

_CAMPAIGNS = 10


def test_ten_campaigns_that_begin_together_make_thirty_requests(campaign: OnSlurm) -> None:
    cluster = campaign.cluster
    for node in NODES:
        cluster.call("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
    before = cluster.requests()
    text = ONE_BLOCK.replace("poll: 0.3s, ", "")
    files = [
        campaign.write(text.replace("name: small", f"name: c{number}"), f"{number}.yaml")
        for number in range(_CAMPAIGNS)
    ]
    children = [campaign.start("tune", str(file)) for file in files]
    try:
        submitted = "REQUEST_SUBMIT_BATCH_JOB"
        campaign.until(
            lambda: cluster.requests()[submitted] == before[submitted] + _CAMPAIGNS, "all jobs"
        )
        campaign.pause(10)
        asked = cluster.requests() - before
        # Each controller lives, and looks at its job with the others'.
        assert all(child.poll() is None for child in children)
        assert asked["REQUEST_JOB_INFO"] > 0
        assert asked["REQUEST_BUILD_INFO"] == asked["REQUEST_NODE_INFO"] == 1
        assert asked.total() <= 30, asked
    finally:
        for child in children:
            child.terminate()
            child.communicate(timeout=60)
