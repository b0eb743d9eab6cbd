"""Findings: what papers say that they measured, for campaigns to see again or not."""

from commtune.systems.findings.loading import (
    NamedFinding,
    all_findings,
    build_findings,
    list_papers,
    read_findings,
)
from commtune.systems.findings.schema import Expected, Finding, FindingFile

#: Key of a campaign's settings that holds the name of its system's description.
DESCRIBED = "described"

__all__ = [
    "DESCRIBED",
    "Expected",
    "Finding",
    "FindingFile",
    "NamedFinding",
    "all_findings",
    "build_findings",
    "list_papers",
    "read_findings",
]
