"""Checks that stored values are such as commtune writes: a file can be damaged, or edited.

Imports only the standard library, because the start of ``commtune best`` waits for it.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict

#: Returns what is wrong with a value; empty if nothing is.
_Check = Callable[[Any], str]


class Moment(float):
    """Seconds since 1970, up to the year 9999, in which ``datetime`` ends."""

    least, most = 0.0, 253402300800.0


class Seconds(float):
    """The duration of a run or of a part of it, seconds."""

    least, most = 0.0, 1e9


class Time(float):
    """The time of an operation, seconds; greater than zero by what a clock can resolve."""

    least, most = 1e-10, 1e9


class Level(float):
    """A confidence level, above 0 and below 1."""

    least, most = math.nextafter(0.0, 1.0), math.nextafter(1.0, 0.0)


_BOUNDED = (Moment, Seconds, Time, Level)
_WORDS = {float: "a number", int: "a whole number", bool: "true or false", str: "text",
          bytes: "bytes"}  # fmt: skip
_MOST_SHOWN = 40


@cache
def check_of(hint: Any) -> _Check:
    """Returns the check for a type annotation.

    Supports scalars, enums, unions, lists and tuples of one type, mappings with text keys, and
    dataclasses and typed dictionaries in their JSON form. A dataclass must have no unknown keys
    and all keys without a default; a typed dictionary may have unknown keys and lack any.
    """
    if hint is Any:
        return lambda _: ""
    if hint in _WORDS:
        return _scalar(hint)
    if hint in _BOUNDED:
        return _bounded(hint)
    if is_typeddict(hint):
        return _keys(hint, closed=False)
    if isinstance(hint, type) and is_dataclass(hint):
        return _keys(hint, closed=True)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _word(hint)
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _any_of([check_of(one) for one in inner if one is not type(None)])
    if origin in (list, tuple):
        return _items(check_of(inner[0]))
    return _values(inner[1] if inner else Any)


@cache
def column_check_of(hint: Any) -> Callable[[Sequence[Any]], bool]:
    """Returns a fast check of all values of a column at once, which most columns pass.

    The check returns false where some values may be wrong; ``check_of`` then tells which.
    """
    if get_origin(hint) in (Union, types.UnionType):
        inner = [column_check_of(one) for one in get_args(hint) if one is not type(None)]
        known = inner[0] if len(inner) == 1 else _is_empty
        return lambda values: known([value for value in values if value is not None])
    if hint is int:
        return lambda values: set(map(type, values)) <= {int}
    if hint is bool:
        return lambda values: set(map(type, values)) <= {bool, int} and {0, 1}.issuperset(values)
    if hint is str:
        return lambda values: set(map(type, values)) <= {str} and all(map(str.isascii, values))
    if hint is float or hint in _BOUNDED:
        least, most = getattr(hint, "least", -math.inf), getattr(hint, "most", math.inf)
        return lambda values: (
            not values
            or (
                set(map(type, values)) <= {float, int}
                and least <= min(values)
                and max(values) <= most
                and not math.isnan(sum(values))  # min and max may miss NaN
            )
        )
    if isinstance(hint, type) and issubclass(hint, Enum):
        words = frozenset(one.value for one in hint if one.value)
        return lambda values: set(map(type, values)) <= {str} and words.issuperset(values)
    return _is_empty


def _is_empty(values: Sequence[Any]) -> bool:
    return not values


def interval_problem(row: Mapping[str, Any]) -> str:
    """Returns what is wrong with an interval of numbers; its upper end may be infinite."""
    low, ratio, high = row["low"], row["ratio"], row["high"]
    if 0 <= low <= ratio <= high and 0 < ratio < math.inf:
        return ""
    ends = f"{shorten_value(low)} to {shorten_value(high)}"
    return f"{shorten_value(ratio)} is not in an interval from {ends}"


def check_document(stored: Any, hint: Any) -> tuple[Any, str]:
    """Returns the value of a JSON column, and what is wrong with it (empty if nothing is).

    SQLite's driver returns it as text, others parsed.
    """
    if problem := isinstance(stored, str) and _undecodable(stored):
        return None, problem
    try:
        value = json.loads(stored) if isinstance(stored, str | bytes) else stored
    except (ValueError, RecursionError):  # broken, or nested too deeply
        return None, f"broken JSON: {shorten_value(stored)}"
    return value, check_of(hint)(value)


def shorten_value(value: Any) -> str:
    """Returns a damaged value for messages: in ASCII, and cut short."""
    found = ascii(value)
    return found if len(found) <= _MOST_SHOWN else f"{found[:_MOST_SHOWN]}..."


def _undecodable(text: str) -> str:
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        return f"no UTF-8 text: {shorten_value(text)}"
    return ""


def _scalar(kind: type) -> _Check:
    allowed = (int, float) if kind is float else kind

    def check(value: Any) -> str:
        if not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool):
            # SQLite stores booleans as 0 and 1.
            if kind is bool and type(value) is int and value in (0, 1):
                return ""
            return f"{shorten_value(value)} is not {_WORDS[kind]}"
        if isinstance(value, str):
            return _undecodable(value)
        return "not a number" if kind is float and value != value else ""

    return check


def _bounded(kind: type[Moment] | type[Seconds] | type[Time] | type[Level]) -> _Check:
    number = _scalar(float)

    def check(value: Any) -> str:
        if problem := number(value):
            return problem
        is_good = kind.least <= value <= kind.most
        return "" if is_good else f"{shorten_value(value)} is no {kind.__name__.lower()}"

    return check


def _word(kind: type[Enum]) -> _Check:
    def check(value: Any) -> str:
        try:
            known = isinstance(value, str) and bool(kind(value))
        except ValueError:
            known = False
        return "" if known else f"{shorten_value(value)} is no {kind.__name__.lower()}"

    return check


@cache
def is_document(hint: Any) -> bool:
    """Whether a column of this type is stored as JSON."""
    is_union = get_origin(hint) in (Union, types.UnionType)
    kind = next(one for one in get_args(hint) if one is not type(None)) if is_union else hint
    is_word = isinstance(kind, type) and not is_typeddict(kind) and issubclass(kind, Enum)
    return kind is not Any and kind not in (*_WORDS, *_BOUNDED) and not is_word


def _any_of(checks: list[_Check]) -> _Check:
    """Returns a check that passes if one of these does, or for ``None``."""

    def check(value: Any) -> str:
        found = [] if value is None else [one(value) for one in checks]
        return found[0] if found and all(found) else ""

    return check


def _items(item: _Check) -> _Check:
    def check(value: Any) -> str:
        if not isinstance(value, list | tuple):
            return f"{shorten_value(value)} is not a list"
        return next(filter(None, map(item, value)), "")

    return check


def _values(kind: Any) -> _Check:
    text, item = check_of(str), check_of(kind)
    are_texts, are_items = column_check_of(str), column_check_of(kind)

    def check(value: Any) -> str:
        if type(value) is dict and are_texts([*value]) and are_items([*value.values()]):
            return ""
        if not isinstance(value, Mapping):
            return f"{shorten_value(value)} is not an object"
        found = (text(key) or _below(key, item(one)) for key, one in value.items())
        return next(filter(None, found), "")

    return check


def _keys(kind: Any, *, closed: bool) -> _Check:
    hints = get_type_hints(kind)
    needed: set[str] = set()
    if closed:
        needed = {
            field.name
            for field in fields(kind)
            if field.default is MISSING and field.default_factory is MISSING
        }

    def check(value: Any) -> str:
        if not isinstance(value, Mapping):
            return f"{shorten_value(value)} is not an object"
        for key, one in value.items():
            if key not in hints:
                if closed:
                    return f"unknown key {shorten_value(key)}"
                continue
            # A key that a typed dictionary may lack may also be null.
            if problem := "" if one is None and not closed else check_of(hints[key])(one):
                return _below(key, problem)
        missing = needed - value.keys()
        return f"lacks {', '.join(sorted(missing))}" if missing else ""

    return check


def _below(key: str, problem: str) -> str:
    return problem and f"{key}: {problem}"
