"""Reads the shipped files of findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from commtune.documents.nearest import quote_value, suggest
from commtune.documents.shipped import list_shipped, load_shipped
from commtune.documents.validation import validate_document
from commtune.documents.yaml_document import Document, load_document
from commtune.errors import DocumentError
from commtune.systems.findings.schema import Finding, FindingFile

_FOLDER = "systems/findings"


@dataclass(frozen=True)
class NamedFinding:
    """A finding, by its name, with its source in words."""

    name: str
    source: str
    finding: Finding


def list_papers() -> list[str]:
    """The names of the shipped files, sorted."""
    return list(list_shipped(_FOLDER))


@cache
def all_findings() -> tuple[NamedFinding, ...]:
    """All shipped findings, in order of files and of what stands in them."""
    found: list[NamedFinding] = []
    for paper in list_papers():
        found += _named(build_findings(load_shipped(_FOLDER, paper)))
    return tuple(found)


def read_findings(file: Path) -> tuple[NamedFinding, ...]:
    """The findings of a file.

    Raises:
        DocumentError: it can't be read or is wrong, with file, line and hint.
    """
    return tuple(_named(build_findings(load_document(file))))


def build_findings(document: Document) -> FindingFile:
    """The file that a document describes.

    Raises:
        DocumentError: of the document's class, with file, line and hint: a wrong key or value, a
            source that isn't listed, an effect without a setting, or bounds the wrong way round.
    """
    file = validate_document(document, FindingFile)
    for check in (_check_sources, _check_expected, _check_bounds):
        for error in check(file.found, file.sources, document):
            raise error
    return file


def _named(file: FindingFile) -> Iterator[NamedFinding]:
    for name, finding in file.found.items():
        yield NamedFinding(name, file.sources[finding.source], finding)


def _check_sources(
    found: Mapping[str, Finding], sources: Mapping[str, str], document: Document
) -> Iterator[DocumentError]:
    for name, finding in found.items():
        if finding.source not in sources:
            yield document.error(
                f"{name}: no source is called {quote_value(finding.source)}",
                ("found", name, "source"),
                hint=suggest(finding.source, sources),
            )
    for key in sources.keys() - {finding.source for finding in found.values()}:
        yield document.error(
            f"source {quote_value(key)} is not used", ("sources", key), hint="leave it out"
        )


def _check_expected(
    found: Mapping[str, Finding], sources: Mapping[str, str], document: Document
) -> Iterator[DocumentError]:
    del sources
    for name, finding in found.items():
        if bool(finding.setting) != (finding.expected is not None):
            yield document.error(
                f"{name} has `setting` or `expected` without the other",
                ("found", name, "setting" if finding.setting else "expected"),
                hint="an effect is of a setting; what has neither is an observation",
            )


def _check_bounds(
    found: Mapping[str, Finding], sources: Mapping[str, str], document: Document
) -> Iterator[DocumentError]:
    del sources
    for name, finding in found.items():
        for what in ("bytes", "nodes"):
            least, most = getattr(finding, f"least_{what}"), getattr(finding, f"most_{what}")
            if least is not None and most is not None and least > most:
                yield document.error(
                    f"{name}: least_{what} is above most_{what}",
                    ("found", name, f"least_{what}"),
                    hint="turn them round",
                )
