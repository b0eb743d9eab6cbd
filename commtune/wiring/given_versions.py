"""Versions of libraries that somebody says, so that nobody has to ask for them."""

from __future__ import annotations

from collections.abc import Mapping

from commtune.documents.nearest import quote_value
from commtune.errors import UserError

#: What is believed in the place of asking: ``ucx=1.20.1,libfabric=2.5``. Empty: none is known.
GIVEN_VARIABLE = "COMMTUNE_LIBRARY_VERSIONS"
#: Libraries that can be asked, by their names in the catalogue.
ASKED = ("libfabric", "ucc", "ucx")
#: The versions that a stored space was cut to, among what is stored of it.
CUT_TO = "cut_to"


def handed_over(versions: Mapping[str, str] | None) -> dict[str, str]:
    """By which a job is told what was found where it was submitted.

    It must search the same space, and might find something else, or nothing.
    """
    if versions is None:
        return {}
    return {GIVEN_VARIABLE: ",".join(f"{name}={versions[name]}" for name in sorted(versions))}


def given_versions(environment: Mapping[str, str]) -> dict[str, str] | None:
    """The versions that are to be believed; ``None`` where nobody gave any.

    Raises:
        UserError: they can't be read.
    """
    written = environment.get(GIVEN_VARIABLE)
    if written is None:
        return None
    pairs = [pair.strip().partition("=") for pair in written.split(",") if pair.strip()]
    for name, _, version in pairs:
        if name not in ASKED or not version[:1].isdigit():
            raise UserError(
                f"{GIVEN_VARIABLE}: {quote_value(f'{name}={version}')} is no version",
                hint=f"LIBRARY=VERSION, separated by commas; libraries: {', '.join(ASKED)}",
            )
    return {name: version for name, _, version in pairs}
