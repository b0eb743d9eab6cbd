"""Files for shells (sh: dash, bash, zsh, ksh; csh and tcsh; fish), env files, and JSON.

For shells, values stand in single quotes, where each shell has its own few special characters. An
env file has ``NAME=value`` lines, as ``docker --env-file`` and ``podman --env-file`` read them: no
quotes, no escapes, all to the end of the line. JSON, for programs, has the evidence in numbers
(seconds, bytes).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from commtune.export.document import ExportDocument, Format, GuardVerdict, comment_lines
from commtune.formatting import without_infinities

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


#: The form of the JSON, for programs that read it.
_SCHEMA = "commtune-profile/1"


def _write_json(document: ExportDocument, lines: list[str], guards: GuardVerdict) -> str:
    content = {
        "schema": _SCHEMA,
        "remarks": lines,
        "environment": document.variables(),
        "pinned": sorted(document.pinned),
        "left_unset": sorted(document.unset),
        "profile": _profile_values(document),
        "guards_hold": guards.hold,
        "guard_tolerance": guards.tolerance,
        "origin": {
            "campaign": document.campaign,
            "system": document.system,
            "fingerprint": document.fingerprint,
            "stack": document.stack,
            "created": document.created,
            "commtune": document.commtune_version,
        },
    }
    data = without_infinities(content)
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _profile_values(document: ExportDocument) -> dict[str, Any]:
    profile = document.profile
    plain = (
        "name", "operation", "backend", "ranks", "nodes", "bytes_low", "bytes_high", "level",
        "minimum_gain",
    )  # fmt: skip
    values: dict[str, Any] = {name: getattr(profile, name) for name in plain}
    values["points"] = [asdict(point) for point in profile.points]
    values["guards"] = [asdict(point) for point in profile.guards]
    return values


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
    Format(
        "json",
        _write_json,
        "read .environment",
        lambda names: "start without " + ", ".join(names),
    ),
)
