"""Checks set environment variables against the catalogues, with advice on problems.

Only variables with a prefix of a library are checked, and of these only names that a catalogue
has, or that are most likely misspellings of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commtune.model.configuration import Changes
from commtune.spaces.catalogue import loading
from commtune.spaces.catalogue.words import Danger, Level, Wrong

if TYPE_CHECKING:
    from commtune.spaces.catalogue.schema import Variable

_SUFFIXED = re.compile(r"(\d+)([kKmMgG])i?[bB]?\Z")
#: The default in catalogues of variables that launchers set.
_BY_LAUNCHER = "launcher"


@dataclass(frozen=True)
class EnvironmentSetting:
    """A variable with its value, from the environment or from a settings file.

    Attributes:
        file: the file with the setting; empty for the environment.
        of_site: whether the site rather than the user set it.
    """

    name: str
    value: str
    file: str = ""
    of_site: bool = False

    @property
    def place(self) -> str:
        """The file in words, to follow a name; empty for the environment."""
        return f" in {self.file}" if self.file else ""

    @property
    def removal(self) -> Changes:
        """Returns the change that removes it; empty for a file, which the user must edit."""
        return Changes() if self.file else Changes({self.name: None})


@dataclass(frozen=True)
class SettingRemark:
    """A problem with a setting.

    Attributes:
        what: the problem and what to do, in one line.
        mend: changes of the environment that solve it; empty if unknown.
        alike: ``what`` without the name of the library; empty if it names none.
    """

    what: str
    mend: Changes = field(default_factory=Changes)
    alike: str = ""

    @property
    def key(self) -> str:
        """A key that is equal for equal remarks from different libraries."""
        return self.alike or self.what


def check_settings(
    settings: Sequence[EnvironmentSetting], found: Mapping[str, str]
) -> Iterator[SettingRemark]:
    """Yields problems with settings: first with names, then with words of values.

    Args:
        found: versions of the libraries on this system, by catalogue.
    """
    every = loading.all_prefixes()
    of_libraries = [setting for setting in settings if setting.name.startswith(every)]
    for setting in of_libraries:
        yield from _check_setting(setting, found)
    yield from _check_words(of_libraries, found)


def list_misspelled_names(names: Iterable[str]) -> list[str]:
    """Returns a remark for each name that is most likely misspelled."""
    unknown = (EnvironmentSetting(name, "") for name in names if not loading.look_up(name))
    return [remark.what for setting in unknown for remark in _guess_name(setting)]


def _check_setting(
    setting: EnvironmentSetting, found: Mapping[str, str]
) -> Iterator[SettingRemark]:
    answer = loading.look_up(setting.name)
    known = _select_here(answer, found)
    if known:
        for entry in known:
            version, title = found.get(entry.catalogue.library), entry.catalogue.title
            by = f" with {title}" if len(known) > 1 else ""
            yield from _check_known(setting, entry, version, by)
    elif wrong := _find_wrong(answer, found):
        yield _describe_wrong(setting, wrong)
    elif not answer:
        yield from _guess_name(setting)


def _select_here(
    answer: loading.LookupResult, found: Mapping[str, str]
) -> list[loading.KnownVariable]:
    """Returns the entries of libraries on this system; all if there is none."""
    # NCCL and RCCL share names, so the entry of the one on this system counts.
    here = [entry for entry in answer.known if entry.catalogue.library in found]
    of_others = {entry.catalogue.library for entry in answer.not_read} & set(found)
    return here or ([] if of_others else list(answer.known))


def _check_known(
    setting: EnvironmentSetting, entry: loading.KnownVariable, version: str | None, by: str
) -> Iterator[SettingRemark]:
    if version is not None and (gone := _explain_absence(entry, version)):
        use = ", ".join(entry.variable.replaced_by)
        advice = f"use {use}" if use else "remove it"
        what = f"{setting.name}{setting.place} does nothing: {gone}; {advice}"
        yield SettingRemark(what, setting.removal)
        return
    dangerous = _describe_danger(setting, entry.variable, by)
    if dangerous:
        alike = _describe_danger(setting, entry.variable, "")
        yield SettingRemark(dangerous, setting.removal, alike)
    numbers = entry.variable.type in ("integer", "bytes")
    cut = _SUFFIXED.match(setting.value)
    if cut and numbers and entry.catalogue.suffixes is False:
        shown = f"{setting.name}={setting.value}{setting.place}: "
        rest = (
            " takes no suffix, "
            f"{setting.value} is read as {cut[1]} or refused; write the plain number"
        )
        number = int(cut[1]) << (10 * ("kmg".index(cut[2].lower()) + 1))
        mend = setting.removal and Changes({setting.name: str(number)})
        yield SettingRemark(shown + entry.catalogue.title + rest, mend, shown + rest)


def _explain_absence(entry: loading.KnownVariable, version: str) -> str:
    """Returns why a version doesn't have a variable; empty if it does or that is unknown."""
    title, here = entry.catalogue.title, loading.KnownVersion(entry.catalogue, version)
    if since := here.find_later_since(entry.name):
        return f"it came with {title} {since}, and {version} is here"
    if until := here.find_earlier_until(entry.name):
        return f"{title} {until} was the last to have it, and {version} is here"
    return ""


def _describe_danger(setting: EnvironmentSetting, variable: Variable, by: str) -> str:
    """Returns what is dangerous about a value; empty if nothing is known.

    Args:
        by: the library in words, to follow "dangerous"; empty if there is only one.
    """
    if setting.of_site or not _is_dangerous(setting.value, variable):
        return ""
    worst = ", ".join(d for d in variable.dangers if d not in (Danger.IGNORED, Danger.ROUNDING))
    shown = f"{setting.name}={setting.value}"[:80]
    if meant := variable.read_as.get(setting.value):
        shown += f", which is {meant},"
    advice = (
        "ask the machine's administrators" if variable.level is Level.FORBIDDEN else "remove it"
    )
    why = f"{variable.caution} " if variable.caution else ""
    what = f"{shown}{setting.place} is dangerous{by} ({worst})"
    return f"{what}. {why}Unless you know why: {advice}"


def _is_dangerous(value: str, variable: Variable) -> bool:
    value = variable.read_as.get(value, value)
    words = [word.strip().casefold() for word in re.split("[,;:]", value.removeprefix("^"))]
    restricted = {word.casefold() for word in variable.restricted}
    if restricted:
        # A list of exclusions (^) selects what it doesn't name.
        return bool(
            restricted.difference(words) if value.startswith("^") else restricted & set(words)
        )
    if variable.level not in (Level.DANGER, Level.FORBIDDEN):
        return False
    if variable.default in (value, _BY_LAUNCHER):
        return False
    return variable.level is Level.FORBIDDEN or not _is_in_range(value, variable)


def _is_in_range(value: str, variable: Variable) -> bool:
    numbers = variable.range
    try:
        return numbers is not None and float(numbers.least) <= float(value) <= float(
            numbers.greatest
        )
    except ValueError:
        return False


def _find_wrong(answer: loading.LookupResult, found: Mapping[str, str]) -> loading.NotRead | None:
    """Returns why no library here reads a name; ``None`` if software without catalogue does."""
    of_others = bool(answer.known)  # the libraries of these are not here
    wrong = [w for w in answer.not_read if of_others or w.entry.what is not Wrong.ELSEWHERE]
    wrong.sort(key=lambda w: w.catalogue.library not in found)
    return wrong[0] if wrong else None


def _describe_wrong(setting: EnvironmentSetting, wrong: loading.NotRead) -> SettingRemark:
    entry = wrong.entry
    what = (
        f"{setting.name}{setting.place} is not a variable of {wrong.catalogue.title} "
        f"({entry.what.meaning}). {' '.join(entry.truth.split())}"
    )
    mend = setting.removal
    if mend and entry.what is Wrong.MISSPELLED and len(entry.use) == 1:
        mend = _rename(setting, entry.use[0])
    return SettingRemark(what, mend)


def _guess_name(setting: EnvironmentSetting) -> Iterator[SettingRemark]:
    for library in loading.list_libraries():
        if not setting.name.startswith(loading.variable_prefixes(library)):
            continue
        for known in loading.load_catalogue(library).spellings:
            if _is_misspelling(setting.name, known):
                what = (
                    f"{setting.name}{setting.place} is not a known name; perhaps {known} is meant"
                )
                yield SettingRemark(what, setting.removal and _rename(setting, known))
                return


def _rename(setting: EnvironmentSetting, name: str) -> Changes:
    return Changes({name: setting.value, setting.name: None})


_BETWEEN = re.compile(r"[,;:|@=\s]+")


def _check_words(
    settings: Sequence[EnvironmentSetting], found: Mapping[str, str]
) -> Iterator[SettingRemark]:
    # Only misspelled words are reported, as many lists of values are incomplete.
    for setting in settings:
        known = loading.look_up(setting.name).known
        entries = [entry for entry in known if entry.catalogue.library in found] or known
        wrong = [_find_misspelled_word(setting.value, entry) for entry in entries]
        pairs = [pair for pair in wrong if pair is not None]
        # If several libraries read a variable, a value of any of them is legal.
        if pairs and len(pairs) == len(wrong):
            yield _describe_misspelling(setting, *pairs[0])


def _find_misspelled_word(value: str, entry: loading.KnownVariable) -> tuple[str, str] | None:
    legal = {word.casefold(): word for word in _list_legal_words(entry.variable)}
    for word in _split_words(value):
        if word.casefold() in legal:
            continue
        for known in legal.values():
            if _is_misspelled_word(word, known):
                return word, known
    return None


def _list_legal_words(variable: Variable) -> Iterator[str]:
    if variable.type != "choice":
        return
    for value in (*variable.values, *variable.restricted):
        yield from _split_words(value)


def _split_words(value: str) -> list[str]:
    return [word for word in _BETWEEN.split(value.removeprefix("^")) if word]


def _describe_misspelling(setting: EnvironmentSetting, word: str, meant: str) -> SettingRemark:
    shown = f"{setting.name}={setting.value}"[:80]
    what = f"{shown}{setting.place}: no value {word} is known; perhaps {meant} is meant"
    right = Changes({setting.name: setting.value.replace(word, meant, 1)})
    return SettingRemark(what, setting.removal and right)


_LEAST = 4  # letters: RX and TX, MIN and MAX, D2H and H2D are words of their own


def _is_misspelling(name: str, known: str) -> bool:
    """Whether a name is most likely a known one, misspelled.

    Either the two differ only in underscores and case, or in one word of at least four letters:
    by one letter, by two swapped letters, or by a suffix of three or more letters (THRESHOLD).
    """
    if name == known:
        return False
    if _join_letters(name) == _join_letters(known):
        return True
    ours, theirs = name.upper().split("_"), known.upper().split("_")
    if len(ours) != len(theirs):
        return False
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]
    return len(pairs) == 1 and _is_alike(*pairs[0])


def _join_letters(name: str) -> str:
    return name.replace("_", "").upper()


def _is_alike(a: str, b: str) -> bool:
    short, long = sorted((a, b), key=len)
    if len(short) < _LEAST or short.isdigit():
        return False
    if long.startswith(short) and (long[len(short) :] == "V" or len(long) == len(short) + 2):
        return False  # ALLTOALL and ALLTOALLV, MSCCL and MSCCLPP
    return (long.startswith(short) and len(long) > len(short) + 2) or _is_one_slip(a, b)


def _is_one_slip(a: str, b: str) -> bool:
    """Whether one inserted, deleted or replaced letter, or a swap of two, turns a into b."""
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), len(a))
    rest_a, rest_b = a[start:], b[start:]
    swapped = rest_a[:2] == rest_b[1::-1] and rest_a[2:] == rest_b[2:]
    # The first letter counts only for swaps: ALLREDUCE and IALLREDUCE, or BCOPY and ZCOPY, are
    # different words.
    if start == 0:
        return swapped
    return rest_a[1:] in (rest_b[1:], rest_b) or rest_a == rest_b[1:] or swapped


def _is_misspelled_word(word: str, known: str) -> bool:
    """Whether a word of a value is most likely a known one, misspelled by one letter."""
    ours, theirs = word.upper(), known.upper()
    # Words with digits never are: LL and LL128, or sm80 and sm90, are different words.
    if not f"{ours}{theirs}".replace("_", "").isalpha() or min(len(ours), len(theirs)) < _LEAST:
        return False
    if abs(len(ours) - len(theirs)) > 1 or f"{ours}V" == theirs or f"{theirs}V" == ours:
        return False
    return ours != theirs and _is_one_slip(ours, theirs)
