"""One Slurm for all tests of a session that want one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from components import require_component
from slurm_cluster import Cluster, has_slurm, missing_packages, running_cluster


@pytest.fixture(scope="session")
def shared_slurm() -> Iterator[Cluster]:
    """A running cluster, as the test before left it: for tests that leave it as it was."""
    packages = " ".join(missing_packages())
    require_component(f"Slurm (as root: apt-get install {packages})", has_slurm())
    with running_cluster() as made:
        yield made


@pytest.fixture
def slurm(shared_slurm: Cluster) -> Iterator[Cluster]:
    """A running cluster on which nothing runs, and which is tidied afterwards."""
    yield shared_slurm
    shared_slurm.tidy()


@pytest.fixture
def isolated_slurm(slurm: Cluster) -> Cluster:
    """The same, with nodes that MPI takes for different machines."""
    require_component(f"namespaces ({slurm.why_plain})", slurm.isolated)
    return slurm
