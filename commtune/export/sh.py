"""POSIX shell: ``export NAME='value'``, to be sourced by sh, dash, bash, zsh or ksh."""

from __future__ import annotations

from commtune.export.document import ExportDocument
from commtune.export.formats import Format, commented
from commtune.export.guards import Guards


def _write(document: ExportDocument, lines: list[str], guards: Guards) -> str:
    del guards
    settings = (f"export {name}={_quoted(v)}\n" for name, v in document.variables().items())
    return commented(lines, "#") + "".join(settings)


def _quoted(value: str) -> str:
    """Between single quotes nothing is special; a quote itself goes outside of them."""
    return "'" + value.replace("'", "'\\''") + "'"


FORMAT = Format("sh", _write, ". ./FILE", lambda names: "unset " + " ".join(names))
