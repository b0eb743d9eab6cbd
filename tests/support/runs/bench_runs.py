"""Running the real benchmark in tests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from waiting import PATIENCE_S

from commtune import process
from commtune.cluster.local.launch import _mpi_command, base_environment
from commtune.model import MpiInstallation


@dataclass(frozen=True)
class Ended:
    """A run of the benchmark, its record file, and how it ended."""

    completed: process.Completed
    records: Path

    @property
    def lines(self) -> list[str]:
        """The lines of the record file."""
        return self.records.read_text().splitlines()


@dataclass(frozen=True)
class RunBench:
    """Runs the benchmark with records in a folder; few samples, so that a test is quick."""

    mpi: MpiInstallation
    executable: Path
    folder: Path

    def __call__(
        self,
        *arguments: str,
        ranks: int = 2,
        timeout_s: float = PATIENCE_S,
        environment: Mapping[str, str] | None = None,
    ) -> Ended:
        records = self.folder / "records.jsonl"
        program = [str(self.executable), "--max-samples=20", f"--records={records}", *arguments]
        completed = process.run_process(
            _mpi_command(self.mpi, ranks, program),
            environment={**base_environment(os.environ, self.mpi), **(environment or {})},
            timeout_s=timeout_s,
            whole_output=True,
        )
        return Ended(completed, records)
