"""Words in the values of variables that are set: ``get_zcopi`` was hardly meant."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping

from commtune.spaces.catalogue.checking import EnvironmentSetting, SettingRemark
from commtune.spaces.catalogue.lookup import KnownVariable, look_up
from commtune.spaces.catalogue.misspelling import is_misspelled_word
from commtune.spaces.catalogue.schema import Variable

_BETWEEN = re.compile(r"[,;:|@=\s]+")


def misspelled_values(
    settings: Iterable[EnvironmentSetting], found: Mapping[str, str]
) -> Iterator[SettingRemark]:
    """What is wrong with words of values that are a letter away from a legal one.

    Nothing is said of a word that is like none: many lists of values have the useful ones only.

    Args:
        found: versions of the libraries that are here, by their names in the catalogue.
    """
    for setting in settings:
        known = look_up(setting.name).known
        entries = [entry for entry in known if entry.catalogue.library in found] or known
        wrong = [_wrong(setting.value, entry) for entry in entries]
        pairs = [pair for pair in wrong if pair is not None]
        # Several libraries may read it: what one of them takes is right.
        if pairs and len(pairs) == len(wrong):
            yield _remark(setting, *pairs[0])


def _wrong(value: str, entry: KnownVariable) -> tuple[str, str] | None:
    """The first misspelled word of a value, and what is meant by it."""
    legal = {word.casefold(): word for word in _legal(entry.variable)}
    for word in _words(value):
        if word.casefold() in legal:
            continue
        for known in legal.values():
            if is_misspelled_word(word, known):
                return word, known
    return None


def _legal(variable: Variable) -> Iterator[str]:
    if variable.type != "choice":
        return
    for value in (*variable.values, *variable.restricted):
        yield from _words(value)


def _words(value: str) -> list[str]:
    return [word for word in _BETWEEN.split(value.removeprefix("^")) if word]


def _remark(setting: EnvironmentSetting, word: str, meant: str) -> SettingRemark:
    shown = f"{setting.name}={setting.value}"[:80]
    what = f"{shown}{setting.place}: no value {word} is known; perhaps {meant} is meant"
    value = shlex.quote(setting.value.replace(word, meant, 1))
    return SettingRemark(
        setting.name, what, "" if setting.file else f"export {setting.name}={value}"
    )
