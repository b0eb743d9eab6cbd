"""Finds and reads search spaces: the shipped presets and people's own files."""

from __future__ import annotations

from dataclasses import replace
from importlib import resources
from pathlib import Path

from commtune.errors import SpaceError, UnknownName
from commtune.nearest import quoted, suggestion
from commtune.spaces.building import build_constraints
from commtune.spaces.customizing import Customizing, require_default
from commtune.spaces.document import Document, load_document, parse_document
from commtune.spaces.explaining import validated
from commtune.spaces.schema import SpaceDocument
from commtune.spaces.space import Space

_PRESETS = resources.files("commtune.spaces") / "presets"


def presets() -> list[str]:
    """The names of the shipped spaces, sorted."""
    names = [entry.name for entry in _PRESETS.iterdir()]
    return sorted(n.removesuffix(".yaml") for n in names if n.endswith(".yaml"))


def preset_text(name: str) -> str:
    """The text of a shipped space; looking a word up in it is much quicker than reading it."""
    return (_PRESETS / f"{name}.yaml").read_text(encoding="utf-8")


def load_space(name: str | Path) -> Space:
    """A space, by the name of a preset or by the path of a file.

    A word without a slash that doesn't end in .yaml or .yml is the name of a preset.

    Raises:
        UnknownName: no preset of that name.
        SpaceError: the file can't be read or is wrong, with file, line and hint.
    """
    text = str(name)
    if isinstance(name, Path) or "/" in text or text.endswith((".yaml", ".yml")):
        return build_space(load_document(Path(name), SpaceError))
    if text not in presets():
        raise UnknownName(
            f"no space is called {quoted(text)}",
            hint=suggestion(text, presets()) + "; a file is named with its ending: ./NAME.yaml",
        )
    entry = _PRESETS / f"{text}.yaml"
    return build_space(
        parse_document(entry.read_text(encoding="utf-8"), Path(str(entry)), SpaceError)
    )


def build_space(document: Document) -> Space:
    """The space that a document describes.

    Raises:
        DocumentError: of the document's class, with file, line and hint.
    """
    model = validated(document, SpaceDocument)
    bare = Space(
        name=model.name,
        version=model.version,
        library=model.library,
        parameters=(),
        versions=model.versions,
        summary=model.summary,
        operations=tuple(model.operations),
        pinned=dict(model.pin),
    )
    work = Customizing(bare, document, ())
    work.add(model.parameters, ("parameters",))
    constraints = build_constraints(
        model.forbidden, model.relations, work.space.declared, document
    )
    space = replace(work.space, constraints=constraints)
    require_default(space, document, ("forbidden",))
    return space
