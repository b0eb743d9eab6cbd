"""Running the benchmark in Python in tests, under real ranks of an MPI."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench_runs import Ended
from components import require_component
from waiting import PATIENCE_S

from commtune import process
from commtune.cluster.local.launch import base_environment, local_launcher
from commtune.cluster.mpi.discovery import find_mpi
from commtune.errors import CommtuneError
from commtune.kernels.programs import libmpi_of
from commtune.model import MpiInstallation


def installed_mpi(named: str) -> MpiInstallation:
    """An MPI of this machine or of this checkout; skips where it isn't there."""
    found = None
    try:
        found = find_mpi(named)
    except CommtuneError as error:
        require_component(f"{named} ({error})", found=False)
    assert found is not None
    return found


@dataclass(frozen=True)
class RunPython:
    """Runs the Python benchmark with records in a folder; few samples, so that a test is quick."""

    mpi: MpiInstallation
    folder: Path

    def __call__(self, *arguments: str, ranks: int = 2) -> Ended:
        records = self.folder / "records.jsonl"
        return Ended(self.start(f"--records={records}", *arguments, ranks=ranks), records)

    def start(self, *arguments: str, ranks: int = 2) -> process.Completed:
        """The same without a record file."""
        program = [
            sys.executable, "-P", "-m", "commtune.kernels.python_bench", "--max-samples=20",
            f"--libmpi={libmpi_of(self.mpi)}", *arguments,
        ]  # fmt: skip
        return self.run(program, ranks)

    def run(
        self, program: list[str], ranks: int, further: Mapping[str, str] | None = None
    ) -> process.Completed:
        """Any program under this MPI.

        Args:
            further: variables besides those that it needs.
        """
        return process.run_process(
            local_launcher(self.mpi).command(ranks, program, 0.0),
            environment={
                **base_environment(os.environ, self.mpi),
                "MPI4PY_LIBMPI": libmpi_of(self.mpi),
                **(further or {}),
            },
            timeout_s=PATIENCE_S,
            whole_output=True,
        )
