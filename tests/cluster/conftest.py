"""Jobs on the fake Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest
from chained_allocations import NEVER, Chain
from fake_slurm.driver import FakeSlurm
from played_jobs import Laboratory


@pytest.fixture
def laboratory(tmp_path: Path) -> Laboratory:
    return Laboratory(FakeSlurm(tmp_path / "slurm"), tmp_path)


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    return Chain(FakeSlurm(tmp_path / "slurm", fate=NEVER), tmp_path)
