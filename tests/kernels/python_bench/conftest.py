"""The Python benchmark under real ranks of an MPI."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from components import require_component
from python_bench_runs import RunPython

from commtune.model import MpiInstallation


@pytest.fixture
def run_python(mpi: MpiInstallation, tmp_path: Path) -> RunPython:
    """Runs the Python benchmark with records in the test's folder."""
    pytest.importorskip("numpy")
    require_component("mpi4py", importlib.util.find_spec("mpi4py") is not None)
    return RunPython(mpi, tmp_path)
