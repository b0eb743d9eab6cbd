"""The command line on a real Slurm of three nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from slurm_campaigns import OnSlurm
from slurm_cluster import Cluster


@pytest.fixture
def campaign(executable: Path, isolated_slurm: Cluster, tmp_path: Path) -> OnSlurm:  # noqa: ARG001  # built before
    """The command line in an empty folder, on a cluster on which nothing runs."""
    return OnSlurm.made(isolated_slurm, tmp_path)


@pytest.fixture
def dying(executable: Path, isolated_slurm: Cluster, tmp_path: Path) -> OnSlurm:  # noqa: ARG001  # built before
    """The same, with a command line that can be told where to die."""
    return OnSlurm.made(isolated_slurm, tmp_path, dies=True)
