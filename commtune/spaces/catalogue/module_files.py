"""What loaded modules set: Lmod and Environment Modules name their files in _LMFILES_.

Only plain settings are read, in Lua and in Tcl; what a module file computes is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from commtune.spaces.catalogue.checking import EnvironmentSetting, SettingRemark
from commtune.spaces.catalogue.loading import list_libraries
from commtune.spaces.catalogue.lookup import variable_prefixes

_LUA = re.compile(r"""^\s*(?:setenv|pushenv)\s*[({]\s*(["'])(\w+)\1\s*,\s*(["'])(.*?)\3\s*[)}]""")
_TCL = re.compile(
    r"""^\s*(?:setenv|pushenv)\s+(\w+)\s+(?:"([^"$\[]*)"|\{([^}]*)\}|([^\s"{$\[]+))\s*$"""
)


def module_settings(environment: Mapping[str, str]) -> list[EnvironmentSetting]:
    """What the modules that are loaded set, the one that was loaded last at the end."""
    files = [Path(file) for file in environment.get("_LMFILES_", "").split(":") if file]
    return [setting for file in files for setting in _settings(file)]


def differing_settings(
    environment: Mapping[str, str], settings: list[EnvironmentSetting]
) -> Iterator[SettingRemark]:
    """Variables of communication libraries that a module set, and that are otherwise by now."""
    known = tuple(prefix for library in list_libraries() for prefix in variable_prefixes(library))
    last = {setting.name: setting for setting in settings if setting.name.startswith(known)}
    for name, setting in last.items():
        here = environment.get(name)
        if here == setting.value:
            continue
        now = f"is {here!r} here" if here is not None else "is unset here"
        what = (
            f"{name} {now}, and the module file {setting.file} sets it to {setting.value!r}: "
            "jobs that load the module get that; set yours after modules are loaded"
        )
        yield SettingRemark(name, what)


def _settings(file: Path) -> Iterator[EnvironmentSetting]:
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        return
    for number, line in enumerate(lines, start=1):
        if found := _LUA.match(line):
            yield EnvironmentSetting(found[2], found[4], f"{file}:{number}", of_site=True)
        elif found := _TCL.match(line):
            value = next(part for part in found.groups()[1:] if part is not None)
            yield EnvironmentSetting(found[1], value, f"{file}:{number}", of_site=True)
