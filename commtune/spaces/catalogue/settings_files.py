"""The files from which NCCL and RCCL take settings, read as they read them.

The environment wins over all files. The user's file is ~/.nccl.conf, or the one that
NCCL_CONF_FILE names; it wins over /etc/nccl.conf. RCCL has the same under its own name, but no
NCCL_CONF_FILE.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from commtune.spaces.catalogue.checking import EnvironmentSetting, SettingRemark


@dataclass(frozen=True)
class SettingsFile:
    """A file with settings of a library; ``of_site`` if the site wrote it, and not the user."""

    path: Path
    of_site: bool


def settings_files(
    library: str, environment: Mapping[str, str], etc: Path = Path("/etc")
) -> tuple[SettingsFile, ...]:
    """The files that a library (``nccl`` or ``rccl``) reads, the one that wins first."""
    named = environment.get("NCCL_CONF_FILE") if library == "nccl" else None
    home = environment.get("HOME")
    own = Path(named) if named else Path(home) / f".{library}.conf" if home else None
    site = SettingsFile(etc / f"{library}.conf", of_site=True)
    return (SettingsFile(own, of_site=False), site) if own else (site,)


def read_settings(file: SettingsFile) -> list[EnvironmentSetting]:
    """What a file sets: lines NAME=VALUE, nothing trimmed, # only at the very beginning."""
    try:
        lines = file.path.read_text(errors="replace").split("\n")
    except OSError:
        return []
    parts = [line.rstrip("\r").partition("=") for line in lines if not line.startswith("#")]
    return [
        EnvironmentSetting(n, v, str(file.path), file.of_site) for n, equals, v in parts if equals
    ]


def overridden_settings(
    environment: Mapping[str, str], files: tuple[list[EnvironmentSetting], ...]
) -> Iterator[SettingRemark]:
    """Settings of which another one wins, and those whose spaces make them void.

    Args:
        files: the settings of each file, the file that wins first.
    """
    winners: dict[str, EnvironmentSetting] = {
        name: EnvironmentSetting(name, value) for name, value in environment.items()
    }
    for settings in files:
        for setting in settings:
            if setting.name != setting.name.strip():
                yield _spaced(setting)
                continue
            winner = winners.setdefault(setting.name, setting)
            if winner is not setting:
                yield _beaten(setting, winner)


def _beaten(setting: EnvironmentSetting, winner: EnvironmentSetting) -> SettingRemark:
    where = winner.file or "this environment"
    if winner.value == setting.value:
        what = f"{setting.name} is also set in {setting.file}, to the same value"
        return SettingRemark(setting.name, f"{what}: keep one of the two, in {where} or there")
    what = (
        f"{setting.name}={setting.value} in {setting.file} does not count: {where} says "
        f"{winner.value!r}; take out the one that is not meant"
    )
    return SettingRemark(setting.name, what)


def _spaced(setting: EnvironmentSetting) -> SettingRemark:
    name = setting.name.strip()
    what = (
        f"{setting.file} has spaces around the name {name}, which make it another name that "
        f"nobody reads; write {name}={setting.value.strip()}"
    )
    return SettingRemark(name, what)
