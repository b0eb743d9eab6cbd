"""``commtune spaces explain`` of a library, or of all variables whose names fit a pattern."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase

from commtune.commands import text
from commtune.spaces.catalogue import KnownVariable, list_libraries, load_catalogue
from commtune.spaces.catalogue.wording import brief_text, mind_text

_HEADER = ("variable", "library", "default", "mind", "what it does")
_LONGEST = 24  # letters of a default that a table shows


def find_described(asked: str) -> list[KnownVariable]:
    """The described variables that a library's name or a pattern with ``*`` means."""
    if "*" in asked:
        return [entry for entry in _all() if fnmatchcase(entry.name.upper(), asked.upper())]
    wanted = _letters(asked)
    return [
        entry
        for entry in _all()
        if wanted in (_letters(entry.catalogue.library), _letters(entry.catalogue.title))
    ]


def run(found: list[KnownVariable], *, json_output: bool) -> None:
    """Prints a line for each of the variables."""
    if json_output:
        print(json.dumps([_plain(entry) for entry in found], indent=2))
        return
    titles = list(dict.fromkeys(entry.catalogue.title for entry in found))
    rows = [_row(entry) for entry in found]
    columns = [i for i, name in enumerate(_HEADER) if name != "library" or len(titles) > 1]
    header, *shown = [tuple(row[i] for i in columns) for row in (_HEADER, *rows)]
    print(text.format_table(header, shown))
    count = f"{len(found)} variable{'' if len(found) == 1 else 's'}"
    print(f"\n{count} of {', '.join(titles)}; all that is known of one: spaces explain NAME")


def _all() -> Iterator[KnownVariable]:
    for library in list_libraries():
        file = load_catalogue(library)
        for name, variable in file.variables.items():
            yield KnownVariable(file, name, variable)


def _letters(name: str) -> str:
    return name.casefold().replace(" ", "").replace("-", "").replace("_", "")


def _row(entry: KnownVariable) -> tuple[str, ...]:
    default = entry.variable.default or ""
    shown = default if len(default) <= _LONGEST else f"{default[: _LONGEST - 3]}..."
    variable = entry.variable
    return entry.name, entry.catalogue.library, shown, mind_text(variable), brief_text(variable)


def _plain(entry: KnownVariable) -> dict[str, object]:
    variable = entry.variable
    return {
        "name": entry.name,
        "library": entry.catalogue.library,
        "type": str(variable.type),
        "default": variable.default,
        "level": str(variable.level),
        "role": str(variable.role),
        "meaning": variable.meaning,
    }
