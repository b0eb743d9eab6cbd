"""Files to be sourced by shells (sh: dash, bash, zsh, ksh; csh and tcsh; fish), and env files.

For shells, values stand in single quotes, where each shell has its own few special characters. An
env file has ``NAME=value`` lines, as ``docker --env-file`` and ``podman --env-file`` read them: no
quotes, no escapes, all to the end of the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from commtune.export.document import ExportDocument, Format, GuardVerdict, comment_lines

# systemd's EnvironmentFile and the ``.`` of a shell read such values the same; nearly all are.
_SAFE = re.compile(r"[A-Za-z0-9_@%+=:,./-]*")
_LITERAL = "Values are literal, without quotes or escapes: for docker --env-file and the like."
_NOT_SHELL = "NOT for systemd or a shell's '.': they would read some of these values differently."
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


def _write_env(document: ExportDocument, lines: list[str], _: GuardVerdict) -> str:
    variables = document.variables()
    plain = all(_SAFE.fullmatch(value) for value in variables.values())
    head = comment_lines([*lines, "", _LITERAL, *([] if plain else [_NOT_SHELL])], "#")
    return head + "".join(f"{name}={value}\n" for name, value in variables.items())


def _unfit_env(value: str) -> str:
    # str.splitlines would be too strict: only these end a line for the readers.
    return "a line break" if "\n" in value or "\r" in value else ""


FORMATS = (
    Format(
        "env",
        _write_env,
        "docker run --env-file FILE ...",
        lambda _: "start without this file",
        _unfit_env,
    ),
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
