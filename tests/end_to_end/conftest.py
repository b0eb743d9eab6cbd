"""The command line with a real MPI and a benchmark that is already built."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import CommandLine


@pytest.fixture
def commtune(executable: Path, tmp_path: Path) -> CommandLine:  # noqa: ARG001  # built before
    """The command line in an empty folder."""
    return CommandLine(tmp_path)
