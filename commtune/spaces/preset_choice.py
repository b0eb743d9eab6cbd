"""Which shipped space goes with what a campaign measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from commtune.documents.yaml_document import load_shipped
from commtune.errors import SpaceError

#: Where a library is given its buffers.
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
    """The name of the preset for what a campaign measures.

    Args:
        version: empty where nobody knows it; then the newest fits.
        memory: where the library is given its buffers.

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
    # A file of ours, without a model: 'commtune init' doesn't wait for pydantic.
    document = load_shipped("spaces", "preset_choice", SpaceError)
    return tuple(_Choice(**entry) for entry in document.data["choices"])


def is_version_in(version: str, versions: str) -> bool:
    """Whether a version is in a range such as ``>=5.0,<6``; yes where either can't be read."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # slow to import
    from packaging.version import InvalidVersion

    if not version:
        return True
    try:
        return SpecifierSet(versions).contains(version, prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return True
