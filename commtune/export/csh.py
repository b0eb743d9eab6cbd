"""C shell: ``setenv NAME 'value'``, to be sourced by csh or tcsh."""

from __future__ import annotations

from commtune.export.document import ExportDocument
from commtune.export.formats import Format, comment_lines
from commtune.export.guard_operations import GuardVerdict


def _write(document: ExportDocument, lines: list[str], guards: GuardVerdict) -> str:
    del guards
    settings = (f"setenv {name} {_quoted(v)}\n" for name, v in document.variables().items())
    return comment_lines(lines, "#") + "".join(settings)


def _quoted(value: str) -> str:
    """In single quotes; history (``!``) and a line's end are special there, and need a ``\\``."""
    text = value.replace("'", "'\\''").replace("!", "\\!").replace("\n", "\\\n")
    return f"'{text}'"


FORMAT = Format(
    "csh", _write, "source FILE", lambda names: "; ".join(f"unsetenv {name}" for name in names)
)
