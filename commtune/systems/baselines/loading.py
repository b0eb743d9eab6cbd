"""Reads the shipped files of baselines, and finds sets in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from commtune.errors import DocumentError, UnknownName
from commtune.nearest import quoted, suggestion
from commtune.spaces import Document, load_document, parse_document, validated
from commtune.systems.baselines.schema import PREFIX, Baseline, BaselineFile

_FILES = resources.files("commtune.systems") / "baselines"


@dataclass(frozen=True)
class NamedSet:
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


def sites() -> list[str]:
    """The names of the shipped files, sorted."""
    names = [entry.name for entry in _FILES.iterdir()]
    return sorted(n.removesuffix(".yaml") for n in names if n.endswith(".yaml"))


@cache
def baselines() -> Mapping[str, NamedSet]:
    """All shipped sets by name, in order of files and of what stands in them."""
    found: dict[str, NamedSet] = {}
    for site in sites():
        file = Path(str(_FILES / f"{site}.yaml"))
        document = parse_document(file.read_text(encoding="utf-8"), file, quick=True)
        found |= _sets(build_baselines(document))
    return found


def baseline(name: str) -> NamedSet:
    """A shipped set, by its name, with or without ``baseline:`` before it.

    Raises:
        UnknownName: none is called so.
    """
    word = name.removeprefix(PREFIX)
    if word not in baselines():
        raise UnknownName(
            f"no baseline is called {quoted(word)}",
            hint=f"{suggestion(word, baselines())}; all: commtune systems baselines",
        )
    return baselines()[word]


def read_baselines(file: Path) -> Mapping[str, NamedSet]:
    """The sets of a file, by name.

    Raises:
        DocumentError: it can't be read or is wrong, with file, line and hint.
    """
    return _sets(build_baselines(load_document(file)))


def build_baselines(document: Document) -> BaselineFile:
    """The file that a document describes.

    Raises:
        DocumentError: of the document's class, with file, line and hint: a wrong key or value, a
            source or set that isn't there, a variable twice, a word of `elsewhere` for nothing.
    """
    found = validated(document, BaselineFile)
    for check in (_check_sources, _check_below, _check_variables):
        for error in check(found, document):
            raise error
    return found


def _sets(file: BaselineFile) -> dict[str, NamedSet]:
    found: dict[str, NamedSet] = {}
    for name, entry in file.sets.items():
        below = file.sets[entry.on_top_of].environment if entry.on_top_of else {}
        settings = {**below, **entry.environment}
        elsewhere = {v: file.elsewhere[v] for v in settings if v in file.elsewhere}
        source = file.sources[entry.source]
        found[name] = NamedSet(name, file.site, source, entry, settings, elsewhere)
    return found


def _check_sources(found: BaselineFile, document: Document) -> Iterator[DocumentError]:
    for name, entry in found.sets.items():
        if entry.source not in found.sources:
            yield document.error(
                f"{name}: no source is called {quoted(entry.source)}",
                ("sets", name, "source"),
                hint=suggestion(entry.source, found.sources),
            )
    used = {entry.source for entry in found.sets.values()}
    for key in found.sources:
        if key not in used:
            yield document.error(
                f"source {quoted(key)} is not used", ("sources", key), hint="leave it out"
            )


def _check_below(found: BaselineFile, document: Document) -> Iterator[DocumentError]:
    for name, entry in found.sets.items():
        below = found.sets.get(entry.on_top_of) if entry.on_top_of else None
        where = ("sets", name, "on_top_of")
        if entry.on_top_of and (below is None or entry.on_top_of == name):
            others = [other for other in found.sets if other != name]
            yield document.error(
                f"{name}: no other set here is called {quoted(entry.on_top_of)}",
                where,
                hint=suggestion(entry.on_top_of, others),
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
