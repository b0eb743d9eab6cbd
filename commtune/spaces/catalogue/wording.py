"""Words the entries of catalogues, for commands and documentation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from commtune.spaces.catalogue.schema import Catalogue, Range, Variable
from commtune.spaces.catalogue.words import Level, Role

_SENTENCE = re.compile(r".*?\.(?=\s|$)")
_BRIEF = 100  # the most characters of a sentence that a table shows as it is


def describe_variable(variable: Variable, catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    """Yields facts about a variable besides its meaning: labels with non-empty texts."""
    return ((label, text) for label, text in _facts(variable, catalogue) if text)


def _facts(variable: Variable, catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    yield "type", variable.type
    yield "values", list_values(variable.values) or variable.form
    yield "search", _describe_range(variable.range)
    if variable.restricted:
        yield "restricted", f"{list_values(variable.restricted)}: searched by opt_in only"
    yield "also read", ", ".join(f"{other} for {one}" for other, one in variable.read_as.items())
    default = variable.default
    yield "default", "unset: the library decides" if default is None else default or '""'
    yield "history", _list_by_version(variable.history)
    yield "versions", _describe_versions(variable, catalogue)
    newer = {version: list_values(values) for version, values in variable.values_since.items()}
    yield "new values", _list_by_version(newer)
    yield "also called", ", ".join(variable.aliases)
    yield "replaced by", ", ".join(variable.replaced_by)
    yield "effect", variable.condition
    needs_any = " or ".join(map(str, variable.needs_any))
    yield "needs", "; ".join(filter(None, [*map(str, variable.needs), needs_any]))
    yield "for", f"{', '.join(variable.operations)}; {variable.scope.meaning}"
    yield "dangers", ", ".join(f"{danger} ({danger.meaning})" for danger in variable.dangers)
    level, role = variable.level, variable.role
    yield "care", "" if level is Level.SAFE else f"{level}: {level.meaning}"
    yield "caution", variable.caution
    yield "note", variable.note
    yield "role", f"{role}: {role.meaning}"
    known_from = " and ".join(known.meaning for known in variable.known_from)
    documented = "in the library's documentation" if variable.documented else "not documented"
    yield "known from", f"{known_from}; {documented}"
    yield "source", catalogue.list_sources(variable)


def _describe_range(numbers: Range | None) -> str:
    if numbers is None:
        return ""
    said = f"{numbers.least} to {numbers.greatest}"
    if numbers.powers_of_two:
        said += ", powers of two only"
    elif numbers.scale == "log2":
        said += ", by factors of 2"
    return said + (f"; also {', '.join(numbers.also)}" if numbers.also else "")


def _describe_versions(variable: Variable, catalogue: Catalogue) -> str:
    said = f"since {variable.since}" if variable.since else ""
    if variable.seen is not None:
        said = f"in {variable.seen} or earlier"
    if variable.until is not None:
        return f"{said}, last in {variable.until}".removeprefix(", ")
    return f"{said}, still in {catalogue.newest_of(variable)}".removeprefix(", ")


def list_values(values: Iterable[str]) -> str:
    """Joins values with commas; a value that is empty or has commas is quoted."""
    return ", ".join(f'"{value}"' if "," in value or not value else value for value in values)


def _list_by_version(said: Mapping[str, str]) -> str:
    return "; ".join(f"{version}: {text}" for version, text in said.items())


def summarize_meaning(variable: Variable) -> str:
    """Returns the first sentence of the meaning; a long one ends at a colon or semicolon."""
    words = " ".join(variable.meaning.split())
    found = _SENTENCE.match(words)
    sentence = found[0] if found else words
    # A colon near the beginning ends a title rather than a clause.
    return sentence if len(sentence) <= _BRIEF else re.split(r"(?<=.{27})[:;] ", sentence)[0]


def summarize_care(variable: Variable) -> str:
    """Returns a few words on the care that a variable needs; empty if it is safe to search."""
    level = "" if variable.level is Level.SAFE else str(variable.level)
    role = "" if variable.role is Role.TUNE else str(variable.role)
    until = f"last in {variable.until}" if variable.until is not None else ""
    return ", ".join(filter(None, (level, role, until)))
