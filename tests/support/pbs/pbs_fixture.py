"""One PBS for all tests of a session that want one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pbs_cluster import Cluster, has_pbs, running_cluster
from pbs_config import PBS


@pytest.fixture(scope="session")
def shared_pbs() -> Iterator[Cluster]:
    # Skipped in CI as well: Debian has no package of it (CONTRIBUTING.md says how it is built).
    if not has_pbs():
        pytest.skip(f"needs OpenPBS in {PBS} (or COMMTUNE_TESTS_PBS), and root")
    with running_cluster() as made:
        yield made


@pytest.fixture
def pbs(shared_pbs: Cluster) -> Iterator[Cluster]:
    """A running cluster on which nothing runs, and which is tidied afterwards."""
    yield shared_pbs
    shared_pbs.tidy()
