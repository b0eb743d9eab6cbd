"""Finds the legal word that a wrong one was probably meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

#: Options that a hint lists.
_MOST_SHOWN = 12


def find_nearest(word: str, options: Iterable[str], *, cutoff: float = 0.5) -> str | None:
    """The option most like the word, whatever their case; ``None`` where none is like it.

    Before options that are merely like it come those that it begins or shortens.
    """
    by_fold: dict[str, str] = {}
    for option in options:
        by_fold.setdefault(option.casefold(), option)
    # "harm" means "harm-to-others", and not "hang".
    longer = [o for o in by_fold if len(word) > 2 and o.startswith(word.casefold())]
    if longer:
        return by_fold[min(longer, key=len)]
    # "bcast" means "broadcast", and not "incast".
    shortened = [o for o in by_fold if _shortens(word.casefold(), o)]
    if shortened:
        return by_fold[min(shortened, key=len)]
    found = difflib.get_close_matches(word.casefold(), by_fold, n=1, cutoff=cutoff)
    return by_fold[found[0]] if found else None


def _shortens(word: str, option: str) -> bool:
    """Whether only letters after the first were left out, and not most of them."""
    if word[:1] != option[:1] or not len(option) // 2 < len(word) < len(option):
        return False
    letters = iter(option)
    return all(letter in letters for letter in word)


def suggest(word: str, options: Iterable[str]) -> str:
    """A hint: the nearest option, or else all of them where they are few."""
    known = list(options)
    found = find_nearest(word, known)
    if found is not None:
        return f"nearest: {found}"
    shown = ", ".join(known[:_MOST_SHOWN])
    more = f", ... ({len(known)} in all)" if len(known) > _MOST_SHOWN else ""
    return f"known: {shown}{more}" if known else ""


def quote_value(value: object) -> str:
    """An offending value as a message shows it: quoted, on one line, not long."""
    text = " ".join(str(value).split())
    return f"'{text[:60]}...'" if len(text) > 60 else f"'{text}'"
