"""Reads the shipped files of baselines, and finds sets in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from commtune.documents.nearest import quote_value, suggest
from commtune.documents.shipped import list_shipped, load_shipped
from commtune.documents.validation import validate_document
from commtune.documents.yaml_document import Document, load_document
from commtune.errors import DocumentError, UnknownName
from commtune.systems.reference_settings.schema import Baseline, BaselineFile, strip_prefix

_FOLDER = "systems/reference_settings"


@dataclass(frozen=True)
class ReferenceSettings:
    """A set, by its name.

    Attributes:
        source: what and where its source is, in words.
        settings: all that it sets: what it is set on top of, and its own.
        elsewhere: variables of it that no catalogue describes, and what reads them.
    """

    name: str
    site: str
    source: str
    baseline: Baseline
    settings: Mapping[str, str]
    elsewhere: Mapping[str, str]

    def is_for(self, system: str, library: str) -> bool:
        """Whether it may be tried as it stands on a system, with a library."""
        found = self.baseline
        return found.fit and system in found.systems and library in found.libraries


def list_sites() -> list[str]:
    """The names of the shipped files, sorted."""
    return list(list_shipped(_FOLDER))


@cache
def all_reference_settings() -> Mapping[str, ReferenceSettings]:
    """All shipped sets by name, in order of files and of what stands in them."""
    found: dict[str, ReferenceSettings] = {}
    for site in list_sites():
        found |= _sets(build_reference_settings(load_shipped(_FOLDER, site)))
    return found


def find_reference_settings(name: str) -> ReferenceSettings:
    """A shipped set, by its name, with or without ``reference:`` before it.

    Raises:
        UnknownName: none is called so.
    """
    word = strip_prefix(name)
    if word not in all_reference_settings():
        raise UnknownName(
            f"no reference settings are called {quote_value(word)}",
            hint=suggest(word, all_reference_settings())
            + "; all: commtune systems reference-settings",
        )
    return all_reference_settings()[word]


def read_reference_settings(file: Path) -> Mapping[str, ReferenceSettings]:
    """The sets of a file, by name.

    Raises:
        DocumentError: it can't be read or is wrong, with file, line and hint.
    """
    return _sets(build_reference_settings(load_document(file)))


def build_reference_settings(document: Document) -> BaselineFile:
    """The file that a document describes.

    Raises:
        DocumentError: of the document's class, with file, line and hint: a wrong key or value, a
            source or set that isn't there, a variable twice, a word of `elsewhere` for nothing.
    """
    found = validate_document(document, BaselineFile)
    for check in (_check_sources, _check_below, _check_variables):
        for error in check(found, document):
            raise error
    return found


def _sets(file: BaselineFile) -> dict[str, ReferenceSettings]:
    found: dict[str, ReferenceSettings] = {}
    for name, entry in file.sets.items():
        below = file.sets[entry.on_top_of].environment if entry.on_top_of else {}
        settings = {**below, **entry.environment}
        elsewhere = {v: file.elsewhere[v] for v in settings if v in file.elsewhere}
        source = file.sources[entry.source]
        found[name] = ReferenceSettings(name, file.site, source, entry, settings, elsewhere)
    return found


def _check_sources(found: BaselineFile, document: Document) -> Iterator[DocumentError]:
    for name, entry in found.sets.items():
        if entry.source not in found.sources:
            yield document.error(
                f"{name}: no source is called {quote_value(entry.source)}",
                ("sets", name, "source"),
                hint=suggest(entry.source, found.sources),
            )
    used = {entry.source for entry in found.sets.values()}
    for key in found.sources:
        if key not in used:
            yield document.error(
                f"source {quote_value(key)} is not used", ("sources", key), hint="leave it out"
            )


def _check_below(found: BaselineFile, document: Document) -> Iterator[DocumentError]:
    for name, entry in found.sets.items():
        below = found.sets.get(entry.on_top_of) if entry.on_top_of else None
        where = ("sets", name, "on_top_of")
        if entry.on_top_of and (below is None or entry.on_top_of == name):
            others = [other for other in found.sets if other != name]
            yield document.error(
                f"{name}: no other set here is called {quote_value(entry.on_top_of)}",
                where,
                hint=suggest(entry.on_top_of, others),
            )
        if below is not None and below.on_top_of:
            yield document.error(
                f"{name}: {entry.on_top_of} is set on top of another itself",
                where,
                hint=f"name {below.on_top_of}, and repeat what {entry.on_top_of} sets",
            )


def _check_variables(found: BaselineFile, document: Document) -> Iterator[DocumentError]:
    used = {v for entry in found.sets.values() for v in (*entry.environment, *entry.fill_in)}
    for name, entry in found.sets.items():
        for variable in entry.fill_in:
            if variable in entry.environment:
                yield document.error(
                    f"{name}: {variable} has a value, so there is nothing to fill in",
                    ("sets", name, "fill_in", variable),
                    hint="keep it in one of the two",
                )
    for variable in found.elsewhere:
        if variable not in used:
            yield document.error(
                f"no set has {variable}", ("elsewhere", variable), hint="leave it out"
            )
