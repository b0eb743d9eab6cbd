"""The native benchmark, built once, and ways to run it."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench_runs import RunBench
from components import require_component
from mpi_fixture import session_benchmark, session_mpi

from commtune.model import MpiInstallation


@pytest.fixture(scope="session")
def mpi() -> MpiInstallation:
    """The MPI that tests run on."""
    found = session_mpi()
    require_component("an MPI (make .mpi/mpich)", found is not None)
    assert found is not None
    return found


@pytest.fixture(scope="session")
def executable(mpi: MpiInstallation) -> Path:  # noqa: ARG001  # skips where there is no MPI
    """The native benchmark."""
    found = session_benchmark()
    assert found is not None
    return found


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
