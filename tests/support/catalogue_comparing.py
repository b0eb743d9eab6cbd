"""Holds what a library says of its variables against the catalogue, and against known differences.

Known differences lie in ``spaces/catalogue/known``, a file for each library and version that is
asked, written by hand; beside it the names that the library has and the catalogue lacks, written
by ``scripts/catalogue-lacks``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import yaml
from asked_libraries import Answer

from commtune.spaces.catalogue.loading import is_after_version, is_before_version
from commtune.spaces.catalogue.schema import Catalogue, Variable

KNOWN = Path(__file__).parents[1] / "spaces" / "catalogue" / "known"

_SWITCH = dict.fromkeys(("true", "yes", "y", "on"), 1.0) | dict.fromkeys(
    ("false", "no", "n", "off"), 0.0
)
_SIZE = re.compile(r"(-?\d+(?:\.\d+)?)\s* ?([kmgt]?)(?:i?b)?")
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|ms|s|m)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
_UNSET = {"", "(null)", "null", "none", "not defined", "unset"}
_MOST = float(2**64 - 1)


@dataclass(frozen=True)
class Difference:
    """Where a library and the catalogue disagree.

    Attributes:
        kind: ``absent``, the library doesn't name a variable that its version should have;
            ``present``, it names one that its version shouldn't have; ``named``, it names one of
            those that it doesn't read; ``default``; ``values``, it doesn't list values that the
            catalogue gives.
        name: the variable.
        found: for a default, what the library prints; for values, those that it doesn't list.
        expected: the catalogue's default; empty for the other kinds.
    """

    kind: str
    name: str
    found: str = ""
    expected: str = ""


def differences(answer: Answer, catalogue: Catalogue, *, others: bool = True) -> set[Difference]:
    """All differences between a library's answer and the catalogue at its version.

    Args:
        others: whether names without an entry must be there, too, of which nobody knows since
            when they are.
    """
    found = set(_differences(answer, catalogue))
    if others:
        found |= {Difference("absent", n) for n in catalogue.others if n not in answer.defaults}
    return found


def _differences(answer: Answer, catalogue: Catalogue) -> Iterator[Difference]:
    for name, variable in catalogue.variables.items():
        if variable.part is not None and catalogue.parts[variable.part].newest is not None:
            continue  # another library, with versions of its own
        has = _has(variable, answer.version)
        if name not in answer.defaults:
            if has:
                yield Difference("absent", name)
            continue
        if has is False:
            yield Difference("present", name)
            continue
        yield from _default(answer, name, variable)
        yield from _values(answer, name, variable)

    for name in answer.defaults:
        if any(fnmatchcase(name, pattern) for pattern in catalogue.not_variables):
            yield Difference("named", name)


def _has(variable: Variable, version: str) -> bool | None:
    """Whether a version has a variable, by the catalogue; ``None`` where it doesn't say."""
    if variable.until is not None and is_after_version(version, variable.until):
        return False
    if variable.since is not None and is_before_version(version, variable.since):
        return False
    return (
        None if variable.seen is not None and is_before_version(version, variable.seen) else True
    )


def _default(answer: Answer, name: str, variable: Variable) -> Iterator[Difference]:
    printed, expected = answer.defaults[name], default_at(variable, answer.version)
    if printed is None or expected is None:
        return
    expected = _without_remark(expected)
    words = answer.words.get(name, {})
    printed, expected = (words.get(text, text) for text in (printed, expected))
    if _plain(printed) != _plain(expected):
        yield Difference("default", name, printed, expected)


def _values(answer: Answer, name: str, variable: Variable) -> Iterator[Difference]:
    if name not in answer.values:
        return
    later = {
        value
        for version, values in variable.values_since.items()
        if is_before_version(answer.version, version)
        for value in values
    }
    listed = {_plain(value) for value in answer.values[name]}
    offered = {value for value in variable.values if not re.search("[,^]", value)} - later
    if unknown := {value for value in offered if _plain(value) not in listed}:
        yield Difference("values", name, ", ".join(sorted(unknown)))


def default_at(variable: Variable, version: str) -> str | None:
    """The default that a version has by the catalogue; ``None`` where it doesn't say."""
    if not variable.history:
        return variable.default
    known = [since for since in variable.history if not is_before_version(version, since)]
    if not known:
        return None
    if known[-1] == list(variable.history)[-1]:
        return variable.default
    return variable.history[known[-1]]


def _without_remark(default: str) -> str:
    """Without what a catalogue says of it: ``4096 (32768 with xpmem)`` is 4096."""
    return default.split(" (")[0]


def _plain(text: str) -> object:
    """A value so that two spellings of it are equal: 64k and 65536, y and 1, inf and 2^64-1."""
    text = text.strip().strip('"').strip().lower()
    if text in _UNSET:
        return ""
    if text in _SWITCH:
        return _SWITCH[text]
    if size := _SIZE.fullmatch(text):
        number = float(size[1]) * 1024 ** " kmgt".index(size[2] or " ")
        return "inf" if number == _MOST else number
    if length := _TIME.fullmatch(text):
        return round(float(length[1]) * _SECONDS[length[2]], 12)
    return text


def lacking(answer: Answer, catalogue: Catalogue) -> list[str]:
    """Names that a library has and the catalogue doesn't name at all, sorted."""
    named = {*catalogue.variables, *catalogue.others, *catalogue.not_variables}
    named |= {alias for variable in catalogue.variables.values() for alias in variable.aliases}
    prefixes = tuple(catalogue.prefixes)
    return sorted(n for n in answer.defaults if n.startswith(prefixes) and n not in named)


@dataclass(frozen=True)
class Known:
    """Differences that are known, of one kind and with one name or pattern.

    Attributes:
        kind: as that of a ``Difference``.
        name: the variable, or a pattern, which then speaks for all that it fits.
        reason: why there is a difference, for people.
        found: what the library prints.
    """

    kind: str
    name: str
    reason: str
    found: str = ""

    def means(self, one: Difference) -> bool:
        """Whether it is about this difference."""
        return one.kind == self.kind and fnmatchcase(one.name, self.name)


def known_differences(label: str) -> list[Known]:
    """What the file for a library says: kinds, in them reasons, in them names.

    ``default`` and ``values`` have mappings from a name to what the library prints, the others
    lists of names.
    """
    data = yaml.safe_load((KNOWN / f"{label}.yaml").read_text(encoding="utf-8"))
    return [
        Known(kind, name, reason, str(names[name]) if isinstance(names, dict) else "")
        for kind, by_reason in data.items()
        for reason, names in by_reason.items()
        for name in names
    ]


def complaints(seen: set[Difference], known: list[Known], answer: Answer) -> list[str]:
    """What to say of differences that aren't known, and of known ones that are none."""
    return sorted([*_new(seen, known), *_gone(seen, known, answer)])


def _new(seen: set[Difference], known: list[Known]) -> Iterator[str]:
    for one in seen:
        about = [entry for entry in known if entry.means(one)]
        if not about:
            yield _say(one)
        elif any(entry.found != one.found for entry in about):
            yield f"{_say(one)}, known as {about[0].found!r}"


def _gone(seen: set[Difference], known: list[Known], answer: Answer) -> Iterator[str]:
    for entry in known:
        if not any(entry.means(one) for one in seen):
            yield f"{entry.name}: known as {entry.kind}, and is not: {entry.reason}"
        elif entry.kind == "absent" and "*" in entry.name:
            for name in answer.defaults:
                if fnmatchcase(name, entry.name):
                    yield f"{name}: {entry.name} is known as absent, and this is there"


def _say(one: Difference) -> str:
    return {
        "absent": f"{one.name}: the catalogue has it, the library doesn't name it",
        "present": f"{one.name}: the catalogue says that this version lacks it, but it is there",
        "named": f"{one.name}: the catalogue says that it is not read, and the library names it",
        "default": f"{one.name}: default {one.found!r}, in the catalogue {one.expected!r}",
        "values": f"{one.name}: the library doesn't list {one.found}",
    }[one.kind]
