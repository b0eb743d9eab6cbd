"""Output of any program: a line of JSON for each size (line.schema.json).

``{"bytes": 65536, "time_s": 1.2e-5}`` or ``{"bytes": 65536, "times_s": [1.2e-5, 1.3e-5]}``, with
``"wrong": 3`` where results were wrong. All other lines are the program's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from commtune.kernels.adapters.readings import (
    Reading,
    lines_of,
    of_one_time,
    of_samples,
    without_repeats,
)
from commtune.model import Measurement

_BEYOND_ANY_TIME = 1e9
_LARGEST_BYTES = 2**63 - 1
_KEYS = frozenset({"bytes", "time_s", "times_s", "wrong", "bus_factor"})


def read_json_lines(text: str) -> Reading:
    """Reads all lines that are objects with ``bytes``."""
    found: list[Measurement] = []
    problems: list[str] = []
    for line in lines_of(text):
        record = _object(line)
        if record is None or "bytes" not in record:
            continue
        try:
            found.append(_measurement(record))
        except ValueError as error:
            problems.append(f"{line.strip()[:80]}: {error}")
    if not found and not problems:
        problems.append('there is no line like {"bytes": 8, "time_s": 1e-6} in the output')
    kept, all_problems = without_repeats(found, problems)
    return Reading(kept, all_problems)


def _object(line: str) -> Mapping[str, Any] | None:
    if not line.lstrip().startswith("{"):
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _measurement(record: Mapping[str, Any]) -> Measurement:
    if unknown := sorted(record.keys() - _KEYS):
        raise ValueError(f"unknown member {unknown[0]!r}; known: {', '.join(sorted(_KEYS))}")
    size, wrong = _whole(record, "bytes", 1), _whole({"wrong": 0, **record}, "wrong", 0)
    factor = record.get("bus_factor", 1.0)
    if not _is_number(factor):
        raise ValueError("bus_factor is not a number from 0")
    if ("time_s" in record) == ("times_s" in record):
        raise ValueError("needs either time_s or times_s")
    if "time_s" in record:
        return of_one_time(size, _time(record["time_s"]), bus_factor=factor, wrong=wrong)
    times = record["times_s"]
    if not isinstance(times, list) or not times:
        raise ValueError("times_s is not a list of seconds")
    return of_samples(size, [_time(t) for t in times], bus_factor=factor, wrong=wrong)


def _whole(record: Mapping[str, Any], name: str, low: int) -> int:
    value = record[name]
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= _LARGEST_BYTES:
        raise ValueError(f"{name} is not a whole number from {low}")
    return value


def _time(value: object) -> float:
    if not _is_number(value) or value == 0:
        raise ValueError(f"{str(value)[:20]!r} is not a time in seconds above 0")
    assert isinstance(value, int | float)
    return float(value)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value < _BEYOND_ANY_TIME
