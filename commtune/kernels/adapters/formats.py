"""Parses measurements from the output of nccl-tests, OSU, IMB, and from JSON Lines."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from commtune.kernels.python_bench.sampling import summarise_samples
from commtune.model import Measurement
from commtune.model.plausible import problem_of_time

#: The prefix of lines by mpirun --tag-output and srun --label.
_LABEL = re.compile(r"^(?:\[\d+,\d+\]<std(?:out|err)>:\s?|\d+: )")
_MOST_DIGITS = 15


@dataclass(frozen=True)
class Reading:
    """The measurements in a program's output: each size once, in the order printed."""

    measurements: tuple[Measurement, ...] = ()
    problems: tuple[str, ...] = ()
    #: Whether the output has the mark of a complete run; ``None`` if its format has none.
    ended: bool | None = None
    is_wrong: bool = False  # whether it reports wrong results, maybe without their sizes


#: Requested sizes in bytes; ``None`` for all.
_Asked = Container[int] | None


@dataclass
class _Found:
    """The results of a parser, which skips sizes that were not requested, as there may be many."""

    asked: _Asked
    measurements: list[Measurement] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    is_there: bool = False  # whether there was any size, requested or not

    def wants(self, size: Any, wrong: Any) -> bool:
        """Whether to keep a size: if it was requested, or results were wrong."""
        self.is_there = True
        return self.asked is None or bool(wrong) or type(size) is not int or size in self.asked

    def add_row(
        self,
        line: str,
        size: int | None,
        time_us: float | None,
        row: Mapping[str, str],
        ends: tuple[str, str],
        wrong: int,
    ) -> None:
        """Adds a row's time; ``ends``: the columns of its minimum and maximum, if it has them."""
        if not self.wants(size, wrong):
            return
        if not size or not time_us:
            self.problems.append(f"not understood: {line.strip()[:80]!r}")
            return
        low_s, high_s = ((_number(row.get(name, "")) or time_us) * 1e-6 for name in ends)
        one = _of_one_time(size, time_us * 1e-6, wrong=wrong)
        self.measurements.append(replace(one, min_s=low_s, p95_s=high_s, max_s=high_s))


def _read_table(text: str, asked: _Asked = None, *, in_place: bool = False) -> Reading:
    """Reads the table of nccl-tests or rccl-tests: out of place, or in place.

    If the output has no times of one kind, the other kind is used.
    """
    columns: list[str] = []
    found = _Found(asked)
    out_of_bounds: int | None = None
    factor = 1.0
    for line in (line.strip() for line in _lines(text)):
        words = line.lstrip("#").split()
        if line.startswith("#"):
            # Columns come from the header, since versions differ: ``root`` is missing in old ones,
            # ``#wrong`` was ``error``, and ``-I`` adds columns of single iterations.
            if words[:2] == ["size", "count"]:
                columns = words
            elif bounds := _OUT_OF_BOUNDS.match(line):
                out_of_bounds = int(bounds[1])
        elif columns and words and (size := _whole(words[0])):
            row = _table_row(columns, words, in_place=in_place) or {"time_us": None, "wrong": 0}
            factor = _bus_factor(row) or factor
            found.add_row(line, size, row["time_us"], row, ("i_min", "i_max"), row["wrong"])
    # Bandwidths of small sizes are rounded to 0, so the factor is from large ones.
    found.measurements = [replace(m, busbw=m.algbw * factor) for m in found.measurements]
    reading = _reading(found, "there is no table of nccl-tests in the output")
    return replace(reading, ended=out_of_bounds is not None, is_wrong=bool(out_of_bounds))


_TIMES = ("time", "cputime")
_OUT_OF_BOUNDS = re.compile(r"^#\s*Out of bounds values\s*:\s*(\d+)")


def _table_row(
    columns: Sequence[str], words: Sequence[str], *, in_place: bool
) -> dict[str, Any] | None:
    """Returns a placement's columns by name, and ``wrong`` of both; ``None`` for other lines."""
    starts = [at for at, name in enumerate(columns) if name in _TIMES]
    ends = [*starts[1:], len(columns)]
    # A timestamp, the last column with -S, has two words.
    if not starts or not 0 <= len(words) - len(columns) <= 1:
        return None
    blocks = [
        dict(zip(columns[start:end], words[start:end], strict=False))
        for start, end in zip(starts, ends, strict=True)
    ]
    for block in reversed(blocks) if in_place else blocks:
        time_us = next((_number(block[name]) for name in _TIMES if name in block), None)
        if time_us:
            wrong = sum(_number(b.get("#wrong", "0")) or 0 for b in blocks)
            return {**block, "time_us": time_us, "wrong": int(wrong)}
    return None


def _bus_factor(row: Mapping[str, Any]) -> float | None:
    """Returns bus bandwidth / algorithm bandwidth, if both are printed precisely enough."""
    algorithm, bus = _number(row.get("algbw", "")), _number(row.get("busbw", ""))
    return bus / algorithm if algorithm and bus and min(algorithm, bus) >= 1 else None


#: Errors by unexpected JSON of other programs.
_NOT_UNDERSTOOD = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip


def read_json(text: str, asked: _Asked = None, *, in_place: bool = False) -> Reading:
    """Reads the JSON that nccl-tests writes with ``-J``."""
    found = _Found(asked)
    try:
        report = json.loads(text)
        for result in report["results"]:
            if one := _of_result(result, found, in_place=in_place):
                found.measurements.append(one)
    except _NOT_UNDERSTOOD as error:
        return Reading(problems=(f"the JSON of nccl-tests is not understood: {error!r}",))
    bounds = report.get("out_of_bounds")
    wrong = isinstance(bounds, dict) and bool(bounds.get("count"))
    return replace(_reading(found), ended="end_time" in report, is_wrong=wrong)


def _of_result(result: Mapping[str, Any], found: _Found, *, in_place: bool) -> Measurement | None:
    names = ("in_place", "out_of_place") if in_place else ("out_of_place", "in_place")
    placed = [(name, result[name]) for name in names if isinstance(result.get(name), dict)]
    wrong = int(sum(block.get("nwrong") or 0 for _, block in placed))
    size = _member({"size": int(result["size"])}, "size", 0)
    for name, block in placed if found.wants(size, wrong) else ():
        time_us = float(block.get("time", block.get("cpu_time")))
        if time_us <= 0:
            continue
        factor = block["bus_bw"] / block["alg_bw"] if block["alg_bw"] else 1.0
        if not _is_number(factor):
            raise ValueError(f"{size} bytes: bandwidths that don't go together")
        iterations = (result.get(f"{name}_per_iter") or {}).get("times_us")
        if iterations:
            samples_s = [float(t) * 1e-6 for t in iterations]
            return _of_samples(size, samples_s, bus_factor=factor, wrong=wrong)
        return _of_one_time(size, time_us * 1e-6, bus_factor=factor, wrong=wrong)
    return None


def _read_osu(text: str, asked: _Asked = None) -> Reading:
    """Reads a table of the OSU micro-benchmarks. A bandwidth becomes the time of one message.

    The time is the average over ranks, as OSU prints it always; ``-f`` adds the shortest and the
    longest over ranks.
    """
    columns: list[str] = []
    title = ""
    found = _Found(asked)
    for line in _lines(text):
        if line.startswith("# OSU"):
            title, columns = line, []
        elif line.startswith("# Size"):
            columns = _OSU_COLUMNS.split(line.removeprefix("#").strip())
        elif columns and line[:1].isdigit():
            row = dict(zip(columns, line.split(), strict=False))
            size = _whole(row.get("Size", ""))
            wrong = int(row.get("Validation", "").casefold() == "fail")
            if size == 0:  # an empty message has no bandwidth, and a campaign has no size 0
                continue
            time_us = _osu_time_us(row, size, both_ways="Bi-Directional" in title) if size else 0
            found.add_row(line, size, time_us, row, ("Min Latency(us)", "Max Latency(us)"), wrong)
    return _reading(found, "there is no table of OSU's in the output")


#: Names of columns have single spaces inside, and two or more between them.
_OSU_COLUMNS = re.compile(r"\s{2,}")
_LATENCIES = ("Avg Latency(us)", "Latency (us)")
_BANDWIDTHS = ("Bandwidth (MB/s)", "MB/s")


def _osu_time_us(row: Mapping[str, str], size: int, *, both_ways: bool) -> float | None:
    for name in _LATENCIES:
        if name in row:
            return _number(row[name])
    for name in _BANDWIDTHS:
        if name in row:
            megabytes = _number(row[name])
            return (2 if both_ways else 1) * size / megabytes if megabytes else None
    return None


def _read_imb(text: str, asked: _Asked = None) -> Reading:
    """Reads a table of IMB-MPI1 or a similar Intel MPI benchmark.

    The time is that of the slowest rank, from which IMB gets its bandwidths.
    """
    columns: list[str] = []
    found = _Found(asked)
    ended = False
    for line in _lines(text):
        words = line.split()
        if words[:1] == ["#bytes"]:
            columns = words
        elif line.startswith("#"):
            columns = []  # a table ends where the next one is announced
            ended = ended or line.strip() == "# All processes entering MPI_Finalize"
        elif columns and words and (size := _whole(words[0])):  # nothing of a size of 0
            row = dict(zip(columns, words, strict=False))
            wrong = int((_number(row.get("defects", "0")) or 0) > 0)
            longest = "t_max[usec]" if "t_max[usec]" in row else "t[usec]"
            time_us = _number(row.get(longest, ""))
            found.add_row(line, size, time_us, row, ("t_min[usec]", longest), wrong)
    reading = _reading(found, "there is no table of IMB's in the output")
    return replace(reading, ended=ended)


def _read_json_lines(text: str, asked: _Asked = None) -> Reading:
    """Reads a line of JSON for each size (line.schema.json), and ignores other lines.

    ``{"bytes": 65536, "time_s": 1.2e-5}`` or ``{"bytes": 65536, "times_s": [1.2e-5, 1.3e-5]}``,
    with ``"wrong": 3`` where they were wrong.
    """
    found = _Found(asked)
    for line in _lines(text):
        record = _object(line)
        if record is None or "bytes" not in record:
            continue
        if not found.wants(record["bytes"], record.get("wrong")):
            continue
        try:
            found.measurements.append(_of_record(record))
        except ValueError as error:
            found.problems.append(f"{line.strip()[:80]}: {error}")
    return _reading(found, 'there is no line like {"bytes": 8, "time_s": 1e-6} in the output')


_BEYOND_ANY_TIME = 1e9
_LARGEST_BYTES = 2**63 - 1
_KEYS = frozenset({"bytes", "time_s", "times_s", "wrong", "bus_factor"})


def _object(line: str) -> Mapping[str, Any] | None:
    if not line.lstrip().startswith("{"):
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _of_record(record: Mapping[str, Any]) -> Measurement:
    if unknown := sorted(record.keys() - _KEYS):
        raise ValueError(f"unknown member {unknown[0]!r}; known: {', '.join(sorted(_KEYS))}")
    size, wrong = _member(record, "bytes", 1), _member({"wrong": 0, **record}, "wrong", 0)
    factor = record.get("bus_factor", 1.0)
    if not _is_number(factor):
        raise ValueError("bus_factor is not a number from 0")
    if ("time_s" in record) == ("times_s" in record):
        raise ValueError("needs either time_s or times_s")
    if "time_s" in record:
        return _of_one_time(size, _time_s(record["time_s"]), bus_factor=factor, wrong=wrong)
    times = record["times_s"]
    if not isinstance(times, list) or not times:
        raise ValueError("times_s is not a list of seconds")
    return _of_samples(size, [_time_s(t) for t in times], bus_factor=factor, wrong=wrong)


def _member(record: Mapping[str, Any], name: str, low: int) -> int:
    value = record[name]
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= _LARGEST_BYTES:
        raise ValueError(f"{name} is not a whole number from {low}")
    return value


def _time_s(value: Any) -> float:
    if not _is_number(value) or value == 0:
        raise ValueError(f"{str(value)[:20]!r} is not a time in seconds above 0")
    return float(value)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value < _BEYOND_ANY_TIME


def _lines(text: str) -> list[str]:
    """Returns the lines without prefixes by a launcher."""
    return [_LABEL.sub("", line.rstrip()) for line in text.splitlines()]


def _number(word: str) -> float | None:
    try:
        value = float(word)
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def _whole(word: str) -> int | None:
    """Parses a non-negative integer; ``None`` if it isn't one or is too large for a size."""
    return int(word) if word.isdecimal() and len(word) <= _MOST_DIGITS else None


def _of_one_time(
    size: int, time_s: float, *, bus_factor: float = 1.0, wrong: int = 0
) -> Measurement:
    """Returns the measurement of a single time, usually an average, without samples."""
    measurement = _of_samples(size, [time_s], bus_factor=bus_factor, wrong=wrong)
    return replace(measurement, samples_s=())


def _of_samples(
    size: int, samples_s: Sequence[float], *, bus_factor: float = 1.0, wrong: int = 0
) -> Measurement:
    """Returns the measurement of the times of all iterations."""
    times = summarise_samples(samples_s).times
    # A printed time may be too small for a float, and becomes 0. It is refused later.
    bandwidth = size / times["median"] if times["median"] else 0.0
    return Measurement(
        bytes=size,
        median_s=times["median"],
        min_s=times["min"],
        mean_s=times["mean"],
        # One of the printed times, so that it tells how they were rounded.
        p95_s=sorted(samples_s)[math.ceil(0.95 * len(samples_s)) - 1],
        max_s=times["max"],
        algbw=bandwidth,
        busbw=bandwidth * bus_factor,
        samples_s=tuple(samples_s),
        wrong=wrong,
    )


def _reading(found: _Found, nothing: str = "") -> Reading:
    """Makes the result, with problems such as repeated sizes, or ``nothing`` without sizes."""
    by_size: dict[int, Measurement] = {}
    counts: Counter[int] = Counter()
    said = list(found.problems)
    for measurement in found.measurements:
        counts[measurement.bytes] += 1
        times = (measurement.min_s, measurement.median_s, measurement.max_s)
        problems = [problem_of_time(one, measurement.bytes) for one in times]
        if problem := next(filter(None, problems), ""):
            said.append(f"{measurement.bytes} bytes: {problem}")
        else:
            by_size.setdefault(measurement.bytes, measurement)
    if not found.is_there and nothing:
        said.append(nothing)
    if twice := min((size for size, times in counts.items() if times > 1), default=None):
        said.append(f"{twice} bytes are printed {counts[twice]} times; run one benchmark, once")
    return Reading(tuple(by_size.values()), tuple(said))


#: Parsers by the values of ``benchmark: output:``, called with text and requested sizes.
OUTPUTS: Mapping[str, Callable[..., Reading]] = {
    "nccl-tests": _read_table,
    "nccl-tests-in-place": partial(_read_table, in_place=True),
    "osu": _read_osu,
    "imb": _read_imb,
    "json-line": _read_json_lines,
}
