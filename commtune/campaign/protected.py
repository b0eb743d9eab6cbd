"""Protected variables, which keep hardware safe and pass unchanged to every run.

The functions are pure: the environment is an argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from commtune.errors import CampaignError
from commtune.model import PROTECTED_NAMES


def protected_settings(
    spec_guards: tuple[str, ...], environment: Mapping[str, str]
) -> dict[str, str]:
    """Returns the protected variables that are set in an environment, with their values.

    Args:
        spec_guards: names from a campaign and its system description, besides the built-in ones.
    """
    names = dict.fromkeys([*spec_guards, *PROTECTED_NAMES])
    return {name: environment[name] for name in names if name in environment}


def check_pins(
    pinned: Mapping[str, str], guards: Mapping[str, str], file: Path | None = None
) -> None:
    """Refuses pins that would change protected variables that are set.

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
