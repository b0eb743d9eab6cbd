"""The commands that mend what ``commtune doctor`` found: each variable is changed by one of them.

Several findings may speak of one variable, and what mends one may undo what mends another. So:
what the catalogue says of a variable goes before ``unset`` of all that are set, which takes the
rest; taking a variable away goes before correcting it; and a misspelled one that is set under its
right name too is taken away, for the other is what programs read so far.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping

from commtune.cluster.machine.doctor import Check, Status

#: Variables with their new values; ``None`` takes one away.
_Changes = Mapping[str, str | None]


def fix_commands(
    general: Iterable[Check], of_variables: Iterable[Check], names: Iterable[str] = ()
) -> list[str]:
    """The command lines, each once; the one that takes several variables away at the end.

    Args:
        general: findings about the machine, and about the environment as a whole.
        of_variables: findings about single variables of it.
        names: of what is set, whether anything is said of it or not: a guard is none of ours.
    """
    others, singly = _mends(general), _mends(of_variables)
    here = {n: None for mend in others if _unsets(mend) for n in _read(mend)}
    decided = _decided([_read(mend) for mend in singly], {*here, *names})
    return [
        *(mend for mend in others if not _unsets(mend)),
        *_lines([*map(_read, singly), {n: None for n in here if n not in decided}], decided),
    ]


def _mends(findings: Iterable[Check]) -> list[str]:
    return [*dict.fromkeys(f.mend for f in findings if f.mend and f.status is not Status.OK)]


def _unsets(mend: str) -> bool:
    return mend.startswith("unset ")


def _read(mend: str) -> _Changes:
    """What a command such as ``export A=1; unset B C`` changes."""
    changes: dict[str, str | None] = {}
    words = shlex.shlex(mend, posix=True, punctuation_chars=";")
    words.whitespace_split = True
    exports = False
    for word in words:
        if word in ("export", "unset", ";"):
            exports = word == "export"
        else:
            name, _, value = word.partition("=")
            changes[name] = value if exports else None
    return changes


def _decided(wanted: Iterable[_Changes], here: Iterable[str]) -> _Changes:
    """What becomes of each variable.

    Args:
        here: those that are set now.
    """
    wanted, here = [*wanted], set(here)
    decided: dict[str, str | None] = {}
    for changes in wanted:
        if set(changes.values()) == {None}:
            decided.update(changes)
    for changes in wanted:
        is_renaming = None in changes.values()
        for name, value in changes.items():
            if value is None or not (is_renaming and name in here):
                decided.setdefault(name, value)
    return decided


def _lines(wanted: Iterable[_Changes], decided: _Changes) -> Iterator[str]:
    """A line for each of the changes, without what is changed otherwise or was before."""
    done: set[str] = set()
    for changes in wanted:
        kept = {
            name: value
            for name, value in changes.items()
            if name not in done and decided.get(name) == value
        }
        done |= kept.keys()
        sets = [f"export {name}={shlex.quote(v)}" for name, v in kept.items() if v is not None]
        gone = [shlex.quote(name) for name, value in kept.items() if value is None]
        if parts := [*sets, *([f"unset {' '.join(gone)}"] if gone else [])]:
            yield "; ".join(parts)
