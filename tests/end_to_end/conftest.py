"""The command line with a real MPI and a benchmark that is already built."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import CommandLine
from own_process import OwnProcess


@pytest.fixture
def commtune(executable: Path, tmp_path: Path) -> CommandLine:  # noqa: ARG001  # built before
    """The command line in an empty folder."""
    return CommandLine(tmp_path)


@pytest.fixture
def quick(
    executable: Path,  # noqa: ARG001  # built before, so that no message is about building
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> OwnProcess:
    """The command line in an empty folder, started quickly."""
    return OwnProcess(tmp_path, monkeypatch=monkeypatch, capture=capsys)
