"""What a job of ``commtune submit`` is told: it searches the space of where it was submitted."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from commtune.campaign.protected import protected_settings
from commtune.documents.nearest import quote_value
from commtune.errors import EnvironmentFault, UserError
from commtune.private_files import make_private_folder

#: In a job that ``commtune submit`` made: names of the protected variables that were set there.
_SET_VARIABLE = "COMMTUNE_GUARDS"
#: What is believed in the place of asking: ``ucx=1.20.1,libfabric=2.5``. Empty: none is known.
_GIVEN_VARIABLE = "COMMTUNE_LIBRARY_VERSIONS"
#: Names the file with copies of the campaign file and of those that it names.
_COPIES_VARIABLE = "COMMTUNE_CAMPAIGN_COPIES"
#: That file's name, in the campaign's folder.
COPIES = "submitted.json"
#: Libraries that can be asked, by their names in the catalogue.
ASKED = ("libfabric", "ucc", "ucx")
#: The versions that a stored space was cut to, among what is stored of it.
CUT_TO = "cut_to"


def guards_here(names: Sequence[str]) -> dict[str, str]:
    """The protected variables that count, with their values; ``names`` are further ones.

    In an allocation that ``commtune submit`` made, those that were set there: its nodes may set
    more, but the campaign was stored without them.
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
    """By which a job gets the protected variables, and is told of them, versions and copies."""
    told = {
        **guards,
        _SET_VARIABLE: ",".join(sorted(guards)),
        _COPIES_VARIABLE: str(copies),
    }
    if versions is not None:
        told[_GIVEN_VARIABLE] = ",".join(f"{name}={versions[name]}" for name in sorted(versions))
    return told


def given_versions(environment: Mapping[str, str]) -> dict[str, str] | None:
    """The versions that are to be believed; ``None`` where nobody gave any.

    Raises:
        UserError: they can't be read.
    """
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
    """Keeps the files of a campaign as they are now, for its jobs.

    Raises:
        EnvironmentFault: that can't be written.
    """
    plain = {name: text.decode(errors="surrogateescape") for name, text in texts.items()}
    part = file.with_suffix(".part")
    try:
        make_private_folder(file.parent)
        part.write_text(json.dumps(plain, indent=1))
        part.replace(file)
    except OSError as error:
        raise EnvironmentFault(
            f"copies of the campaign's files can't be written: {file}: {error.strerror}",
            hint="check its permissions and free space, or set XDG_DATA_HOME elsewhere",
        ) from error


def given_copies(environment: Mapping[str, str]) -> dict[str, bytes] | None:
    """The copies that this job measures by; ``None`` where ``submit`` didn't make it.

    Raises:
        EnvironmentFault: they can't be read.
    """
    file = environment.get(_COPIES_VARIABLE)
    return None if file is None else _read_copies(Path(file))


def edited_files(file: Path) -> list[str]:
    """The files that are no longer as their copies in ``file``; none where there are no copies."""
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
