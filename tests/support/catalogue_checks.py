"""What types can't say of a catalogue file: sources, parts and variables that aren't there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from commtune.documents.nearest import quote_value, suggest_nearest
from commtune.documents.validation import validate_document
from commtune.documents.yaml_document import Document, Where
from commtune.errors import DocumentError
from commtune.spaces.catalogue.loading import _matches_pattern, _names_in, list_libraries
from commtune.spaces.catalogue.schema import Catalogue, Need

_VERSION = re.compile(r"\d+(\.\d+)*")


def build_catalogue(document: Document) -> Catalogue:
    """The catalogue that a document describes.

    Raises:
        DocumentError: of the document's class, with file, line and hint: a wrong key or value, a
            source or part that isn't listed, a variable that isn't there.
    """
    found = validate_document(document, Catalogue)
    for check in (_sources, _parts, _names, _needs, _values, _versions, _interactions):
        for error in check(found, document):
            raise error
    return found


def _sources(found: Catalogue, document: Document) -> Iterator[DocumentError]:
    used: set[str] = set()
    for name, variable in found.variables.items():
        used |= set(variable.source)
        for key in variable.source:
            if key not in found.sources:
                yield document.error(
                    f"{name}: no source is called {quote_value(key)}",
                    ("variables", name, "source", key),
                    hint=suggest_nearest(key, found.sources),
                )
    for key in found.sources:
        if key not in used and not found.sources[key].startswith("general: "):
            yield document.error(
                f"source {quote_value(key)} is not used",
                ("sources", key),
                hint="leave it out; one that holds for the whole file begins with 'general: '",
            )


def _parts(found: Catalogue, document: Document) -> Iterator[DocumentError]:
    for name, variable in found.variables.items():
        if variable.part is not None and variable.part not in found.parts:
            yield document.error(
                f"{name}: no part is called {quote_value(variable.part)}",
                ("variables", name, "part"),
                hint=suggest_nearest(variable.part, found.parts),
            )


def _names(found: Catalogue, document: Document) -> Iterator[DocumentError]:
    taken: dict[str, str] = {}
    for name, where in _all_names(found):
        if name in taken:
            yield document.error(
                f"{quote_value(name)} stands here and under {taken[name]}",
                where,
                hint="name it once",
            )
        taken[name] = where[0] if len(where) < 3 else str(where[1])
        if not name.startswith(tuple(found.prefixes)) and where[0] == "variables":
            yield document.error(
                f"{quote_value(name)} begins with none of the file's prefixes",
                where,
                hint=f"prefixes: {', '.join(found.prefixes)}",
            )


def _all_names(found: Catalogue) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, variable in found.variables.items():
        yield name, ("variables", name)
        yield from ((alias, ("variables", name, "aliases")) for alias in variable.aliases)
    yield from ((name, ("not_variables", name)) for name in found.not_variables)
    yield from ((name, ("others",)) for name in found.others)


def _needs(found: Catalogue, document: Document) -> Iterator[DocumentError]:
    for name, variable in found.variables.items():
        for key, needs in (("needs", variable.needs), ("needs_any", variable.needs_any)):
            for i, need in enumerate(needs):
                yield from _need(found, document, need, ("variables", name, key, i))


def _need(
    found: Catalogue, document: Document, need: Need, where: Where
) -> Iterator[DocumentError]:
    if need.variable == where[1]:
        yield document.error(f"{need.variable} needs itself", where, hint="leave it out")
    elif need.variable not in found.variables:
        yield document.error(
            f"{quote_value(need.variable)} is not a variable of {found.library}",
            (*where, "variable"),
            hint=suggest_nearest(need.variable, found.variables),
        )


def _values(found: Catalogue, document: Document) -> Iterator[DocumentError]:
    for name, variable in found.variables.items():
        for key, values in (("values", variable.values), ("restricted", variable.restricted)):
            for i, value in enumerate(values):
                if value in values[:i] or (key == "restricted" and value in variable.values):
                    yield document.error(
                        f"{name}: the value {quote_value(value)} occurs twice",
                        ("variables", name, key, i),
                        hint="remove one; a restricted value is not among `values`",
                    )
        legal = (*variable.values, *variable.restricted)
        for written, value in variable.read_as.items():
            if written in legal or value not in legal:
                yield document.error(
                    f"{name}: {quote_value(written)} is no other spelling of {quote_value(value)}",
                    ("variables", name, "read_as", written),
                    hint="write SPELLING: VALUE; the value is a legal one, the spelling is not",
                )
        if variable.type == "choice" and not variable.values:
            yield document.error(
                f"{name} is a choice without values",
                ("variables", name),
                hint="add `values: [...]`, or make it `type: text`",
            )


def _versions(found: Catalogue, document: Document) -> Iterator[DocumentError]:
    for name, variable in found.variables.items():
        written = filter(None, (variable.seen, variable.since, variable.until))
        for version in [*variable.history, *variable.values_since, *written]:
            if not _VERSION.match(version):
                yield document.error(
                    f"{name}: {quote_value(version)} does not begin with a version",
                    ("variables", name),
                    hint="write it in numbers and dots; further words belong into `note`",
                )
        if variable.seen is not None and variable.since is not None:
            yield document.error(
                f"{name} has both `seen` and `since`",
                ("variables", name, "seen"),
                hint="write `since` where the version that it came with is known",
            )


def _interactions(found: Catalogue, document: Document) -> Iterator[DocumentError]:
    for key, interaction in found.interactions.items():
        for i, pattern in enumerate(interaction.variables):
            yield from _known(found, document, pattern, ("interactions", key, "variables", i))
    for key, wrong in found.not_variables.items():
        for i, name in enumerate(wrong.use):
            yield from _known(found, document, name, ("not_variables", key, "use", i))
    for key, variable in found.variables.items():
        for i, name in enumerate(variable.replaced_by):
            yield from _known(found, document, name, ("variables", key, "replaced_by", i))


def _known(
    found: Catalogue, document: Document, pattern: str, where: Where
) -> Iterator[DocumentError]:
    """Names of other libraries are looked up in the text of their files."""
    names = [*found.variables, *found.others]
    if any(_matches_pattern(name, pattern) for name in names):
        return
    if any(
        _matches_pattern(name, pattern) for other in list_libraries() for name in _names_in(other)
    ):
        return
    yield document.error(
        f"{quote_value(pattern)} is not a variable of any catalogue",
        where,
        hint=suggest_nearest(pattern, names),
    )
