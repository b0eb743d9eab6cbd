"""The command line on a real PBS of three nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pbs_campaigns import OnPbs
from pbs_cluster import Cluster

_DYING = "tests/end_to_end/slurm/dying.py"


def _made(cluster: Cluster, *program: str) -> OnPbs:
    folder = cluster.user_folder()
    python = f"{cluster.folder}/python/bin/python3"
    words = (*cluster.as_user, "env", f"--chdir={folder}", python, *program)
    campaign = OnPbs(folder, {}, words, cluster=cluster)
    campaign.prepare()
    return campaign


@pytest.fixture
def campaign(pbs: Cluster) -> OnPbs:
    """The command line in an empty folder, on a cluster on which nothing runs."""
    return _made(pbs, "-m", "commtune.cli")


@pytest.fixture
def dying(pbs: Cluster) -> OnPbs:
    """The same, with a command line that can be told where to die."""
    return _made(pbs, str(Path(pbs.folder / "repository" / _DYING)))
