"""The command line on a real Slurm of three nodes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from slurm_campaigns import OnSlurm
from slurm_cluster import Cluster


@pytest.fixture
def campaign(executable: Path, isolated_slurm: Cluster, tmp_path: Path) -> OnSlurm:  # noqa: ARG001  # built before
    """The command line in an empty folder, on a cluster on which nothing runs."""
    return OnSlurm(
        tmp_path,
        {"SLURM_CONF": isolated_slurm.environment["SLURM_CONF"]},
        cluster=isolated_slurm,
    )


@pytest.fixture
def dying(campaign: OnSlurm) -> OnSlurm:
    """The same, with a command line that can be told where to die."""
    script = str(Path(__file__).with_name("dying.py"))
    return OnSlurm(
        campaign.folder, campaign.extra, (sys.executable, script), cluster=campaign.cluster
    )
