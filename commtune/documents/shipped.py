"""The YAML files that come with the package, and the JSON Schemas beside them."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

from commtune.documents.yaml_document import Document, parse_document
from commtune.errors import DocumentError


@cache
def list_shipped(folder: str) -> tuple[str, ...]:
    """The names of the YAML files in a folder of the package (``systems/findings``), sorted."""
    names = [entry.name for entry in resources.files("commtune").joinpath(folder).iterdir()]
    return tuple(sorted(n.removesuffix(".yaml") for n in names if n.endswith(".yaml")))


def load_shipped(
    folder: str, name: str, error_class: type[DocumentError] = DocumentError
) -> Document:
    """A YAML file of the package, by its name without the ending."""
    file = Path(str(resources.files("commtune").joinpath(folder, f"{name}.yaml")))
    # Long files of our own: libyaml reads them ten times as fast.
    return parse_document(file.read_text(encoding="utf-8"), file, error_class, quick=True)
