"""One real Slurm for all tests of job scripts."""

from __future__ import annotations

import pytest
from slurm_cluster import Cluster


@pytest.fixture
def cluster(slurm: Cluster) -> Cluster:
    """A running cluster on which nothing runs."""
    return slurm
