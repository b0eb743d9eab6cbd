"""Files to be sourced by shells: sh (dash, bash, zsh, ksh), csh and tcsh, fish.

Values stand in single quotes, where each shell has its own few special characters.
"""

from __future__ import annotations

from collections.abc import Callable

from commtune.export.document import ExportDocument, Format, GuardVerdict, comment_lines

_Writer = Callable[[ExportDocument, list[str], GuardVerdict], str]


def _writer(setting: str, quoted: Callable[[str], str]) -> _Writer:
    """Writes remarks as comments, and ``setting`` for each ``{name}`` and ``{value}``."""

    def write(document: ExportDocument, lines: list[str], _: GuardVerdict) -> str:
        settings = (
            setting.format(name=name, value=quoted(value)) + "\n"
            for name, value in document.variables().items()
        )
        return comment_lines(lines, "#") + "".join(settings)

    return write


def _quoted_sh(value: str) -> str:
    # Nothing is special between single quotes; a quote itself goes outside of them.
    return "'" + value.replace("'", "'\\''") + "'"


def _quoted_csh(value: str) -> str:
    # History (!) and a line's end are special even there, and need a backslash.
    text = value.replace("'", "'\\''").replace("!", "\\!").replace("\n", "\\\n")
    return f"'{text}'"


def _quoted_fish(value: str) -> str:
    # Only the backslash and the quote itself are special.
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


FORMATS = (
    Format(
        "sh",
        _writer("export {name}={value}", _quoted_sh),
        ". ./FILE",
        lambda names: "unset " + " ".join(names),
    ),
    Format(
        "csh",
        _writer("setenv {name} {value}", _quoted_csh),
        "source FILE",
        lambda names: "; ".join(f"unsetenv {name}" for name in names),
    ),
    Format(
        "fish",
        _writer("set -gx {name} {value}", _quoted_fish),
        "source FILE",
        lambda names: "set -e " + " ".join(names),
    ),
)
