"""Passes protected variables and versions to jobs of ``commtune submit``, by their environment.

So a job searches the same space as the machine on which it was submitted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from commtune.campaign.protected import protected_settings
from commtune.documents.nearest import quote_value
from commtune.errors import UserError
from commtune.wiring.submitted_files import COPIES_VARIABLE

#: Variable of such a job: names of the protected variables that were set at submission.
_SET_VARIABLE = "COMMTUNE_GUARDS"
#: Versions to use instead of asking: ``ucx=1.20.1,libfabric=2.5``. Empty if none is known.
_GIVEN_VARIABLE = "COMMTUNE_LIBRARY_VERSIONS"
#: Libraries whose versions can be found by a run, by their names in the catalogue.
ASKED = ("libfabric", "ucc", "ucx")
#: Key in a stored space of the versions that it was cut to.
CUT_TO = "cut_to"


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
        COPIES_VARIABLE: str(copies),
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
