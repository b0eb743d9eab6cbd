"""What a job of ``commtune submit`` is told: it searches the space of where it was submitted."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from commtune.campaign.protected import protected_settings
from commtune.documents.nearest import quote_value
from commtune.errors import UserError
from commtune.wiring.submitted_files import COPIES_VARIABLE

#: In a job that ``commtune submit`` made: names of the protected variables that were set there.
_SET_VARIABLE = "COMMTUNE_GUARDS"
#: What is believed in the place of asking: ``ucx=1.20.1,libfabric=2.5``. Empty: none is known.
_GIVEN_VARIABLE = "COMMTUNE_LIBRARY_VERSIONS"
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
    """The variables that hand protected ones to a job, and tell it of versions and copies."""
    told = {
        **guards,
        _SET_VARIABLE: ",".join(sorted(guards)),
        COPIES_VARIABLE: str(copies),
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
