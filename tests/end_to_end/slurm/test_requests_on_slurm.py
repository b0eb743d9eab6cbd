"""What slurmctld is asked by campaigns of one user that begin together and wait."""

from __future__ import annotations

import math
import time

from campaign_texts import ONE_BLOCK
from slurm_campaigns import OnSlurm
from slurm_cluster import NODES
from waiting import PATIENCE_S

from commtune.cluster.slurm.shared_answer import _SITE_KEPT_S

_CAMPAIGNS = 10


def test_ten_campaigns_that_begin_together_make_thirty_requests_a_minute(
    campaign: OnSlurm,
) -> None:
    cluster = campaign.cluster
    for node in NODES:
        cluster.call("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
    before, begun = cluster.requests(), time.monotonic()
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
        asked, took_s = cluster.requests() - before, time.monotonic() - begun
        # Each controller lives, and looks at its job with the others'.
        assert all(child.poll() is None for child in children)
        assert asked["REQUEST_JOB_INFO"] > 0
        for kind in ("REQUEST_BUILD_INFO", "REQUEST_NODE_INFO"):
            assert 1 <= asked[kind] <= math.ceil(took_s / _SITE_KEPT_S), asked
        assert asked.total() <= 30 * math.ceil(took_s / 60), asked
    finally:
        for child in children:
            child.terminate()
            child.communicate(timeout=PATIENCE_S)
