"""Findings: published measurements on machines.

A finding is the effect of a setting, which a campaign may reproduce, or an observation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field

from commtune.documents.validation import validate_document
from commtune.documents.yaml_document import Document, list_shipped, load_shipped
from commtune.spaces.schema import IN_DIGITS, Model, Text, Truth, VariableName, VersionOne
from commtune.systems.schema import Count, Name, Size

_FOLDER = "systems/findings"


class _Expected(Model):
    """The effect of a setting, relative to the default."""

    of: Literal["bandwidth", "latency", "time"]
    """The metric of the source; the factor is a ratio of times in any case."""
    factor: Annotated[float, Field(gt=0), IN_DIGITS]
    """Speedup; below 1, a slowdown."""
    up_to: Truth = False
    """Whether the factor is the largest that was measured, not a typical one."""


class Finding(Model):
    """A published measurement."""

    says: str
    """The result, in words."""
    systems: list[Name]
    """Names of systems, as in descriptions; empty for none in particular."""
    libraries: list[Name]
    """Names of libraries, as in search spaces; empty for none in particular."""
    operations: list[str] = Field(default_factory=list)
    """Operations; empty if the source names none."""
    least_bytes: Size | None = None
    """Smallest message size; omitted if the source names none."""
    most_bytes: Size | None = None
    """Largest message size; omitted if the source names none."""
    least_nodes: Count | None = None
    """Smallest number of nodes."""
    most_nodes: Count | None = None
    """Largest number of nodes."""
    setting: dict[VariableName, Text] = Field(default_factory=dict)
    """The variables that were set; empty for an observation."""
    campaigns: list[dict[str, Any]] = Field(default_factory=list)
    """For an observation: the campaigns whose times show it, each by the keys of its campaign file
    that differ. `active: all` means all GPUs of a node."""
    not_repeated: str = ""
    """For an observation: why commtune has no campaigns for it."""
    also: list[dict[VariableName, Text]] = Field(default_factory=list)
    """Equivalent settings."""
    expected: _Expected | None = None
    """The effect; only with a setting."""
    source: Name
    """Name of an entry in `sources`."""
    section: Text
    """Section of the source."""
    note: str = ""
    """Remarks."""


class FindingFile(Model):
    """The findings of one paper."""

    findings: VersionOne
    """Version of this format."""
    sources: Annotated[dict[Name, str], Field(min_length=1)]
    """The paper: its citation, by name."""
    found: Annotated[dict[Name, Finding], Field(min_length=1)]
    """The findings by name."""


@dataclass(frozen=True)
class NamedFinding:
    """A finding with its name and the citation of its source."""

    name: str
    source: str
    finding: Finding


@cache
def all_findings() -> tuple[NamedFinding, ...]:
    """Returns all shipped findings, in the order of files and of findings in them."""
    papers = (load_shipped(_FOLDER, paper) for paper in list_shipped(_FOLDER))
    return tuple(finding for paper in papers for finding in _findings(paper))


def _findings(document: Document) -> Iterator[NamedFinding]:
    file = validate_document(document, FindingFile)
    for name, finding in file.found.items():
        yield NamedFinding(name, file.sources[finding.source], finding)
