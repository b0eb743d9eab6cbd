"""One real Slurm for all tests of job scripts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from components import require_component
from slurm_cluster import Cluster, has_slurm, running_cluster


@pytest.fixture(scope="package")
def cluster() -> Iterator[Cluster]:
    require_component("slurm", has_slurm())
    with running_cluster() as made:
        yield made
