"""Suggests the valid word that an invalid one was probably meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from commtune.errors import UserError

#: The most options that a hint lists.
_MOST_SHOWN = 12


def find_nearest(word: str, options: Iterable[str], *, cutoff: float = 0.5) -> str | None:
    """Returns the option most similar to the word, ignoring case; ``None`` if none is similar.

    Options that the word is a prefix or an abbreviation of take precedence.
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
    """Whether a word abbreviates an option: it omits letters after the first, up to half."""
    if word[:1] != option[:1] or not len(option) // 2 < len(word) < len(option):
        return False
    letters = iter(option)
    return all(letter in letters for letter in word)


def suggest_nearest(word: str, options: Iterable[str]) -> str:
    """Returns a hint with the nearest option, or else with the first twelve options."""
    known = list(options)
    found = find_nearest(word, known)
    if found is not None:
        return f"nearest: {found}"
    shown = ", ".join(known[:_MOST_SHOWN])
    more = f", ... ({len(known)} in all)" if len(known) > _MOST_SHOWN else ""
    return f"known: {shown}{more}" if known else ""


def require_known(name: str, word: str, known: Collection[str]) -> str:
    """Returns the word.

    Raises:
        UserError: it is not a known value of what has this name; the hint suggests the nearest.
    """
    if word in known:
        return word
    raise UserError(
        f"{name}: {quote_value(word)} is not a known value", hint=suggest_nearest(word, known)
    )


def quote_value(value: object) -> str:
    """Returns a value for a message: quoted, on one line, and cut short."""
    text = " ".join(str(value).split())
    return f"'{text[:60]}...'" if len(text) > 60 else f"'{text}'"
