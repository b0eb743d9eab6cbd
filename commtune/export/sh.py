"""POSIX shell: ``export NAME='value'``, to be sourced by sh, dash, bash, zsh or ksh."""

from __future__ import annotations

from commtune.export.document import ExportDocument
from commtune.export.formats import Format, comment_lines
from commtune.export.guard_operations import GuardVerdict


def _write(document: ExportDocument, lines: list[str], guards: GuardVerdict) -> str:
    del guards
    settings = (f"export {name}={_quoted(v)}\n" for name, v in document.variables().items())
    return comment_lines(lines, "#") + "".join(settings)


def _quoted(value: str) -> str:
    """Between single quotes nothing is special; a quote itself goes outside of them."""
    return "'" + value.replace("'", "'\\''") + "'"


FORMAT = Format("sh", _write, ". ./FILE", lambda names: "unset " + " ".join(names))
