"""Finds and reads search spaces: the shipped presets and users' own files."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from commtune.documents.nearest import quote_value, suggest_nearest
from commtune.documents.validation import validate_document, validate_part
from commtune.documents.yaml_document import (
    Document,
    Place,
    Where,
    is_path,
    list_shipped,
    load_document,
    load_shipped,
    require_shipped,
    shipped_file,
)
from commtune.errors import SpaceError
from commtune.spaces.building import build_constraints, refuse_long
from commtune.spaces.catalogue_facts import add_conditions, complete_document, facts_of
from commtune.spaces.customizing import SpaceEditor, in_order
from commtune.spaces.parameter import Parameter, Size
from commtune.spaces.schema import SpaceDocument
from commtune.spaces.space import Space
from commtune.spaces.version_filter import remove_parameters

if TYPE_CHECKING:
    from commtune.spaces.catalogue.loading import KnownVariable

_PRESETS, _PARTS = "spaces/presets", "spaces/presets/parts"
#: Presets that come in sizes are found by their text, which is faster than to parse all files.
_SIZED = re.compile(r"\bsize: (quick|thorough)\b")
_INCLUDED = re.compile(r"^include: \[(.*)\]$", re.MULTILINE)


def list_presets() -> list[str]:
    """Returns the sorted names of the shipped spaces; one in three sizes has three names."""
    return sorted(name for family in list_shipped(_PRESETS) for name in _names(family))


@cache
def _names(family: str) -> tuple[str, ...]:
    if not _SIZED.search(preset_text(family)):
        return (family,)
    return tuple(family if size is Size.STANDARD else f"{family}-{size}" for size in Size)


def split_preset(name: str) -> tuple[str, Size]:
    """Returns the family and the size that the name of a shipped space says."""
    for size in (Size.QUICK, Size.THOROUGH):
        family = name.removesuffix(f"-{size}")
        if family != name and family in list_shipped(_PRESETS):
            return family, size
    return name, Size.STANDARD


@cache
def preset_text(name: str) -> str:
    """Returns the text of a shipped space and its parts: to search it is faster than to parse."""
    family, _ = split_preset(name)
    text = shipped_file(_folder_of(family), family).read_text(encoding="utf-8")
    parts = [part for listed in _INCLUDED.findall(text) for part in listed.split(",")]
    return "\n".join([text, *(preset_text(part.strip()) for part in parts)])


def load_space(name: str | Path) -> Space:
    """Loads a space, by the name of a preset or the path of a file.

    A word without a slash that doesn't end in .yaml or .yml is the name of a preset.

    Raises:
        UnknownName: no preset has that name.
        SpaceError: the file can't be read or is invalid, with file, line and hint.
    """
    text = str(name)
    if is_path(name):
        return build_space(load_document(Path(name), SpaceError))
    require_shipped("space", text, list_presets())
    family, size = split_preset(text)
    return replace(_of_size(_shipped_whole(family), size), name=text)


@cache  # of three sizes
def _shipped_whole(family: str) -> Space:
    return _Building(_shipped(family)).whole()


def _folder_of(name: str) -> str:
    return _PARTS if name in list_shipped(_PARTS) else _PRESETS


@cache  # many spaces include the same
def _shipped(name: str) -> Document:
    return load_shipped(_folder_of(name), name, SpaceError)


def build_space(document: Document, size: Size = Size.STANDARD) -> Space:
    """Builds the space that a document describes, with the files it includes, in a size.

    Raises:
        DocumentError: of the document's class, with file, line and hint.
    """
    document.require_kind("space")
    return _of_size(_Building(document).whole(), size)


def _of_size(whole: Space, size: Size) -> Space:
    larger = [p.name for p in (*whole.parameters, *whole.left_out.values()) if size < p.size]
    return remove_parameters(whole, larger)


class _Building:
    """Builds a space from its file and the files that it includes."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._facts: dict[str, KnownVariable] = {}
        self._places: dict[str, Place] = {}
        self._models: list[tuple[Document, SpaceDocument]] = []
        self._read(document, ())

    def whole(self) -> Space:
        """Returns the space with the parameters of all sizes."""
        pinned = {n: v for _, model in self._models for n, v in model.pin.items()}
        own = self._models[-1][1]
        space = Space(
            name=own.name,
            version=own.version,
            library=own.library,
            parameters=(),
            versions=own.versions,
            operations=tuple(own.operations),
            summary=own.summary,
            pinned=pinned,
        )
        for document, model in self._models:
            refuse_long(model.pin, Place(document) / "pin")
            work = SpaceEditor(space, Place(document))
            work.add(model.parameters, Place(document) / "parameters")
            found = build_constraints(
                model.forbidden, model.relations, work.space.declared, Place(document)
            )
            work.space = replace(work.space, constraints=(*space.constraints, *found))
            work.require_default(Place(document) / "forbidden")
            space = work.space
        return self._conditioned(space)

    def _read(self, document: Document, above: tuple[Path | None, ...]) -> None:
        """Reads a file after those that it includes."""
        if document.data is None:
            validate_document(document, SpaceDocument)  # its error says what to begin with
        facts = facts_of(document)
        model = validate_part(document, complete_document(document, facts), SpaceDocument)
        for i, name in enumerate(model.include):
            included = self._included(document, name, ("include", i))
            if included.file in (*above, document.file):
                raise document.error(
                    f"{quote_value(name)} includes itself", ("include", i), hint="leave it out"
                )
            if all(included.file != read.file for read, _ in self._models):
                self._read(included, (*above, document.file))
        self._facts |= {name: fact for name, fact in facts.items() if name not in self._facts}
        for i, parameter in enumerate(model.parameters):
            self._places[parameter.name] = Place(document) / "parameters" / i
        self._models.append((document, model))

    def _included(self, document: Document, name: str, where: Where) -> Document:
        if not is_path(name):
            if name in (*list_shipped(_PRESETS), *list_shipped(_PARTS)):
                return _shipped(name)
            raise document.error(
                f"no space is called {quote_value(name)}",
                where,
                hint=suggest_nearest(name, list_shipped(_PRESETS))
                + "; a file is named with its ending",
            )
        folder = document.file.parent if document.file is not None else Path()
        return load_document(folder / name, type(document.error("")))

    def _conditioned(self, space: Space) -> Space:
        def with_condition(parameter: Parameter) -> Parameter:
            return add_conditions(parameter, self._facts, space, self._places[parameter.name])

        parameters = [with_condition(parameter) for parameter in space.parameters]
        left_out = {name: with_condition(p) for name, p in space.left_out.items()}
        ordered = in_order(parameters, Place(self._document) / "parameters")
        return replace(space, parameters=ordered, left_out=left_out)
