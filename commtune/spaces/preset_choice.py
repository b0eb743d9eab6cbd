"""Chooses the shipped space for a campaign, by library, version, memory and operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from commtune.documents.yaml_document import load_shipped
from commtune.errors import SpaceError

#: The memory that holds the communication buffers.
Memory = Literal["host", "device"]


@dataclass(frozen=True)
class _Choice:
    preset: str
    library: str
    versions: str = ""
    memory: Memory | None = None
    operations: Sequence[str] = ()


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
    for one in _load_choices():  # the first that fits: the file has the special cases first
        fits = (
            one.library == library
            and one.memory in (None, memory)
            and (not one.operations or operation in one.operations)
            and is_version_in(version, one.versions)
        )
        if fits:
            return one.preset
    raise KeyError(library)


@cache
def _load_choices() -> tuple[_Choice, ...]:
    # The file is shipped, so it is read without a model: 'commtune init' needn't import pydantic.
    document = load_shipped("spaces", "preset_choice", SpaceError)
    return tuple(_Choice(**entry) for entry in document.data["choices"])


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
