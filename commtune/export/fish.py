"""fish: ``set -gx NAME 'value'``, to be sourced."""

from __future__ import annotations

from commtune.export.document import ExportDocument
from commtune.export.formats import Format, comment_lines
from commtune.export.guard_operations import GuardVerdict


def _write(document: ExportDocument, lines: list[str], guards: GuardVerdict) -> str:
    del guards
    settings = (f"set -gx {name} {_quoted(v)}\n" for name, v in document.variables().items())
    return comment_lines(lines, "#") + "".join(settings)


def _quoted(value: str) -> str:
    """In fish's single quotes only the backslash and the quote itself are special."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


FORMAT = Format("fish", _write, "source FILE", lambda names: "set -e " + " ".join(names))
