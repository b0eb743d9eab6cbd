"""Keeps copies of a campaign's files as they were at submission, for its jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from commtune.errors import EnvironmentFault
from commtune.private_files import make_private_folder, replace_own_file, writing_data

#: Variable of a job with the path of the file with the copies.
COPIES_VARIABLE = "COMMTUNE_CAMPAIGN_COPIES"
#: The name of that file, in the campaign's folder.
COPIES = "submitted.json"


def store_copies(file: Path, texts: Mapping[str, bytes]) -> None:
    """Stores the contents of a campaign's files, by path, in one file for its jobs.

    Raises:
        EnvironmentFault: the file can't be written.
    """
    plain = {name: text.decode(errors="surrogateescape") for name, text in texts.items()}
    with writing_data("copies of the campaign's files can't be written", file):
        make_private_folder(file.parent)
        replace_own_file(file, json.dumps(plain, indent=1))


def given_copies(environment: Mapping[str, str]) -> dict[str, bytes] | None:
    """Returns the copies that this job of ``submit`` uses, if it is one.

    Raises:
        EnvironmentFault: they can't be read.
    """
    file = environment.get(COPIES_VARIABLE)
    return None if file is None else _read_copies(Path(file))


def edited_files(file: Path) -> list[str]:
    """Returns the files that differ from their copies in ``file``; none if there are no copies."""
    try:
        copies = _read_copies(file)
    except EnvironmentFault:
        return []
    return [name for name, text in copies.items() if _content(name) != text]


def _read_copies(file: Path) -> dict[str, bytes]:
    try:
        plain = json.loads(file.read_text())
        return {name: text.encode(errors="surrogateescape") for name, text in plain.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise EnvironmentFault(
            f"the copies of the campaign's files can't be read: {file}: {error}",
            hint="'commtune submit' with the campaign file makes them again",
        ) from error


def _content(name: str) -> bytes | None:
    try:
        return Path(name).read_bytes()
    except OSError:
        return None
