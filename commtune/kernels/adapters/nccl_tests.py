"""Output of nccl-tests and rccl-tests: the table, or the JSON that ``-J`` writes.

The columns come from the table's own header, as versions differ: ``root`` is missing in old ones,
``#wrong`` was ``error``, and ``-I`` adds columns of single iterations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from commtune.kernels.adapters.readings import (
    Reading,
    lines_of,
    of_one_time,
    of_samples,
    parse_number,
    parse_whole,
    without_repeats,
)
from commtune.model import Measurement

_TIMES = ("time", "cputime")
_OUT_OF_BOUNDS = re.compile(r"^#\s*Out of bounds values\s*:\s*(\d+)")


def read_table(text: str, *, in_place: bool = False) -> Reading:
    """Reads the table: out of place, or in place.

    Where the output has no times of the one kind, those of the other are taken.
    """
    columns: list[str] = []
    found: list[Measurement] = []
    problems: list[str] = []
    out_of_bounds: int | None = None
    factor = 1.0
    for line in (line.strip() for line in lines_of(text)):
        words = line.lstrip("#").split()
        if line.startswith("#"):
            if words[:2] == ["size", "count"]:
                columns = words
            elif bounds := _OUT_OF_BOUNDS.match(line):
                out_of_bounds = int(bounds[1])
        elif columns and words and (size := parse_whole(words[0])):
            row = _row(columns, words, in_place=in_place)
            if row is None:
                problems.append(f"not understood: {line[:80]!r}")
                continue
            factor = _factor(row) or factor
            found.append(_measurement(row, size))
    if not found and not problems:
        problems.append("there is no table of nccl-tests in the output")
    # Small sizes print bandwidths that are rounded to nothing, so large ones say the factor.
    found = [_with_factor(m, factor) for m in found]
    kept, problems_all = without_repeats(found, problems)
    return Reading(kept, problems_all, out_of_bounds is not None, bool(out_of_bounds))


def read_json(text: str, *, in_place: bool = False) -> Reading:
    """Reads what ``-J`` writes."""
    try:
        report = json.loads(text)
        results = report["results"]
        found = [_of_json(result, in_place=in_place) for result in results]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Reading(problems=(f"the JSON of nccl-tests is not understood: {error!r}",))
    bounds = report.get("out_of_bounds")
    kept, problems = without_repeats([m for m in found if m], ())
    wrong = isinstance(bounds, dict) and bool(bounds.get("count"))
    return Reading(kept, problems, "end_time" in report, wrong)


def _row(columns: Sequence[str], words: Sequence[str], *, in_place: bool) -> dict[str, Any] | None:
    """The columns of one placement by name, and ``wrong`` of both; nothing if they don't fit."""
    starts = [at for at, name in enumerate(columns) if name in _TIMES]
    ends = [*starts[1:], len(columns)]
    # A timestamp, the last column of -S, is of two words.
    if not starts or not 0 <= len(words) - len(columns) <= 1:
        return None
    blocks = [
        dict(zip(columns[start:end], words[start:end], strict=False))
        for start, end in zip(starts, ends, strict=True)
    ]
    ordered = list(reversed(blocks)) if in_place else blocks
    for block in ordered:
        time_us = next((parse_number(block[name]) for name in _TIMES if name in block), None)
        if time_us:
            wrong = sum(parse_number(b.get("#wrong", "0")) or 0 for b in blocks)
            return {**block, "time_us": time_us, "wrong": int(wrong)}
    return None


def _measurement(row: Mapping[str, Any], size: int) -> Measurement:
    low_us, high_us = parse_number(row.get("i_min", "")), parse_number(row.get("i_max", ""))
    return of_one_time(
        size,
        row["time_us"] * 1e-6,
        low_s=low_us * 1e-6 if low_us else None,
        high_s=high_us * 1e-6 if high_us else None,
        wrong=row["wrong"],
    )


def _factor(row: Mapping[str, Any]) -> float | None:
    """Bus bandwidth / algorithm bandwidth, where both are printed with some digits."""
    algorithm, bus = parse_number(row.get("algbw", "")), parse_number(row.get("busbw", ""))
    return bus / algorithm if algorithm and bus and min(algorithm, bus) >= 1 else None


def _with_factor(measurement: Measurement, factor: float) -> Measurement:
    return replace(measurement, busbw=measurement.algbw * factor)


def _of_json(result: Mapping[str, Any], *, in_place: bool) -> Measurement | None:
    names = ("in_place", "out_of_place") if in_place else ("out_of_place", "in_place")
    placed = [(name, result[name]) for name in names if isinstance(result.get(name), dict)]
    wrong = int(sum(block.get("nwrong") or 0 for _, block in placed))
    size = int(result["size"])
    for name, block in placed:
        time_us = float(block.get("time", block.get("cpu_time")))
        if time_us <= 0:
            continue
        factor = block["bus_bw"] / block["alg_bw"] if block["alg_bw"] else 1.0
        iterations = (result.get(f"{name}_per_iter") or {}).get("times_us")
        if iterations:
            samples_s = [float(t) * 1e-6 for t in iterations]
            return of_samples(size, samples_s, bus_factor=factor, wrong=wrong)
        return of_one_time(size, time_us * 1e-6, bus_factor=factor, wrong=wrong)
    return None
