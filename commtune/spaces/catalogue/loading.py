"""Finds and reads catalogue files, and compares the versions in them."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources

from commtune.documents.nearest import quote_value, suggest
from commtune.documents.shipped import list_shipped, load_shipped
from commtune.documents.validation import validate_document
from commtune.errors import UnknownName
from commtune.spaces.catalogue.schema import Catalogue, Variable

_FOLDER = "spaces/catalogue"
_VERSION = re.compile(r"\d+(\.\d+)*")


def list_libraries() -> list[str]:
    """The libraries that have a catalogue, sorted."""
    return list(list_shipped(_FOLDER))


@cache
def catalogue_text(library: str) -> str:
    """The text of a shipped file; looking a name up in it is much quicker than reading it."""
    return (
        resources.files("commtune")
        .joinpath(_FOLDER, f"{library}.yaml")
        .read_text(encoding="utf-8")
    )


@cache
def load_catalogue(library: str) -> Catalogue:
    """The shipped catalogue of a library.

    Raises:
        UnknownName: there is none.
    """
    if library not in list_libraries():
        raise UnknownName(
            f"no library of the catalogue is called {quote_value(library)}",
            hint=suggest(library, list_libraries()),
        )
    # What types can't say of these files, their tests check: it would cost each look-up time.
    return validate_document(load_shipped(_FOLDER, library), Catalogue)


def matches_pattern(name: str, pattern: str) -> bool:
    """Whether a name is meant by a pattern of the catalogue."""
    return name == pattern or ("*" in pattern and fnmatchcase(name, pattern))


@cache
def names_in(library: str) -> tuple[str, ...]:
    """The variables that a shipped file describes, found without reading all of it."""
    _, _, after = catalogue_text(library).partition("\nvariables:\n")
    inside = re.split(r"^(?=[a-z])", after, maxsplit=1, flags=re.MULTILINE)[0]
    return tuple(re.findall(r"^  ([A-Za-z_]\w*):", inside, flags=re.MULTILINE))


def as_numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: (2, 30, 7) for 2.30.7-1."""
    found = _VERSION.match(version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def is_before_version(version: str, bound: str) -> bool:
    """Whether a version is older than a bound; 4.1.6 is not older than 4.1."""
    wanted = as_numbers(bound)
    return as_numbers(version)[: len(wanted)] < wanted


def is_after_version(version: str, bound: str) -> bool:
    """Whether a version is newer than a bound; 4.1.6 is not newer than 4.1."""
    wanted = as_numbers(bound)
    return as_numbers(version)[: len(wanted)] > wanted


def is_of_vendor(found: Catalogue, variable: Variable, version: str) -> bool:
    """Whether who has a variable in a version has it from a vendor, whose numbers differ.

    A whole part may come with one vendor's libraries before it is in anybody's releases: HPE's
    libfabric 1.15 has the provider cxi, the releases have it from 1.21 on. What such a version
    reads of that part isn't known.
    """
    if variable.part is None:
        return False
    came = [v.since for v in found.variables.values() if v.part == variable.part]
    return all(since is not None and is_before_version(version, since) for since in came)
