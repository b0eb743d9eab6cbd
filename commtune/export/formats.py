"""The formats: files for shells, env files, JSON, and module files.

For shells (sh: dash, bash, zsh, ksh; csh and tcsh; fish), values stand in single quotes, where
each has its own few special characters. An env file has ``NAME=value`` lines, as ``docker
--env-file`` and ``podman --env-file`` read them: no quotes, no escapes, all to the end of the
line. Libraries' own files of settings have such lines too. JSON,
for programs, has the evidence in numbers (seconds, bytes). Module files are Lua for
Lmod, and Tcl for Environment Modules, which Lmod reads as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from commtune.export.document import ExportDocument, Format, GuardVerdict, one_line
from commtune.formatting import without_infinities

# systemd's EnvironmentFile and the ``.`` of a shell read such values the same; nearly all are.
_SAFE = re.compile(r"[A-Za-z0-9_@%+=:,./-]*")
_LITERAL = "Values are literal, without quotes or escapes: for docker --env-file and the like."
_NOT_SHELL = "NOT for systemd or a shell's '.': they would read some of these values differently."
_Writer = Callable[[ExportDocument, list[str], GuardVerdict], str]


def _comment_lines(lines: list[str], mark: str) -> str:
    return "".join(f"{mark} {line}".rstrip() + "\n" for line in lines)


def _writer(setting: str, quoted: Callable[[str], str]) -> _Writer:
    """Writes remarks as comments, and ``setting`` for each ``{name}`` and ``{value}``."""

    def write(document: ExportDocument, lines: list[str], _: GuardVerdict) -> str:
        settings = (
            setting.format(name=name, value=quoted(value)) + "\n"
            for name, value in document.variables().items()
        )
        return _comment_lines(lines, "#") + "".join(settings)

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
    head = _comment_lines([*lines, "", _LITERAL, *([] if plain else [_NOT_SHELL])], "#")
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
        "minimum_gain", "verdict",
    )  # fmt: skip
    values: dict[str, Any] = {name: getattr(profile, name) for name in plain}
    values["points"] = [asdict(point) for point in profile.points]
    values["guards"] = [asdict(point) for point in profile.guards]
    return values


_SPECIAL = '\\"$[]{}'
# pushenv rather than setenv: unloading then brings back a value that the user had. family keeps
# two profiles from being loaded together, of which neither would be what was measured.
# Versions of Environment Modules before 5.1 have no pushenv, and that of Lmod 8.6 for Tcl files
# saves the new value as the old one, so that it would stay: there setenv must do, and the variable
# is unset after unloading.
_CHOOSE = """\
if {[llength [info commands family]]} {
    family commtune
}
if {[llength [info commands pushenv]] && ![info exists ::env(LMOD_VERSION)]} {
    set commtune_set pushenv
} else {
    set commtune_set setenv
}
"""


def _write_lmod(document: ExportDocument, lines: list[str], guards: GuardVerdict) -> str:
    settings = [
        f"pushenv({_quoted_lmod(n)}, {_quoted_lmod(v)})" for n, v in document.variables().items()
    ]
    name = _quoted_lmod(one_line("Name: commtune profile " + document.profile.name))
    body = [
        f"help({_long_bracket(lines)})",
        f"whatis({name})",
        f"whatis({_quoted_lmod('Description: ' + document.title)})",
        f"whatis({_quoted_lmod('Scope: ' + ' '.join(document.scope(guards)))})",
        'family("commtune")',
        *settings,
    ]
    return (
        _comment_lines([document.title, "module help shows what it is good for."], "--")
        + "\n".join(body)
        + "\n"
    )


def _quoted_lmod(text: str) -> str:
    """A Lua string of printable text."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _unfit_lmod(value: str) -> str:
    """What Lmod 8.6 doesn't bring unchanged into sh, csh and fish (it quotes by itself)."""
    if not value.isprintable():
        return "Lmod does not quote control characters"
    return "Lmod does not quote '{', '}' or '!' for csh" if set(value) & set("{}!") else ""


def _long_bracket(lines: list[str]) -> str:
    """A long bracket of a level that doesn't occur in the text."""
    text = "\n".join(lines)
    level = next("=" * n for n in range(1, 99) if f"]{'=' * n}]" not in text)
    return f"[{level}[\n{text}\n]{level}]"


def _write_tcl(document: ExportDocument, lines: list[str], guards: GuardVerdict) -> str:
    settings = (f"$commtune_set {n} {_quoted_tcl(v)}\n" for n, v in document.variables().items())
    helping = "".join(f"    puts stderr {_quoted_tcl(line)}\n" for line in lines)
    about = (document.title, " ".join(document.scope(guards)))
    return (
        "#%Module1.0\n"
        + _comment_lines([document.title, "module help shows what it is good for."], "#")
        + f"proc ModulesHelp {{ }} {{\n{helping}}}\n"
        + "".join(f"module-whatis {_quoted_tcl(text)}\n" for text in about)
        + _CHOOSE
        + "".join(settings)
    )


def _quoted_tcl(text: str) -> str:
    """A Tcl word in double quotes. Braces are escaped too: they are counted inside a proc."""
    return '"' + "".join("\\" + sign if sign in _SPECIAL else sign for sign in text) + '"'


def _unfit_tcl(value: str) -> str:
    """What Environment Modules 5.2, or Lmod 8.6 reading Tcl, garbles in some shell."""
    if not (value.isascii() and value.isprintable()):
        return "module systems carry printable ASCII only, whatever the locale"
    if value.startswith("~") or value.endswith(" "):
        return "module systems change a leading '~' and spaces at the end"
    wrong = sorted(set(value) & set("{}[]!"))
    return f"module systems do not quote {' '.join(wrong)} for csh or fish" if wrong else ""


def _module(name: str, write: _Writer, unfit: Callable[[str], str], file: str) -> Format:
    load = f"module use FOLDER; module load FILE, for FOLDER/{file}"
    return Format(name, write, load, lambda _: "module unload FILE", unfit, general=True)


_MCA = "OMPI_MCA_"
_SETTING = re.compile(r"[A-Za-z0-9_@%+=:,./^-]+")
_PLAIN = _writer("{name}={value}", str)


def _unfit_settings(value: str) -> str:
    return "" if _SETTING.fullmatch(value) else "it has other than letters, digits and _@%+=:,./-^"


def _settings(name: str, prefixes: tuple[str, ...], load: str, write: _Writer) -> Format:
    """A library's own file of settings; the environment wins over what is in it."""
    return Format(
        name, write, load, lambda _: "remove the file", _unfit_settings, prefixes=prefixes
    )


def _write_mca(document: ExportDocument, lines: list[str], _: GuardVerdict) -> str:
    settings = document.variables().items()
    return _comment_lines(lines, "#") + "".join(
        f"{name.removeprefix(_MCA)} = {value}\n" for name, value in settings
    )


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
    _module("lmod", _write_lmod, _unfit_lmod, "FILE.lua"),
    _module("tcl", _write_tcl, _unfit_tcl, "FILE"),
    _settings(
        "nccl-conf",
        ("NCCL_",),
        "~/.nccl.conf is read, or from 2.23 on: export NCCL_CONF_FILE=FILE",
        _PLAIN,
    ),
    _settings("rccl-conf", ("NCCL_", "RCCL_"), "~/.rccl.conf is read", _PLAIN),
    _settings("ucx-conf", ("UCX_",), "export UCX_CONFIG_DIR=FOLDER, for FOLDER/ucx.conf", _PLAIN),
    _settings("mca-params", (_MCA,), "~/.openmpi/mca-params.conf is read", _write_mca),
)
