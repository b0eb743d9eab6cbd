"""Output of the OSU micro-benchmarks: latencies, bandwidths, collectives."""

from __future__ import annotations

import re
from collections.abc import Mapping

from commtune.kernels.adapters.readings import (
    Reading,
    lines_of,
    of_one_time,
    parse_number,
    parse_whole,
    without_repeats,
)
from commtune.model import Measurement

#: Names of columns have single blanks inside, and two or more between them.
_BETWEEN = re.compile(r"\s{2,}")
_LATENCIES = ("Avg Latency(us)", "Latency (us)")
_BANDWIDTHS = ("Bandwidth (MB/s)", "MB/s")


def read_osu(text: str) -> Reading:
    """Reads a table. A bandwidth becomes the time of one message.

    The time is the average over ranks, as OSU prints it always; ``-f`` adds the shortest and the
    longest over ranks.
    """
    columns: list[str] = []
    title = ""
    found: list[Measurement] = []
    problems: list[str] = []
    for line in lines_of(text):
        if line.startswith("# OSU"):
            title, columns = line, []
        elif line.startswith("# Size"):
            columns = _BETWEEN.split(line.removeprefix("#").strip())
        elif columns and line[:1].isdigit():
            row = dict(zip(columns, line.split(), strict=False))
            size = parse_whole(row["Size"])
            if size == 0:
                # A message of nothing has no bandwidth, and no size of a campaign is 0.
                continue
            time_s = _time_s(row, size, is_both_ways="Bi-Directional" in title) if size else None
            if size and time_s:
                found.append(_measurement(row, size, time_s))
            else:
                problems.append(f"not understood: {line.strip()[:80]!r}")
    if not found and not problems:
        problems.append("there is no table of OSU's in the output")
    kept, all_problems = without_repeats(found, problems)
    return Reading(kept, all_problems)


def _time_s(row: Mapping[str, str], size: int, *, is_both_ways: bool) -> float | None:
    for name in _LATENCIES:
        if name in row:
            time_us = parse_number(row[name])
            return time_us * 1e-6 if time_us else None
    for name in _BANDWIDTHS:
        if name in row:
            megabytes = parse_number(row[name])
            return (2 if is_both_ways else 1) * size / (megabytes * 1e6) if megabytes else None
    return None


def _measurement(row: Mapping[str, str], size: int, time_s: float) -> Measurement:
    low_us = parse_number(row.get("Min Latency(us)", ""))
    high_us = parse_number(row.get("Max Latency(us)", ""))
    return of_one_time(
        size,
        time_s,
        low_s=low_us * 1e-6 if low_us else None,
        high_s=high_us * 1e-6 if high_us else None,
        wrong=int(row.get("Validation", "").casefold() == "fail"),
    )
