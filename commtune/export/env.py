"""``NAME=value`` lines, as ``docker --env-file`` and ``podman --env-file`` read them.

Values are literal: no quotes, no escapes, all to the end of the line. Where values consist of
letters, digits and ``_@%+:,./-`` only, as nearly all do, systemd's EnvironmentFile and the
``.`` of a shell read the same.
"""

from __future__ import annotations

import re

from commtune.export.document import ExportDocument, Format, GuardVerdict, comment_lines

_LOAD = "docker run --env-file FILE ..."
_SAFE = re.compile(r"[A-Za-z0-9_@%+=:,./-]*")
_LITERAL = "Values are literal, without quotes or escapes: for docker --env-file and the like."
_NOT_SHELL = "NOT for systemd or a shell's '.': they would read some of these values differently."


def _write(document: ExportDocument, lines: list[str], guards: GuardVerdict) -> str:
    del guards
    variables = document.variables()
    plain = all(_SAFE.fullmatch(value) for value in variables.values())
    head = comment_lines([*lines, "", _LITERAL, *([] if plain else [_NOT_SHELL])], "#")
    return head + "".join(f"{name}={value}\n" for name, value in variables.items())


def _unfit(value: str) -> str:
    # str.splitlines would be too strict: only these end a line for the readers.
    return "a line break" if "\n" in value or "\r" in value else ""


FORMAT = Format("env", _write, _LOAD, lambda _: "start without this file", _unfit)
