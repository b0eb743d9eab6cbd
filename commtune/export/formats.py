"""What a format is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from commtune.export.document import ExportDocument
from commtune.export.guard_operations import GuardVerdict

#: Makes the file's text from document, remarks, and what is known of guard operations.
Writer = Callable[[ExportDocument, list[str], GuardVerdict], str]


def carries_all(value: str) -> str:
    """For formats that carry every value."""
    del value
    return ""


@dataclass(frozen=True)
class Format:
    """A form that a profile can be written in.

    Attributes:
        write: makes the file's text from document, remarks and what is known of guards.
        load: how to load the file.
        undo: how to take the settings back; gets the names of the variables.
        unfit: why the form can't carry a value; empty where it can.
        general: made to be loaded for everything, so that it needs guard operations.
    """

    name: str
    write: Writer
    load: str
    undo: Callable[[Sequence[str]], str]
    unfit: Callable[[str], str] = carries_all
    general: bool = False


def comment_lines(lines: list[str], mark: str) -> str:
    """Lines as comments, each closed by a newline."""
    return "".join(f"{mark} {line}".rstrip() + "\n" for line in lines)
