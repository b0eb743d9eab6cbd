"""Jobs of blocks on the fake Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_slurm.driver import FakeSlurm
from played_jobs import Laboratory


@pytest.fixture
def laboratory(tmp_path: Path) -> Laboratory:
    return Laboratory(FakeSlurm(tmp_path / "slurm"), tmp_path)
