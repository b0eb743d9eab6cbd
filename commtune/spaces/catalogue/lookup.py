"""Looks a name up in as few catalogue files as can hold it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from commtune.documents.yaml_document import parse_document
from commtune.spaces.catalogue.loading import (
    catalogue_text,
    list_libraries,
    load_catalogue,
    matches_pattern,
    names_in,
)
from commtune.spaces.catalogue.schema import Catalogue, Interaction, NotVariable, Variable

_CUTOFF = 0.75


@dataclass(frozen=True)
class KnownVariable:
    """A variable of a library.

    Attributes:
        name: what the catalogue calls it; the asked-for name may be an alias of it.
    """

    catalogue: Catalogue
    name: str
    variable: Variable

    @property
    def interactions(self) -> dict[str, Interaction]:
        """What holds between it and others."""
        return _interactions_of(self.catalogue, self.name)


@dataclass(frozen=True)
class NotRead:
    """A name that a library doesn't read, or not any more, with the truth about it."""

    catalogue: Catalogue
    pattern: str
    entry: NotVariable


@dataclass(frozen=True)
class LookupResult:
    """What all catalogues say of a name.

    Attributes:
        known: entries of that name, one for each library that reads it.
        not_read: what libraries say that don't.
        undescribed: libraries that read it, but have no entry for it.
        elsewhere: interactions that name it in catalogues that don't describe it.
    """

    name: str
    known: tuple[KnownVariable, ...] = ()
    not_read: tuple[NotRead, ...] = ()
    undescribed: tuple[Catalogue, ...] = ()
    elsewhere: tuple[tuple[Catalogue, str, Interaction], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.known or self.not_read or self.undescribed)


def look_up(name: str) -> LookupResult:
    """What the shipped catalogues say of a name."""
    files = [load_catalogue(library) for library in list_libraries() if _may_hold(library, name)]
    known = tuple(entry for file in files for entry in _known(file, name))
    not_read = tuple(
        NotRead(file, pattern, entry)
        for file in files
        for pattern, entry in file.not_variables.items()
        if matches_pattern(name, pattern)
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
    """The name with the prefix that the catalogue uses, where the library takes others too."""
    for prefix, others in file.other_prefixes.items():
        for other in others:
            if name.startswith(other) and f"{prefix}{name.removeprefix(other)}" in file.variables:
                return f"{prefix}{name.removeprefix(other)}"
    return name


def _interactions_of(file: Catalogue, name: str) -> dict[str, Interaction]:
    """The interactions of a catalogue that name a variable."""
    return {
        key: interaction
        for key, interaction in file.interactions.items()
        if any(matches_pattern(name, pattern) for pattern in interaction.variables)
    }


def nearest_names(name: str, *, limit: int = 3) -> list[str]:
    """Known names like a name, the likest first; those of its family, or of all libraries."""
    family = [
        library
        for library in list_libraries()
        if name.upper().startswith(variable_prefixes(library))
    ]
    folded = {
        known.casefold(): known for lib in family or list_libraries() for known in names_in(lib)
    }
    # Tools of a library name its variables without their beginning: btl, RNDV_SCHEME.
    ends = [known for known in folded if name and known.endswith(f"_{name.casefold()}")]
    found = difflib.get_close_matches(name.casefold(), folded, n=limit, cutoff=_CUTOFF)
    near = [*sorted(ends, key=len), *found]
    return [folded[known] for known in dict.fromkeys(near)][:limit]


def known_spellings(library: str) -> tuple[str, ...]:
    """Every name that a library is known to read, described or not."""
    file = load_catalogue(library)
    aliases = (alias for variable in file.variables.values() for alias in variable.aliases)
    return (*file.variables, *aliases, *file.others)


def _may_hold(library: str, name: str) -> bool:
    if name.startswith((*variable_prefixes(library), *_before_stars(library))):
        return True
    text = catalogue_text(library)
    # The plain search is a hundred times as quick, and mostly says no.
    return name in text and bool(re.search(rf"\b{re.escape(name)}\b", text))


@cache
def _before_stars(library: str) -> tuple[str, ...]:
    """What stands before the star of names that mean many: OMP_MCA_*."""
    return tuple(set(re.findall(r"\b([A-Za-z]\w*_)\*", catalogue_text(library))))


@cache
def variable_prefixes(library: str) -> tuple[str, ...]:
    """What the variables of a library begin with, in every spelling that it takes."""
    head = parse_document(catalogue_text(library).partition("\nvariables:\n")[0], quick=True).data
    others = head.get("other_prefixes", {}).values()
    return (*head["prefixes"], *(prefix for listed in others for prefix in listed))
