"""Files that tests make, in folders that may not be there yet."""

from __future__ import annotations

from pathlib import Path


def write_file(file: Path, text: str) -> Path:
    """Writes a file, and makes its folder; returns it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def write_script(file: Path, text: str) -> Path:
    """Writes a shell script that can be executed."""
    write_file(file, f"#!/bin/sh\n{text}\n").chmod(0o755)
    return file
