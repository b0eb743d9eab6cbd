"""Reads the configuration files of NCCL and RCCL, as these libraries do.

The environment overrides all files. The user's file is ~/.nccl.conf, or the one that
NCCL_CONF_FILE names; it overrides /etc/nccl.conf. RCCL has the same under its own name, but no
NCCL_CONF_FILE.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from commtune.paths import read_quietly
from commtune.spaces.catalogue.checking import EnvironmentSetting, SettingRemark
from commtune.spaces.catalogue.loading import all_prefixes


def read_settings_files(
    library: str, environment: Mapping[str, str], etc: Path = Path("/etc")
) -> tuple[list[EnvironmentSetting], ...]:
    """Returns the settings of each file that a library (``nccl`` or ``rccl``) reads.

    The file with the highest precedence is first. Lines are NAME=VALUE; nothing is trimmed, and #
    begins a comment only as the first character.
    """
    named = environment.get("NCCL_CONF_FILE") if library == "nccl" else None
    home = environment.get("HOME")
    own = Path(named) if named else Path(home) / f".{library}.conf" if home else None
    files = [own] if own else []
    files.append(etc / f"{library}.conf")
    return tuple(_read_settings(file, of_site=file is not own) for file in files)


def _read_settings(file: Path, *, of_site: bool) -> list[EnvironmentSetting]:
    lines = read_quietly(file).split("\n")
    parts = [line.rstrip("\r").partition("=") for line in lines if not line.startswith("#")]
    return [EnvironmentSetting(n, v, str(file), of_site) for n, equals, v in parts if equals]


def overridden_settings(
    environment: Mapping[str, str], files: tuple[list[EnvironmentSetting], ...]
) -> Iterator[SettingRemark]:
    """Yields remarks on settings that are overridden, or have no effect because of spaces.

    Args:
        files: the settings of each file, the highest precedence first.
    """
    winners: dict[str, EnvironmentSetting] = {
        name: EnvironmentSetting(name, value) for name, value in environment.items()
    }
    for settings in files:
        for setting in settings:
            if setting.name != setting.name.strip():
                name = setting.name.strip()
                what = (
                    f"{setting.file} has spaces around the name {name}, which make it another "
                    f"name that nobody reads; write {name}={setting.value.strip()}"
                )
                yield SettingRemark(what)
                continue
            winner = winners.setdefault(setting.name, setting)
            if winner is not setting:
                yield _beaten(setting, winner)


def _beaten(setting: EnvironmentSetting, winner: EnvironmentSetting) -> SettingRemark:
    where = winner.file or "this environment"
    what = (
        f"{setting.name}={setting.value} in {setting.file} does not count: {where} says "
        f"{winner.value!r}; remove the wrong one"
    )
    if winner.value == setting.value:
        same = f"{setting.name} is also set in {setting.file}, to the same value"
        what = f"{same}: keep one of the two, in {where} or there"
    return SettingRemark(what)


#: Lines of module files, in Lua and in Tcl; values that a module computes are ignored.
_LUA = re.compile(r"""^\s*(?:setenv|pushenv)\s*[({]\s*(["'])(\w+)\1\s*,\s*(["'])(.*?)\3\s*[)}]""")
_TCL = re.compile(
    r"""^\s*(?:setenv|pushenv)\s+(\w+)\s+(?:"([^"$\[]*)"|\{([^}]*)\}|([^\s"{$\[]+))\s*$"""
)


def differing_settings(environment: Mapping[str, str]) -> Iterator[SettingRemark]:
    """Yields remarks on communication variables that differ from what a module set."""
    files = [Path(file) for file in environment.get("_LMFILES_", "").split(":") if file]
    settings = [setting for file in files for setting in _module_settings(file)]
    every = all_prefixes()
    # If several modules set a variable, the last one counts.
    last = {setting.name: setting for setting in settings if setting.name.startswith(every)}
    for name, setting in last.items():
        here = environment.get(name)
        if here == setting.value:
            continue
        now = f"is {here!r} here" if here is not None else "is unset here"
        what = (
            f"{name} {now}, and the module file {setting.file} sets it to {setting.value!r}: "
            "jobs that load the module get that; set yours after modules are loaded"
        )
        yield SettingRemark(what)


def _module_settings(file: Path) -> Iterator[EnvironmentSetting]:
    for number, line in enumerate(read_quietly(file).splitlines(), start=1):
        if found := _LUA.match(line):
            yield EnvironmentSetting(found[2], found[4], f"{file}:{number}", of_site=True)
        elif found := _TCL.match(line):
            value = next(part for part in found.groups()[1:] if part is not None)
            yield EnvironmentSetting(found[1], value, f"{file}:{number}", of_site=True)
