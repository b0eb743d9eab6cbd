"""Members of a record, each checked as it is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn, TypeGuard

_BEYOND_ANY_AMOUNT = 1e30


class InvalidRecord(Exception):
    """A record that doesn't follow the contract; caught by the reader."""


def parse_record(line: bytes) -> Mapping[str, Any]:
    """A line of a record file."""
    try:
        record = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:  # ValueError: no JSON, or no UTF-8
        raise InvalidRecord("not JSON") from error
    if not isinstance(record, dict):
        raise InvalidRecord("not a JSON object")
    return record


def read_samples(record: Mapping[str, Any]) -> tuple[float, ...]:
    """Seconds."""
    found = record.get("samples_ns")
    if not isinstance(found, list) or not found or not all(_is_amount(s) for s in found):
        raise InvalidRecord("samples_ns is not a list of times")
    if len(found) != record.get("samples"):
        raise InvalidRecord(f"samples says {record.get('samples')}, but there are {len(found)}")
    return tuple(sample * 1e-9 for sample in found)


def read_number(record: Mapping[str, Any], name: str) -> float:
    """A number from 0."""
    value = record.get(name)
    if not _is_amount(value):
        raise InvalidRecord(f"{name} is not a number from 0: {str(value)[:40]!r}")
    return float(value)


def read_positive(record: Mapping[str, Any], name: str) -> float:
    """A number above 0."""
    value = read_number(record, name)
    if value == 0:
        raise InvalidRecord(f"{name} is 0")
    return value


def read_whole(record: Mapping[str, Any], name: str) -> int:
    """A whole number from 0."""
    value = record.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidRecord(f"{name} is not a whole number from 0: {str(value)[:40]!r}")
    return value


def optional_ns(record: Mapping[str, Any], name: str) -> float | None:
    """Seconds, from nanoseconds or null."""
    return None if record.get(name) is None else read_positive(record, name) * 1e-9


def optional_positive(record: Mapping[str, Any], name: str) -> float | None:
    """A number above 0, or null, or nothing."""
    return None if record.get(name) is None else read_positive(record, name)


def read_object(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object."""
    value = record.get(name)
    if not isinstance(value, dict):
        raise InvalidRecord(f"{name} is not an object")
    return value


def _is_amount(value: object) -> TypeGuard[int | float]:
    # bool is an int to Python; 1e999 is infinity to its JSON; and isfinite(10**400) overflows.
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return 0 <= value < _BEYOND_ANY_AMOUNT


def _no_number(name: str) -> NoReturn:
    raise InvalidRecord(f"{name} is no number")
