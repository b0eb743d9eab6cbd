"""Ways to run the native benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench_runs import RunBench

from commtune.model import MpiInstallation


@pytest.fixture
def run_bench(mpi: MpiInstallation, executable: Path, tmp_path: Path) -> RunBench:
    """Runs the benchmark with records in the test's folder."""
    return RunBench(mpi, executable, tmp_path)


@pytest.fixture(scope="module")
def module_bench(
    mpi: MpiInstallation, executable: Path, tmp_path_factory: pytest.TempPathFactory
) -> RunBench:
    """Runs the benchmark for all tests of a module."""
    return RunBench(mpi, executable, tmp_path_factory.mktemp("bench"))
