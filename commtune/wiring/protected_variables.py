"""Which guard variables count for a campaign: those that it is bound to and cut by."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from commtune.campaign.protected import protected_settings

#: In a job that ``commtune submit`` made: names of the guard variables that were set there.
SET_VARIABLE = "COMMTUNE_GUARDS"


def guards_here(names: Sequence[str]) -> dict[str, str]:
    """The guard variables that count, with their values.

    In an allocation that ``commtune submit`` made, those that were set there. Its nodes may set
    more of them: runs get these too, but the campaign was stored without them, and goes on so.

    Args:
        names: further ones, from a campaign and the description of its system.
    """
    found = protected_settings(tuple(names), os.environ)
    told = os.environ.get(SET_VARIABLE)
    if told is None:
        return found
    known = told.split(",")
    return {name: value for name, value in found.items() if name in known}


def handed_over(guards: Mapping[str, str]) -> dict[str, str]:
    """By which a job gets the guard variables, and is told which they are."""
    return {**guards, SET_VARIABLE: ",".join(sorted(guards))}
