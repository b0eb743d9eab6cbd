"""Which preset fits a library where nobody named a space: ``preset_choice.yaml`` says it."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from commtune.documents.shipped import load_shipped
from commtune.documents.validation import validate_document
from commtune.errors import SpaceError
from commtune.model import Operation
from commtune.spaces.schema import Model

Memory = Literal["host", "device"]


class _Choice(Model):
    preset: str
    library: str
    versions: str = ""
    memory: Memory | None = None
    operations: tuple[Operation, ...] = ()


class _Choices(Model):
    choices: Annotated[list[_Choice], Field(min_length=1)]


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
    for one in _load_choices():
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
    document = load_shipped("spaces", "preset_choice", SpaceError)
    return tuple(validate_document(document, _Choices).choices)


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
