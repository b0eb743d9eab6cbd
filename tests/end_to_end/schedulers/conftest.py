"""The command line on a real Slurm and on a real PBS, each of three nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster_campaigns import OnCluster
from pbs_campaigns import OnPbs
from slurm_campaigns import OnSlurm


def _made(request: pytest.FixtureRequest, folder: Path, *, dies: bool = False) -> OnCluster:
    if request.param == "PBS":
        return OnPbs.made(request.getfixturevalue("pbs"), dies=dies)
    return OnSlurm.made(request.getfixturevalue("isolated_slurm"), folder, dies=dies)


@pytest.fixture(params=["Slurm", "PBS"])
def campaign(request: pytest.FixtureRequest, executable: Path, tmp_path: Path) -> OnCluster:  # noqa: ARG001  # built before
    """The command line in an empty folder, on a cluster on which nothing runs."""
    return _made(request, tmp_path)


@pytest.fixture(params=["Slurm", "PBS"])
def dying(request: pytest.FixtureRequest, executable: Path, tmp_path: Path) -> OnCluster:  # noqa: ARG001  # built before
    """The same, with a command line that can be told where to die."""
    return _made(request, tmp_path, dies=True)
