"""The command line on a real PBS of three nodes."""

from __future__ import annotations

import pytest
from pbs_campaigns import OnPbs
from pbs_cluster import Cluster


@pytest.fixture
def campaign(pbs: Cluster) -> OnPbs:
    """The command line in an empty folder, on a cluster on which nothing runs."""
    return OnPbs.made(pbs)
