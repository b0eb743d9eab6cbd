"""The export formats: files for shells, env files, JSON, and module files.

For shells (sh: dash, bash, zsh, ksh; csh and tcsh; fish), values are in single quotes, with
escapes for the few characters that are special there. An env file has ``NAME=value`` lines, as
``docker --env-file`` and ``podman --env-file`` read them: no quotes, no escapes, the value ends
with the line. Configuration files of libraries have such lines too. JSON, for programs, has the
evidence as numbers (seconds, bytes). Module files are Lua for Lmod, and Tcl for Environment
Modules, which Lmod reads as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from commtune.export.document import (
    GUARD_TOLERANCE,
    ExportDocument,
    Format,
    comment_lines,
    one_line,
)
from commtune.export.modules import MODULE_FILES, Module, ModuleFile
from commtune.formatting import without_infinities

# Values, like most, that systemd's EnvironmentFile and a shell's ``.`` read unchanged.
_SAFE = re.compile(r"[A-Za-z0-9_@%+=:,./-]*")
_LITERAL = "Values are literal, without quotes or escapes: for docker --env-file and the like."
_NOT_SHELL = "NOT for systemd or a shell's '.': they would read some of these values differently."
_Writer = Callable[[ExportDocument, list[str]], str]


def _writer(
    setting: str, quoted: Callable[[str], str] = str, *, first: str = "", prefix: str = ""
) -> _Writer:
    """Returns a writer of remarks as comments, and of ``setting`` with ``{name}`` and ``{value}``.

    Args:
        first: the beginning of the file.
        prefix: a prefix to remove from names.
    """

    def write(document: ExportDocument, lines: list[str]) -> str:
        settings = (
            setting.format(name=name.removeprefix(prefix), value=quoted(value)) + "\n"
            for name, value in document.variables().items()
        )
        return first + comment_lines(lines, "#") + "".join(settings)

    return write


def _quoted_sh(value: str) -> str:
    # Nothing is special in single quotes; a quote itself must be outside of them.
    return "'" + value.replace("'", "'\\''") + "'"


def _quoted_csh(value: str) -> str:
    # History (!) and line ends are special even in single quotes, and need a backslash.
    text = value.replace("'", "'\\''").replace("!", "\\!").replace("\n", "\\\n")
    return f"'{text}'"


def _quoted_fish(value: str) -> str:
    # In single quotes, only the backslash and the quote are special.
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


_PLAIN = _writer("{name}={value}")


def _write_env(document: ExportDocument, lines: list[str]) -> str:
    plain = all(_SAFE.fullmatch(value) for value in document.variables().values())
    said = [*lines, "", _LITERAL, *([] if plain else [_NOT_SHELL])]
    return _PLAIN(document, said)


def _unfit_env(value: str) -> str:
    # str.splitlines is too strict: readers end a line only at these.
    return "a line break" if "\n" in value or "\r" in value else ""


#: The format and version that the JSON declares.
_SCHEMA = "commtune-profile/1"
_ORIGIN = ("campaign", "system", "fingerprint", "stack", "created")


def _write_json(document: ExportDocument, lines: list[str]) -> str:
    content = {
        "schema": _SCHEMA,
        "remarks": lines,
        "environment": document.variables(),
        "pinned": sorted(document.pinned),
        "left_unset": sorted(document.unset),
        "profile": _profile_values(document),
        "strength": asdict(document.strength),
        "guards_hold": document.guards.hold,
        "guard_tolerance": GUARD_TOLERANCE,
        "origin": {
            **{name: getattr(document, name) for name in _ORIGIN},
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
    values["conditions"] = asdict(profile.conditions)
    values["points"] = [asdict(point) for point in profile.points]
    values["guards"] = [asdict(point) for point in profile.guards]
    values["tails"] = [asdict(tail) for tail in profile.tails]
    return values


def _module(name: str, file: ModuleFile) -> Format:
    def write(document: ExportDocument, lines: list[str]) -> str:
        named = one_line("commtune profile " + document.profile.name)
        scope = one_line(" ".join(document.scope()))
        note = one_line(document.profile.note)
        return file.write(Module(named, document.title, scope, lines, document.variables(), note))

    load = f"module use FOLDER; module load FILE, for FOLDER/FILE{file.suffix}"
    return Format(name, write, load, lambda _: "module unload FILE", file.unfit, general=True)


_MCA = "OMPI_MCA_"
_SETTING = re.compile(r"[A-Za-z0-9_@%+=:,./^-]+")


def _unfit_settings(value: str) -> str:
    return "" if _SETTING.fullmatch(value) else "it has other than letters, digits and _@%+=:,./-^"


def _settings(name: str, prefixes: tuple[str, ...], load: str, write: _Writer) -> Format:
    """Returns the format of a library's configuration file, which the environment overrides."""
    return Format(
        name, write, load, lambda _: "remove the file", _unfit_settings, prefixes=prefixes
    )


_FORMATS = (
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
    Format(
        "task-prolog",
        # Slurm takes the rest of the line after = as the value, so it must not be quoted.
        _writer("echo 'export {name}={value}'", first="#!/bin/sh\n"),
        "srun --task-prolog=FILE, with its whole path, or a site's TaskProlog; chmod +x FILE",
        lambda _: "start without this file",
        _unfit_settings,
    ),
    *(_module(name, file) for name, file in MODULE_FILES.items()),
    _settings(
        "nccl-conf",
        ("NCCL_",),
        "~/.nccl.conf is read, or from 2.23 on: export NCCL_CONF_FILE=FILE",
        _PLAIN,
    ),
    _settings("rccl-conf", ("NCCL_", "RCCL_"), "~/.rccl.conf is read", _PLAIN),
    _settings("ucx-conf", ("UCX_",), "export UCX_CONFIG_DIR=FOLDER, for FOLDER/ucx.conf", _PLAIN),
    _settings(
        "mca-params",
        (_MCA,),
        "~/.openmpi/mca-params.conf is read",
        _writer("{name} = {value}", prefix=_MCA),
    ),
)
FORMATS = {one.name: one for one in _FORMATS}
