"""Running the real benchmark in tests."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from waiting import PATIENCE_S

from commtune import process
from commtune.cluster.local.launch import base_environment, local_launcher
from commtune.model import MpiInstallation

#: The JSON Schema of record files.
CONTRACT = json.loads((files("commtune.kernels") / "contract/v1.schema.json").read_text())


def read_valid(records: Path) -> list[dict[str, Any]]:
    """What is in a record file, of which every line must keep the contract."""
    found = [json.loads(line) for line in records.read_text().splitlines()]
    validator = Draft202012Validator(CONTRACT)
    for record in found:
        validator.validate(record)
    return found


def write_records(file: Path, records: Sequence[Mapping[str, Any]]) -> Path:
    """Writes a record file; returns it."""
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


@dataclass(frozen=True)
class Ended:
    """A run of the benchmark, its record file, and how it ended."""

    completed: process.Completed
    records: Path

    @property
    def lines(self) -> list[str]:
        """The lines of the record file."""
        return self.records.read_text().splitlines()

    def valid_records(self, exit_code: int = 0) -> list[dict[str, Any]]:
        """The records, once it ended with this status; each keeps the contract."""
        assert self.completed.exit_code == exit_code, self.completed.output
        return read_valid(self.records)


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
            local_launcher(self.mpi).command(ranks, program, 0.0),
            environment={**base_environment(os.environ, self.mpi), **(environment or {})},
            timeout_s=timeout_s,
            whole_output=True,
        )
        return Ended(completed, records)
