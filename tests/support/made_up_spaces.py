"""Spaces of made-up libraries."""

from __future__ import annotations

from commtune.documents.yaml_document import parse_document
from commtune.spaces.loading import build_space
from commtune.spaces.space import Space


def made_up_space(parameters: str) -> Space:
    """A space of these parameters, which are written as in a file."""
    head = "space: 1\nname: made-up\nversion: 1\nlibrary: made-up\nparameters:\n"
    return build_space(parse_document(head + parameters))
