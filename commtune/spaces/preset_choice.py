"""Chooses the shipped space for a campaign, by library, version, memory and operation."""

from __future__ import annotations

from typing import Literal

from commtune.documents.yaml_document import load_shipped
from commtune.errors import SpaceError

#: The memory that holds the communication buffers.
Memory = Literal["host", "device"]


def choose_preset(
    library: str, version: str = "", *, memory: Memory = "host", operation: str = ""
) -> str:
    """Returns the name of the preset for a campaign.

    Args:
        version: of the library; empty if unknown, which selects the preset of the newest.
        memory: the memory that holds the communication buffers.

    Raises:
        KeyError: no preset is for this library.
    """
    # Without a model, since 'commtune init' needn't import pydantic.
    choices = load_shipped("spaces", "preset_choice", SpaceError).data["choices"]
    for one in choices:  # the first that fits: the file has the special cases first
        fits = (
            one["library"] == library
            and one.get("memory", memory) == memory
            and operation in one.get("operations", [operation])
            and is_version_in(version, one.get("versions", ""))
        )
        if fits:
            return str(one["preset"])
    raise KeyError(library)


def is_version_in(version: str, versions: str) -> bool:
    """Whether a version is in a range such as ``>=5.0,<6``; true if either can't be parsed."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # slow to import
    from packaging.version import InvalidVersion

    if not version:
        return True
    try:
        return SpecifierSet(versions).contains(version, prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return True
