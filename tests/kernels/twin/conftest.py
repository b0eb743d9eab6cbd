"""The twin under real ranks of an MPI."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from bench_runs import Ended
from components import require_component

from commtune import process
from commtune.cluster.launch import base_environment, mpi_command
from commtune.kernels.twin.program import libmpi_of
from commtune.model import MpiInstallation


@dataclass(frozen=True)
class RunTwin:
    """Runs the twin with records in a folder; few samples, so that a test is quick."""

    mpi: MpiInstallation
    folder: Path

    def __call__(self, *arguments: str, ranks: int = 2) -> Ended:
        records = self.folder / "records.jsonl"
        return Ended(self.start(f"--records={records}", *arguments, ranks=ranks), records)

    def start(self, *arguments: str, ranks: int = 2) -> process.Completed:
        """The same without a record file."""
        program = [
            sys.executable, "-P", "-m", "commtune.kernels.twin", "--max-samples=20",
            f"--libmpi={libmpi_of(self.mpi)}", *arguments,
        ]  # fmt: skip
        return self.run(program, ranks)

    def run(self, program: list[str], ranks: int) -> process.Completed:
        """Any program under this MPI."""
        return process.run(
            mpi_command(self.mpi, ranks, program),
            environment={
                **base_environment(os.environ, self.mpi),
                "MPI4PY_LIBMPI": libmpi_of(self.mpi),
            },
            timeout_s=60.0,
            whole_output=True,
        )


@pytest.fixture
def run_twin(mpi: MpiInstallation, tmp_path: Path) -> RunTwin:
    """Runs the twin with records in the test's folder."""
    pytest.importorskip("numpy")
    require_component("mpi4py", _has_mpi4py())
    return RunTwin(mpi, tmp_path)


def _has_mpi4py() -> bool:
    import importlib.util

    return importlib.util.find_spec("mpi4py") is not None
