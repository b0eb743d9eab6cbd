"""Files that tests make, in folders that may not be there yet."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from components import require_component


def write_file(file: Path, text: str) -> Path:
    """Writes a file, and makes its folder; returns it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def write_script(file: Path, text: str) -> Path:
    """Writes a shell script that can be executed."""
    write_file(file, f"#!/bin/sh\n{text}\n").chmod(0o755)
    return file


@pytest.fixture
def no_umask() -> Iterator[None]:
    """Makes files as open as they are asked for."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may enter; others can't get below those of pytest."""
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        folder = Path(made)
        folder.chmod(0o755)
        yield folder


def give_away(path: Path) -> None:
    """Gives a file to the user nobody."""
    require_component("root, who can give a file away", os.geteuid() == 0)
    os.chown(path, 65534, 65534)
