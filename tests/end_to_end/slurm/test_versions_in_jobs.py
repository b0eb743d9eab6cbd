"""What was found out about libraries where a campaign was submitted holds in its jobs."""

from __future__ import annotations

import json

from campaign_texts import ONE_BLOCK
from slurm_campaigns import OnSlurm

_SPACE = """\
space: 1
name: below
version: 1
summary: UCX below MPICH.
library: mpich
versions: ">=4"
facts: [ucx]
parameters:
  - {name: UCX_RNDV_THRESH, values: [4KiB]}
  - {name: UCX_MIN_RNDV_CHUNK_SIZE, values: [16KiB]}
  - {name: UCX_MAX_HCA_PER_GPU, values: [1]}
"""
_NARROW = ONE_BLOCK[ONE_BLOCK.index("narrow:") : ONE_BLOCK.index("slurm:")]
#: In front of each rank. What works would be confirmed, by 14 runs more.
_FAILS = """slurm: {prefix: [sh, -c, '[ -z "$UCX_RNDV_THRESH" ] && exec "$@"', sh], """
_ASKED = ONE_BLOCK.replace("space: mpich-host-allreduce", "space: ./below.yaml").replace(
    _NARROW, "first: [{UCX_RNDV_THRESH: 4096}]\n"
)
assert "MPIR" not in _ASKED


def test_a_job_searches_what_was_submitted(campaign: OnSlurm) -> None:
    (campaign.folder / "below.yaml").write_text(_SPACE)
    campaign.write(_ASKED.replace("slurm: {", _FAILS))
    # As if the login node had another UCX; a job that asked for itself would ask another question.
    campaign.extra["COMMTUNE_LIBRARY_VERSIONS"] = "ucx=1.13.1"
    said = campaign.succeed("submit", "campaign.yaml")
    assert "UCX_MIN_RNDV_CHUNK_SIZE (since 1.14.0)" in said.err
    del campaign.extra["COMMTUNE_LIBRARY_VERSIONS"]
    campaign.until_over()
    assert "asks another question" not in campaign.printed()
    assert campaign.is_done()
    tried = campaign.query("SELECT * FROM configurations")
    assert "UCX_RNDV_THRESH" in str(tried)
    assert "UCX_M" not in str(tried)
    ((stack,),) = campaign.query("SELECT text FROM stacks")
    assert stack.endswith(", UCX 1.13.1")


def test_a_login_node_is_asked(campaign: OnSlurm) -> None:
    (campaign.folder / "below.yaml").write_text(_SPACE)
    campaign.write(_ASKED)
    said = campaign.succeed("submit", "--dry-run", "campaign.yaml")
    assert "note: not searched, since ucx 1.20.1 does not read it: UCX_MAX_HCA_PER_GPU" in said.err
    assert "COMMTUNE_LIBRARY_VERSIONS=ucx=1.20.1" in said.out.replace("'", "")


_BLOCK = ONE_BLOCK.replace("space: mpich-host-allreduce", "space: ./below.yaml").replace(
    _NARROW, ""
)


def test_a_cut_campaign_is_verified_as_the_same_until_ucx_changes(campaign: OnSlurm) -> None:
    (campaign.folder / "below.yaml").write_text(_SPACE)
    campaign.write(_BLOCK.replace("slurm: {", _FAILS))
    said = campaign.succeed("tune", "campaign.yaml")
    assert "UCX_MAX_HCA_PER_GPU" in said.err
    campaign.state_gain(UCX_RNDV_THRESH="4096")
    found = json.loads(campaign("verify", "small/stated", "--time", "1s", "--json").out)
    assert (found["changes"], found["campaign"]) == ([], "small")
    campaign.extra["COMMTUNE_LIBRARY_VERSIONS"] = "ucx=1.20.0"
    found = json.loads(campaign("verify", "small/stated", "--time", "1s", "--json").out)
    assert found["changes"] == ['libraries.ucx: "1.20.1" -> "1.20.0"']
    assert found["campaign"].startswith("verify-small-stated-")
