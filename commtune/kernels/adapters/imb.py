"""Output of the Intel MPI Benchmarks (IMB-MPI1 and its kin)."""

from __future__ import annotations

from commtune.kernels.adapters.readings import (
    Reading,
    lines_of,
    of_one_time,
    parse_number,
    parse_whole,
    without_repeats,
)
from commtune.model import Measurement

_END = "# All processes entering MPI_Finalize"


def read_imb(text: str) -> Reading:
    """Reads a table. The time is that of the slowest rank, from which IMB gets its bandwidths."""
    columns: list[str] = []
    found: list[Measurement] = []
    problems: list[str] = []
    ended = False
    for line in lines_of(text):
        words = line.split()
        if words[:1] == ["#bytes"]:
            columns = words
        elif line.startswith("#"):
            columns = []  # a table ends where the next one is announced
            ended = ended or line.strip() == _END
        elif columns and words and (size := parse_whole(words[0])):  # nothing of a size of 0
            measurement = _measurement(size, dict(zip(columns, words, strict=False)))
            if measurement is not None:
                found.append(measurement)
            else:
                problems.append(f"not understood: {line.strip()[:80]!r}")
    if not found and not problems:
        problems.append("there is no table of IMB's in the output")
    kept, all_problems = without_repeats(found, problems)
    return Reading(kept, all_problems, ended)


def _measurement(size: int, row: dict[str, str]) -> Measurement | None:
    time_us = parse_number(row.get("t_max[usec]", row.get("t[usec]", "")))
    if not time_us:
        return None
    low_us = parse_number(row.get("t_min[usec]", ""))
    return of_one_time(
        size,
        time_us * 1e-6,
        low_s=low_us * 1e-6 if low_us else None,
        high_s=time_us * 1e-6,
        wrong=int((parse_number(row.get("defects", "0")) or 0) > 0),
    )
