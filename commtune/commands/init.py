"""``commtune init``."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from commtune.errors import UserError


def run(file: Path, *, force: bool, program: str) -> None:
    """Writes the commented example campaign."""
    if file.exists() and not force:
        raise UserError(
            f"{file} exists already", hint=f"name another file, or: {program} init {file} --force"
        )
    example = files("commtune.commands").joinpath("campaign_example.yaml").read_text("utf-8")
    try:
        file.write_text(example, encoding="utf-8")
    except OSError as error:
        raise UserError(f"can't write {file}: {error.strerror}") from error
    print(f"wrote {file}; edit it, then: {program} tune {file}")
