"""The parts of all rule formats: files, the variables that load them, and remarks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commtune import formatting as text
from commtune.export.document import ExportDocument, comment_lines, one_line
from commtune.export.rules.table import RuleTable
from commtune.model import Verdict
from commtune.tuner.outcome.displayed_points import overall_points

#: The first line of a rule file, with campaign and format.
FIRST_LINE = re.compile(r"\W*commtune rules of campaign (\S+) \(([\w-]+)\): .*")


@dataclass(frozen=True)
class RuleFile:
    """The text of a file, and the variable that gets its path."""

    variable: str
    text: str


@dataclass(frozen=True)
class RuleFormat:
    """A format of rule files.

    Attributes:
        library, versions: the library that reads it, such as ``mpich`` and ``>=5.0,<5.1``.
        expressible: returns the variables that a file can express for an operation.
        write: returns the files, the main one first, from table, remarks and the library's folder.
        switches: variables that make the library read rule files.
        between_nodes: why it doesn't support several nodes; empty if it does.
        release_bound: what ties files to a version of the library, in words that precede its
            name: ``the file copies``; empty if they are for all versions.
        untried: why it was not tested with a library that reads it, and what was tested instead;
            empty if it was.
        replaces_table: whether an operation's rules replace the library's own table, at all sizes
            and numbers of ranks.
    """

    name: str
    library: str
    versions: str
    expressible: Callable[[str], frozenset[str]]
    write: Callable[[RuleTable, list[str], Path | None], list[RuleFile]]
    switches: Mapping[str, str] = field(default_factory=dict)
    between_nodes: str = ""
    release_bound: str = ""
    untried: str = ""
    replaces_table: bool = False


@dataclass(frozen=True)
class RuleExport:
    """An exported rule table.

    Attributes:
        files: the rule files, the main one first.
        environment: variables to set besides those with the paths of files.
    """

    files: tuple[RuleFile, ...]
    environment: Mapping[str, str]

    def paths(self, file: Path) -> list[Path]:
        """Returns the paths of the files: further ones are beside the first, and numbered."""
        return [
            file if number == 0 else file.with_name(f"{file.stem}-{number + 1}{file.suffix}")
            for number in range(len(self.files))
        ]

    def load(self, file: Path) -> dict[str, str]:
        """Returns all variables to set, given the path of the main file."""
        named = zip(self.files, self.paths(file), strict=True)
        return {**self.environment, **{one.variable: str(path) for one, path in named}}


def commented_json(remarks: list[str], tree: Mapping[str, Any]) -> str:
    """Returns JSON with comments, for readers that skip lines with two slashes in front."""
    return comment_lines(remarks, "//") + json.dumps(tree, indent=1) + "\n"


WITHOUT_TABLE = "other communicators lose the library's own table, and may be slower"
_NOT_PROVEN = [
    "WARNING: NOT PROVEN. Speedups below that begin under 1 are likely; the campaign could not",
    "show them.",
]


def describe_rules(table: RuleTable, format: RuleFormat) -> list[str]:
    """Returns lines on rules, origin and speedups; the first two are title and purpose."""
    first = table.documents[0]
    rule = table.rules[0]
    where = text.format_ranks(rule.ranks, rule.nodes)
    operations = ", ".join(table.operations)
    is_likely = any(d.profile.verdict is Verdict.LIKELY for d in table.documents)
    others = "others, and other sizes, are left to the library."
    if format.replaces_table:
        others = f"{WITHOUT_TABLE}. Other sizes get the nearest rule."
    untried = [f"NOT TRIED: {format.untried}."] if format.untried else []
    lines = [
        f"commtune rules of campaign {first.campaign} ({format.name}): {operations}, {where}",
        f"For {table.library} {format.versions}; measured with {table.version}",
        f"on {first.system} (fingerprint {first.fingerprint}), {first.created}.",
        *(_NOT_PROVEN if is_likely else []),
        *untried,
        f"For communicators of {where} only; {others}",
        *(line for document in table.documents for line in _evidence(document)),
    ]
    return [one_line(line) for line in lines]


def _evidence(document: ExportDocument) -> Iterator[str]:
    profile = document.profile
    sizes = text.format_sizes(profile.bytes_low, profile.bytes_high)
    yield f"{profile.operation}, {sizes}: {profile.configuration}"
    if special := text.describe_conditions(profile.conditions):
        yield f"  {special}"
    if profile.note and not profile.configuration.is_default:
        yield f"  {profile.note}"
    for size, point in sorted(overall_points(profile.points_inside).items()):
        yield f"  {text.describe_speedup(point.gain, size)}"
    yield from (f"  {line}" for line in document.borders())
