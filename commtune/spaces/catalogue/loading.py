"""Reads the catalogues that may have a name, and compares versions of libraries."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING

from commtune.documents.nearest import quote_value, suggest_nearest
from commtune.documents.yaml_document import (
    list_shipped,
    load_shipped,
    parse_document,
    shipped_file,
)
from commtune.errors import UnknownName

if TYPE_CHECKING:
    from commtune.spaces.catalogue.schema import Catalogue, Interaction, NotVariable, Variable

_FOLDER = "spaces/catalogue"
_CUTOFF = 0.75  # the least similarity of suggested names
_MOST_NEAR = 3
_VERSION = re.compile(r"\d+(\.\d+)*")


def list_libraries() -> list[str]:
    """Returns the sorted names of libraries with a catalogue."""
    return list(list_shipped(_FOLDER))


@cache
def _catalogue_text(library: str) -> str:
    """Returns the text of a shipped file, which is much faster to search than to parse."""
    return shipped_file(_FOLDER, library).read_text(encoding="utf-8")


@cache
def load_catalogue(library: str) -> Catalogue:
    """Loads the shipped catalogue of a library.

    Raises:
        UnknownName: there is none.
    """
    # Imported here, since `doctor` needs no catalogue if no variable of a library is set.
    from commtune.documents.validation import validate_document
    from commtune.spaces.catalogue.schema import Catalogue

    if library not in list_libraries():
        raise UnknownName(
            f"no library of the catalogue is called {quote_value(library)}",
            hint=suggest_nearest(library, list_libraries()),
        )
    # Tests of the shipped files check what the types can't express, to save time here.
    return validate_document(load_shipped(_FOLDER, library), Catalogue)


def _matches_pattern(name: str, pattern: str) -> bool:
    return name == pattern or ("*" in pattern and fnmatchcase(name, pattern))


@cache
def _names_in(library: str) -> tuple[str, ...]:
    """Returns the variables that a shipped file describes, without parsing all of it."""
    _, _, after = _catalogue_text(library).partition("\nvariables:\n")
    # Variables are indented by two spaces, up to the next key at the top level.
    inside = re.split(r"^(?=[a-z])", after, maxsplit=1, flags=re.MULTILINE)[0]
    return tuple(re.findall(r"^  ([A-Za-z_]\w*):", inside, flags=re.MULTILINE))


@dataclass(frozen=True)
class KnownVariable:
    """A variable in a catalogue.

    Attributes:
        name: its name in the catalogue, of which the requested name may be an alias.
    """

    catalogue: Catalogue
    name: str
    variable: Variable

    @property
    def interactions(self) -> dict[str, Interaction]:
        """Its interactions with other variables."""
        return _interactions_of(self.catalogue, self.name)


def add_variables(known: dict[str, KnownVariable], library: str) -> None:
    """Adds the variables of a library's catalogue to those of others, which take precedence.

    Raises:
        UnknownName: there is no such catalogue.
    """
    catalogue = load_catalogue(library)
    for name, variable in catalogue.variables.items():
        known.setdefault(name, KnownVariable(catalogue, name, variable))


@dataclass(frozen=True)
class NotRead:
    """A name that a library doesn't read, or no longer reads, with its entry."""

    catalogue: Catalogue
    entry: NotVariable


@dataclass(frozen=True)
class LookupResult:
    """The entries of all catalogues for a name.

    Attributes:
        known: an entry for each library that reads it.
        not_read: entries of libraries that don't read it.
        undescribed: libraries that read it but have no entry for it.
        elsewhere: interactions with it in catalogues that have no entry for it.
    """

    name: str
    known: tuple[KnownVariable, ...]
    not_read: tuple[NotRead, ...]
    undescribed: tuple[Catalogue, ...]
    elsewhere: tuple[tuple[Catalogue, str, Interaction], ...]

    def __bool__(self) -> bool:
        return bool(self.known or self.not_read or self.undescribed)


def look_up(name: str) -> LookupResult:
    """Looks up a name in the shipped catalogues."""
    files = [load_catalogue(library) for library in list_libraries() if _may_hold(library, name)]
    known = tuple(entry for file in files for entry in _known(file, name))
    not_read = tuple(
        NotRead(file, entry)
        for file in files
        for pattern, entry in file.not_variables.items()
        if _matches_pattern(name, pattern)
    )
    describing = {entry.catalogue.library for entry in known}
    elsewhere = tuple(
        (file, key, interaction)
        for file in files
        if file.library not in describing
        for key, interaction in _interactions_of(file, name).items()
    )
    undescribed = tuple(file for file in files if name in file.others)
    return LookupResult(name, known, not_read, undescribed, elsewhere)


def _known(file: Catalogue, name: str) -> Iterator[KnownVariable]:
    own = _own_spelling(file, name)
    for called, variable in file.variables.items():
        if called == own or own in variable.aliases:
            yield KnownVariable(file, called, variable)


def _own_spelling(file: Catalogue, name: str) -> str:
    """Returns the name with the catalogue's prefix, if the library accepts others too."""
    for prefix, others in file.other_prefixes.items():
        for other in others:
            if name.startswith(other) and f"{prefix}{name.removeprefix(other)}" in file.variables:
                return f"{prefix}{name.removeprefix(other)}"
    return name


def _interactions_of(file: Catalogue, name: str) -> dict[str, Interaction]:
    return {
        key: interaction
        for key, interaction in file.interactions.items()
        if any(_matches_pattern(name, pattern) for pattern in interaction.variables)
    }


def nearest_names(name: str) -> list[str]:
    """Returns similar names in libraries with its prefix, or in all; most similar first."""
    family = [
        library
        for library in list_libraries()
        if name.upper().startswith(variable_prefixes(library))
    ]
    folded = {
        known.casefold(): known for lib in family or list_libraries() for known in _names_in(lib)
    }
    # Tools of a library name its variables without the prefix: btl, RNDV_SCHEME.
    ends = [known for known in folded if name and known.endswith(f"_{name.casefold()}")]
    found = difflib.get_close_matches(name.casefold(), folded, n=_MOST_NEAR, cutoff=_CUTOFF)
    near = [*sorted(ends, key=len), *found]
    return [folded[known] for known in dict.fromkeys(near)][:_MOST_NEAR]


def _may_hold(library: str, name: str) -> bool:
    if name.startswith((*variable_prefixes(library), *_before_stars(library))):
        return True
    text = _catalogue_text(library)
    # The plain search is a hundred times faster, and mostly fails.
    return name in text and bool(re.search(rf"\b{re.escape(name)}\b", text))


@cache
def _before_stars(library: str) -> tuple[str, ...]:
    """Returns the prefixes of wildcard names such as OMP_MCA_*."""
    return tuple(set(re.findall(r"\b([A-Za-z]\w*_)\*", _catalogue_text(library))))


@cache
def variable_prefixes(library: str) -> tuple[str, ...]:
    """Returns all prefixes of a library's variables."""
    # Only the head of the file is parsed, since nearly all of it are variables.
    head = parse_document(_catalogue_text(library).partition("\nvariables:\n")[0], quick=True).data
    others = head.get("other_prefixes", {}).values()
    return (*head["prefixes"], *(prefix for listed in others for prefix in listed))


def all_prefixes() -> tuple[str, ...]:
    """Returns the prefixes of the variables of all libraries."""
    return tuple(prefix for one in list_libraries() for prefix in variable_prefixes(one))


def _as_numbers(version: str) -> tuple[int, ...]:
    """Returns the leading numbers of a version: (2, 30, 7) for 2.30.7-1."""
    found = _VERSION.match(version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def is_before_version(version: str, bound: str) -> bool:
    """Whether a version is older than a bound; 4.1.6 is not older than 4.1."""
    wanted = _as_numbers(bound)
    return _as_numbers(version)[: len(wanted)] < wanted


def is_after_version(version: str, bound: str) -> bool:
    """Whether a version is newer than a bound; 4.1.6 is not newer than 4.1."""
    wanted = _as_numbers(bound)
    return _as_numbers(version)[: len(wanted)] > wanted


def _is_of_vendor(found: Catalogue, variable: Variable, version: str) -> bool:
    """Whether a version with a variable must be a vendor's, with different version numbers.

    A vendor may ship a part of a library before a release has it: HPE's libfabric 1.15 has the
    provider cxi, releases have it since 1.21. It is unknown which of its variables such a version
    reads.
    """
    if variable.part is None:
        return False
    came = [v.since for v in found.variables.values() if v.part == variable.part]
    return all(since is not None and is_before_version(version, since) for since in came)


class KnownVersion:
    """The variables and values that a version of a library reads, by its catalogue.

    Variables of a part with its own versions, or from a vendor, are assumed to be read.
    """

    def __init__(self, catalogue: Catalogue, version: str) -> None:
        self._catalogue = catalogue
        self._version = version

    @property
    def is_newer(self) -> bool:
        """Whether its release series is newer than the newest that the catalogue covers."""
        series = ".".join(self._catalogue.checked.newest.split(".")[:2])
        return is_after_version(self._version, series)

    def lacks_name(self, name: str) -> str:
        """Returns why the version doesn't read a variable; empty if it does."""
        if since := self.find_later_since(name):
            return f"since {since}"
        if until := self.find_earlier_until(name):
            now = ", ".join(self._catalogue.variables[name].replaced_by)
            return f"until {until}, now {now}" if now else f"until {until}"
        return ""

    def find_later_since(self, name: str) -> str:
        """Returns the later version that a variable came with; empty if there is none."""
        variable = self._described(name)
        since = variable and variable.since
        return since if since and is_before_version(self._version, since) else ""

    def find_earlier_until(self, name: str) -> str:
        """Returns the earlier version that was the last with a variable; empty if none was."""
        variable = self._described(name)
        until = variable and variable.until
        return until if until and is_after_version(self._version, until) else ""

    def lacks_setting(self, name: str, value: str) -> str:
        """Returns why the version doesn't accept a value of a variable; empty if it does."""
        variable, why = self._described(name), self.lacks_name(name)
        if variable is None or why:
            return why
        came = [since for since, new in variable.values_since.items() if value in new]
        if came and all(is_before_version(self._version, since) for since in came):
            return f"since {came[0]}"
        return ""

    def _described(self, name: str) -> Variable | None:
        variable = self._catalogue.variables.get(name)
        if variable is None or variable.part is None:
            return variable
        newest = self._catalogue.parts[variable.part].newest
        has_own_versions = newest is not None and newest != self._catalogue.checked.newest
        is_vendors = _is_of_vendor(self._catalogue, variable, self._version)
        return None if has_own_versions or is_vendors else variable
