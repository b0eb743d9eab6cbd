"""The twin under real ranks of an MPI."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from components import require_component
from twin_runs import RunTwin

from commtune.model import MpiInstallation


@pytest.fixture
def run_twin(mpi: MpiInstallation, tmp_path: Path) -> RunTwin:
    """Runs the twin with records in the test's folder."""
    pytest.importorskip("numpy")
    require_component("mpi4py", importlib.util.find_spec("mpi4py") is not None)
    return RunTwin(mpi, tmp_path)
