"""Passes protected variables, versions and copies of files to jobs of ``commtune submit``.

So a job searches the same space as the machine on which it was submitted, by the files as they
were then.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from commtune.campaign.protected import protected_settings
from commtune.documents.nearest import quote_value
from commtune.errors import EnvironmentFault, UserError
from commtune.private_files import replace_own_file, writing_data

#: Variable of such a job: names of the protected variables that were set at submission.
_SET_VARIABLE = "COMMTUNE_GUARDS"
#: Versions to use instead of asking: ``ucx=1.20.1,libfabric=2.5``. Empty if none is known.
_GIVEN_VARIABLE = "COMMTUNE_LIBRARY_VERSIONS"
#: Libraries whose versions can be found by a run, by their names in the catalogue.
ASKED = ("libfabric", "ucc", "ucx")
#: Key in a stored space of the versions that it was cut to.
CUT_TO = "cut_to"
#: Variable of a job with the path of the file with the copies.
_COPIES_VARIABLE = "COMMTUNE_CAMPAIGN_COPIES"
#: The name of that file, in the campaign's folder.
COPIES = "submitted.json"


def guards_here(names: Sequence[str]) -> dict[str, str]:
    """Returns the protected variables that are set, with values; ``names`` are further ones.

    In a job of ``commtune submit``, only those that were set at submission: its nodes may set
    more, but the campaign was stored without these.
    """
    found = protected_settings(tuple(names), os.environ)
    told = os.environ.get(_SET_VARIABLE)
    if told is None:
        return found
    known = told.split(",")
    return {name: value for name, value in found.items() if name in known}


def hand_over(
    guards: Mapping[str, str], versions: Mapping[str, str] | None, copies: Path
) -> dict[str, str]:
    """Returns a job's variables: the protected ones, the versions, and the file of the copies."""
    told = {
        **guards,
        _SET_VARIABLE: ",".join(sorted(guards)),
        _COPIES_VARIABLE: str(copies),
    }
    if versions is not None:
        told[_GIVEN_VARIABLE] = ",".join(f"{name}={versions[name]}" for name in sorted(versions))
    return told


def given_versions(environment: Mapping[str, str]) -> dict[str, str] | None:
    """Returns the versions that the environment gives, if any; a UserError for unreadable ones."""
    written = environment.get(_GIVEN_VARIABLE)
    if written is None:
        return None
    pairs = [pair.strip().partition("=") for pair in written.split(",") if pair.strip()]
    for name, _, version in pairs:
        if name not in ASKED or not version[:1].isdigit():
            raise UserError(
                f"{_GIVEN_VARIABLE}: {quote_value(f'{name}={version}')} is no version",
                hint=f"LIBRARY=VERSION, separated by commas; libraries: {', '.join(ASKED)}",
            )
    return {name: version for name, _, version in pairs}


def store_copies(file: Path, texts: Mapping[str, bytes]) -> None:
    """Stores the contents of a campaign's files, by path, in one file for its jobs.

    Raises:
        EnvironmentFault: the file can't be written.
    """
    plain = {name: text.decode(errors="surrogateescape") for name, text in texts.items()}
    with writing_data("copies of the campaign's files can't be written", file.parent):
        replace_own_file(file, json.dumps(plain, indent=1))


def given_copies(environment: Mapping[str, str]) -> dict[str, bytes] | None:
    """Returns the copies that this job of ``submit`` uses, if it is one.

    Raises:
        EnvironmentFault: they can't be read.
    """
    file = environment.get(_COPIES_VARIABLE)
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
