"""The command line with a real MPI and a benchmark that is already built."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import CACHE, CommandLine
from components import require_component
from mpi_fixture import session_mpi

from commtune.kernels.build import build_benchmark
from commtune.model import MpiInstallation


@pytest.fixture(scope="session")
def mpi() -> MpiInstallation:
    """The MPI that tests run on."""
    found = session_mpi()
    require_component("an MPI (make .mpi/mpich)", found is not None)
    assert found is not None
    return found


@pytest.fixture(scope="session")
def executable(mpi: MpiInstallation) -> Path:
    """The native benchmark, where the command line looks for it."""
    return build_benchmark(mpi, CACHE / "commtune").executable


@pytest.fixture
def commtune(executable: Path, tmp_path: Path) -> CommandLine:  # noqa: ARG001  # built before
    """The command line in an empty folder."""
    return CommandLine(tmp_path)
