"""What people write for a configuration: ``default``, settings, a file, a profile, a baseline."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from commtune.app.stored import find_profile
from commtune.db.records import CampaignDescription
from commtune.documents.nearest import quote_value
from commtune.errors import UserError
from commtune.model import Configuration
from commtune.spaces.catalogue.checking import (
    EnvironmentSetting,
    check_settings,
    misspelled_values,
)
from commtune.systems.reference_settings import (
    REFERENCE,
    ReferenceSettings,
    find_reference_settings,
    is_reference,
)
from commtune.tuner.verification.pairwise import Arm

_EXPORT = "export "
_FILE = "name a file with a NAME=VALUE on each line"


@dataclass(frozen=True)
class Operand:
    """One side, as it was written.

    Attributes:
        pins: what the profile's campaign sets in every run.
        stored: the profile's campaign.
        baseline: the named set that it is.
    """

    written: str
    configuration: Configuration
    pins: Mapping[str, str] = field(default_factory=dict)
    stored: CampaignDescription | None = None
    baseline: ReferenceSettings | None = None


def read_operand(written: str, db: str | None) -> Operand:
    """What a side means: ``default``, ``@FILE``, ``reference:NAME``, settings, or a profile.

    Raises:
        UserError, UnknownName: it is none of them.
    """
    if written == "default":
        return Operand(written, Configuration())
    if written.startswith("@"):
        return Operand(written, _from_file(Path(written[1:])))
    if is_reference(written):
        found = find_reference_settings(written)
        return Operand(written, Configuration(found.settings), baseline=found)
    if "=" in written:
        return Operand(written, _settings(written))
    answer, stored = find_profile(written, db)
    return Operand(written, answer.profile.configuration, answer.pinned, stored)


def _settings(written: str) -> Configuration:
    try:
        words = shlex.split(written)
    except ValueError as error:
        raise UserError(
            f"{written}: {error}", hint="write 'NAME=VALUE NAME=VALUE', values with blanks quoted"
        ) from error
    return Configuration(dict(_setting(word, written) for word in words))


def _from_file(path: Path) -> Configuration:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror}", hint=_FILE) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is no text", hint=_FILE) from error
    found = {}
    for number, line in enumerate(lines, 1):
        stripped = line.strip().removeprefix(_EXPORT).strip()
        if stripped and not stripped.startswith("#"):
            name, value = _setting(stripped, f"{path}:{number}")
            found[name] = value
    return Configuration(found)


def _setting(word: str, where: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals or not name.isidentifier():
        raise UserError(f"{where}: {quote_value(word)} sets no variable", hint="write NAME=VALUE")
    return name, value


def with_pins(named: Mapping[Arm, Operand]) -> dict[Arm, Configuration]:
    """What each side sets: a profile its pins too, and the other side these same pins.

    Pins belong to the baseline that a profile was measured against; a side's own settings win.
    """
    shared: dict[str, str] = {}
    for side in reversed(Arm):
        shared |= named[side].pins
    return {
        side: Configuration({**(one.pins or shared), **one.configuration})
        for side, one in named.items()
    }


def operand_notes(
    one: Operand, versions: Mapping[str, str], libraries: Collection[str]
) -> Iterator[str]:
    """What to know of one side before it is measured.

    Args:
        versions: of libraries, as far as they are known.
        libraries: whose variables have an effect in these runs.
    """
    yield from remarks_on(one, versions)
    if one.baseline is not None:
        yield from set_notes(one.baseline, libraries)


def remarks_on(one: Operand, found: Mapping[str, str]) -> list[str]:
    """What the catalogue says of settings that somebody typed, as ``commtune doctor`` does.

    Args:
        found: versions of libraries, as far as they are known.
    """
    if one.stored or one.baseline:
        return []
    settings = [EnvironmentSetting(name, value) for name, value in one.configuration.items()]
    every = [*check_settings(settings, found), *misspelled_values(settings, found)]
    return list({remark.key: remark.what for remark in every}.values())


def set_notes(one: ReferenceSettings, libraries: Collection[str]) -> Iterator[str]:
    """What to know of a named set before it is measured."""
    found, name = one.baseline, f"{REFERENCE}{one.name}"
    if found.unfit:
        yield f"{name} is not to be used as it stands: {found.unfit}"
    for variable, what in found.fill_in.items():
        yield f"{name} is measured without {variable}, which is yours to set: {what}"
    if found.launcher:
        yield f"{name} is meant for this launch: {found.launcher}"
    if libraries and set(found.libraries).isdisjoint(libraries):
        yield (
            f"{name} is for {', '.join(found.libraries)}, and these runs use "
            f"{', '.join(libraries)}: what that doesn't read has no effect"
        )
