"""What the catalogue says, in words for people: for the command and for the documentation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from commtune.spaces.catalogue.schema import Catalogue, Level, Range, Role, Variable

_SENTENCE = re.compile(r".*?\.(?=\s|$)")
_BRIEF = 100  # letters of a sentence that a table takes whole


def range_text(numbers: Range | None) -> str:
    """A proposed range in words."""
    if numbers is None:
        return ""
    said = f"{numbers.least} to {numbers.greatest}"
    if numbers.powers_of_two:
        said += ", powers of two only"
    elif numbers.scale == "log2":
        said += ", by factors of 2"
    return said + (f"; also {', '.join(numbers.also)}" if numbers.also else "")


def default_text(variable: Variable) -> str:
    """The default in words."""
    return "unset: the library decides" if variable.default is None else variable.default or '""'


def versions_text(variable: Variable, catalogue: Catalogue) -> str:
    """From when to when it exists, as far as versions were looked at."""
    said = f"since {variable.since}" if variable.since else ""
    if variable.seen is not None:
        said = f"in {variable.seen} or earlier"
    if variable.until is not None:
        return f"{said}, last in {variable.until}".removeprefix(", ")
    return f"{said}, still in {catalogue.newest_of(variable)}".removeprefix(", ")


def needs_text(variable: Variable) -> str:
    """The machine-readable condition in words."""
    every = "; ".join(map(str, variable.needs))
    some = " or ".join(map(str, variable.needs_any))
    return "; ".join(filter(None, (every, some)))


def values_text(values: Iterable[str]) -> str:
    """Values in a row; one that has commas itself is quoted."""
    return ", ".join(f'"{value}"' if "," in value or not value else value for value in values)


def read_as_text(variable: Variable) -> str:
    """Other spellings, each with the value that it is taken for."""
    return ", ".join(f"{written} for {value}" for written, value in variable.read_as.items())


def danger_text(variable: Variable) -> str:
    """What can go wrong."""
    return ", ".join(f"{danger} ({danger.meaning})" for danger in variable.dangers)


def care_text(variable: Variable) -> str:
    """How much care it needs; empty for what is safe."""
    level = variable.level
    return "" if level is Level.SAFE else f"{level}: {level.meaning}"


def known_text(variable: Variable) -> str:
    """What an entry rests on, and whether the library's own documentation has it."""
    said = "in the library's documentation" if variable.documented else "not documented"
    return f"{' and '.join(known.meaning for known in variable.known_from)}; {said}"


def source_text(variable: Variable, catalogue: Catalogue) -> str:
    """The sources with their places."""
    named = [
        f"{catalogue.sources[key].removeprefix('general: ')}: {', '.join(places)}".rstrip(": ")
        for key, places in variable.source.items()
    ]
    return "; ".join(named)


def by_version(said: Mapping[str, str]) -> str:
    """What holds from which version on."""
    return "; ".join(f"{version}: {text}" for version, text in said.items())


def role_text(variable: Variable) -> str:
    """What it is for."""
    return f"{variable.role}: {variable.role.meaning}"


def brief_text(variable: Variable) -> str:
    """What it does: a sentence; of a long one what stands before its first colon or semicolon."""
    words = " ".join(variable.meaning.split())
    found = _SENTENCE.match(words)
    sentence = found[0] if found else words
    return sentence if len(sentence) <= _BRIEF else re.split(r"(?<=.{27})[:;] ", sentence)[0]


def mind_text(variable: Variable) -> str:
    """In a word or two what to know before it is set; nothing of what is safe to search."""
    level = "" if variable.level is Level.SAFE else str(variable.level)
    role = "" if variable.role is Role.TUNE else str(variable.role)
    until = f"last in {variable.until}" if variable.until is not None else ""
    return ", ".join(filter(None, (level, role, until)))
