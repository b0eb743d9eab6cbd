"""Variables that keep hardware safe: they pass to every run, unchanged.

Pure: the environment is given, and nothing is read from this process's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from commtune.errors import CampaignError
from commtune.model import PROTECTED_NAMES


def protected_settings(
    spec_guards: tuple[str, ...], environment: Mapping[str, str]
) -> dict[str, str]:
    """The protected variables that are set, with their values.

    Args:
        spec_guards: further names, from a campaign and the description of its system.
    """
    names = dict.fromkeys([*spec_guards, *PROTECTED_NAMES])
    return {name: environment[name] for name in names if name in environment}


def check_pins(
    pinned: Mapping[str, str], guards: Mapping[str, str], file: Path | None = None
) -> None:
    """Refuses pins that would replace protected variables which are set.

    Raises:
        CampaignError: the campaign pins one of them to another value.
    """
    for name, value in guards.items():
        if pinned.get(name, value) != value:
            raise CampaignError(
                f"{name}={value} is set in this environment to keep hardware safe, and the "
                f"campaign pins it to {pinned[name]}",
                file=file,
                hint=f"take {name} out of the campaign's pins and of its space",
            )
