"""What was found out about libraries where a campaign was submitted holds in its jobs."""

from __future__ import annotations

from slurm_campaigns import ONE_CANDIDATE, OnSlurm

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
_OTHERS = (
    "first: [{MPIR_CVAR_DEVICE_COLLECTIVES: none}]\n"
    "narrow: {MPIR_CVAR_DEVICE_COLLECTIVES: [none]}\n"
)
_ASKED = ONE_CANDIDATE.replace("space: mpich-host-allreduce", "space: ./below.yaml").replace(
    _OTHERS, "first: [{UCX_RNDV_THRESH: 4096}]\n"
)
assert "MPIR" not in _ASKED


def test_a_job_searches_what_was_submitted(campaign: OnSlurm) -> None:
    (campaign.folder / "below.yaml").write_text(_SPACE)
    campaign.write(_ASKED)
    # As if the login node had another UCX; a job that asked for itself would ask another question.
    campaign.extra["COMMTUNE_LIBRARY_VERSIONS"] = "ucx=1.13.1"
    said = campaign("submit", "campaign.yaml")
    assert said.code == 0, said.err
    assert "UCX_MIN_RNDV_CHUNK_SIZE (since 1.14.0)" in said.out
    del campaign.extra["COMMTUNE_LIBRARY_VERSIONS"]
    campaign.until_over()
    assert "asks another question" not in campaign.printed()
    assert campaign.is_done()
    tried = campaign.query("SELECT * FROM configurations")
    assert "UCX_RNDV_THRESH" in str(tried)
    assert "UCX_M" not in str(tried)


def test_a_login_node_is_asked(campaign: OnSlurm) -> None:
    (campaign.folder / "below.yaml").write_text(_SPACE)
    campaign.write(_ASKED)
    said = campaign("submit", "--dry-run", "campaign.yaml")
    assert said.code == 0, said.err
    assert "note: not searched, since ucx 1.20.1 does not read it: UCX_MAX_HCA_PER_GPU" in said.out
    assert "COMMTUNE_LIBRARY_VERSIONS=ucx=1.20.1" in said.out.replace("'", "")
