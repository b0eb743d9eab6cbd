"""Whether a library holds what was asked for, where the two are written differently."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_YES = frozenset({"1", "true", "yes", "on", "t", "y", "enabled"})
_NO = frozenset({"0", "false", "no", "off", "f", "n", "disabled"})
_SUFFIXES = {"k": 2**10, "m": 2**20, "g": 2**30}


def holds_value(asked: str, control: Mapping[str, Any], *, suffixes: bool = False) -> bool | None:
    """Whether a control variable holds what was asked for; ``None`` where that can't be told.

    Args:
        control: kind, value, word and words of the benchmark's trace.
        suffixes: whether the library reads 4k as 4096.
    """
    kind, value = control["kind"], str(control["value"])
    if kind == "unreadable":
        return None
    if asked in (value, control.get("word") or value):
        return True
    if kind == "text":
        return True if _items(asked) == _items(value) else None
    same = _same_word(asked, control)
    return _same_number(asked, value, suffixes=suffixes) if same is None else same


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",")]


def _same_word(asked: str, control: Mapping[str, Any]) -> bool | None:
    words = {str(word).lower() for word in control.get("words", ())}
    word = str(control.get("word", "")).lower()
    if asked.lower() in words:
        return asked.lower() == word
    truth = _truth(asked)
    if truth is not None and not _is_number(asked):
        held = _truth(word) if words else _truth(str(control["value"]))
        return None if held is None else held == truth
    return None


def _truth(text: str) -> bool | None:
    word = text.strip().lower()
    return True if word in _YES else False if word in _NO else None


def _same_number(asked: str, value: str, *, suffixes: bool) -> bool | None:
    wanted, held = _number(asked, suffixes=suffixes), _number(value, suffixes=False)
    if wanted is None or held is None:
        return None
    if math.isclose(wanted, held, rel_tol=1e-9):
        return True
    # Libraries put the value that they chose in the place of 0 or -1, which mean "choose".
    return False if wanted > 0 else None


def _is_number(text: str) -> bool:
    return _number(text, suffixes=True) is not None


def _number(text: str, *, suffixes: bool) -> float | None:
    text = text.strip().lower()
    factor = _SUFFIXES.get(text[-1:], 1) if suffixes else 1
    digits = text[:-1] if factor != 1 else text
    # Whether 010 is ten or eight depends on the library.
    if digits.lstrip("+-").startswith("0") and digits.lstrip("+-").isdigit() and float(digits):
        return None
    try:
        number = float(int(digits, 16)) if digits.startswith("0x") else float(digits)
    except ValueError:
        return None
    return number * factor if math.isfinite(number) else None
