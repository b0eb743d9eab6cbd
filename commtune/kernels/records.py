"""Reads the benchmark's records (JSON Lines, contract version 1), even damaged ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn, TypeGuard

from commtune.documents.packed_files import read_kept
from commtune.model import AggressorPattern, Measurement, RunRequest, SubMeasurement
from commtune.model.plausible import problem_of_time
from commtune.tuner.ports import Records, SizeTrace

#: The version of the contract that this module reads; see contract/v1.schema.json.
_CONTRACT = 1

_PARTS = ("inside", "between", "split", "translate", "assemble", "kept-apart")
_SHAPE = ("group_size", "active", "direction", "inside", "between", "assemble")
_LARGEST_FILE = 64 * 2**20
_MOST_PROBLEMS = 10
_BEYOND_ANY_AMOUNT = 1e30
_BEYOND_ANY_COUNT = 2**63  # no database holds more
_Record = Mapping[str, Any]


def read_records(path: Path, request: RunRequest | None = None) -> Records:
    """Reads a record file, even a damaged one; a missing file gives empty records.

    Records that don't match the request, if one is given, are reported as problems.
    """
    try:
        content = read_kept(path, _LARGEST_FILE + 1)
    except FileNotFoundError:
        return Records()
    except OSError as error:
        return Records(problems=(f"{path} can't be read: {error.strerror}",))
    # The run may have been killed, run out of disk, or written garbage. So the result is what
    # could be read and a list of problems in words, never an exception.
    reader = _Reader(request)
    reader.read(content)
    return reader.records()


class _Invalid(Exception):
    """A record that doesn't follow the contract."""


@dataclass
class _Reader:
    request: RunRequest | None
    header: _Record | None = None
    measurements: list[Measurement] = field(default_factory=list)
    footer: _Record | None = None
    problems: list[str] = field(default_factory=list)
    traces: list[SizeTrace] = field(default_factory=list)
    traffic: _Record | None = None
    pieces: list[SubMeasurement] = field(default_factory=list)
    _seen: set[tuple[str, int]] = field(default_factory=set)

    def records(self) -> Records:
        return Records(
            self.header,
            tuple(self.measurements),
            self.footer,
            tuple(self.problems),
            tuple(self.traces),
            self.traffic,
            tuple(self.pieces),
        )

    def read(self, content: bytes) -> None:
        *lines, rest = content.split(b"\n")
        for place, line in enumerate(lines, start=1):
            try:
                self._record(_parse(line))
            except _Invalid as error:
                self.problems.append(f"line {place}: {error}")
            if len(self.problems) >= _MOST_PROBLEMS:
                self.problems.append("reading stopped here")
                return
        if len(content) > _LARGEST_FILE:
            self.problems.append(f"longer than {_LARGEST_FILE} bytes; the rest was not read")
        elif rest:
            self.problems.append(f"line {len(lines) + 1} is cut short")

    def _record(self, record: _Record) -> None:
        kind = record.get("record")
        if self.footer is not None:
            raise _Invalid("a record after the footer")
        if kind == "header":
            self._header(record)
        elif self.header is None:
            raise _Invalid("no header before this record")
        elif kind == "measurement":
            self._measurement(record)
        elif kind == "trace":
            trace = _traced(record)
            self._expect_new("trace", trace.bytes)
            self.traces.append(trace)
        elif kind == "traffic":
            self._traffic(record, self.header)
        elif kind == "footer":
            self._footer(record, self.header)
        else:
            raise _Invalid(f"unknown kind of record: {_shown(kind)}")

    def _header(self, record: _Record) -> None:
        if self.header is not None:
            raise _Invalid("a second header")
        contract = _whole(record, "contract")
        if contract != _CONTRACT:
            raise _Invalid(f"contract version {contract}; this commtune reads version {_CONTRACT}")
        ranks = record.get("rank_info")
        if not isinstance(ranks, list) or not all(_is_rank(rank) for rank in ranks):
            raise _Invalid("rank_info is not a list of ranks with their environments")
        _object({"benchmark": {}, **record}, "benchmark")
        files = record.get("libraries", [])
        if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
            raise _Invalid("libraries is not a list of paths")
        if not isinstance(record.get("oversubscribed"), bool):
            raise _Invalid("oversubscribed is not a bool")
        if self.request is not None:
            _compare(record, self.request)
        if _is_aggressors(record):
            if record.get("pattern") not in list(AggressorPattern):
                raise _Invalid(f"unknown pattern: {_shown(record.get('pattern'))}")
            for name in ("message_bytes", "ranks", "nodes"):
                _whole(record, name)
        self.header = record

    def _measurement(self, record: _Record) -> None:
        measurement = replace(_measured(record), operation=self._later(record))
        if "part" in record or "pair" in record:
            piece = SubMeasurement(measurement, _part(record), _pair(record))
            name = piece.part or "pair {} {}".format(*piece.pair or ())
            self._expect_new(f"measurement ({name})", measurement.bytes)
            self.pieces.append(piece)
            return
        named = f" of {measurement.operation}" if measurement.operation else ""
        self._expect_new(f"measurement{named}", measurement.bytes)
        self.measurements.append(measurement)

    def _later(self, record: _Record) -> str:
        """Returns the operation of a measurement if it is in ``Workload.then``; else empty."""
        if "operation" not in record:
            return ""
        name = str(record["operation"])[:40]
        if self.request is None or name not in self.request.workload.then:
            raise _Invalid(f"a measurement of {name}, which was not requested")
        return name

    def _traffic(self, record: _Record, header: _Record) -> None:
        if not _is_aggressors(header):
            raise _Invalid("traffic of a run that is no aggressor")
        for name in ("bytes_moved", "bytes_between_nodes"):
            _whole(record, name)
        for name in ("traffic_s", "active_s"):
            _number(record, name)
        self.traffic = record

    def _expect_new(self, kind: str, size: int) -> None:
        if (kind, size) in self._seen:
            raise _Invalid(f"a second {kind} of {size} bytes")
        if self.request is not None and size not in self.request.workload.sizes:
            raise _Invalid(f"a {kind} of {size} bytes, which was not requested")
        self._seen.add((kind, size))

    def _footer(self, record: _Record, header: _Record) -> None:
        if record.get("status") not in ("ok", "wrong"):
            raise _Invalid(f"unknown status: {_shown(record.get('status'))}")
        elapsed_s = _number(record, "elapsed_s")
        for problem in beyond_the_run(self.measurements, elapsed_s):
            raise _Invalid(problem)
        count = _whole(record, "measurements")
        if _is_aggressors(header):
            self._traffic(record, header)
        self.footer = record
        found = len(self.measurements) + len(self.pieces)
        if count != found:
            raise _Invalid(f"the footer counts {count} measurements, not {found}")


def _is_rank(rank: object) -> bool:
    if not isinstance(rank, dict) or not isinstance(rank.get("environment"), dict):
        return False
    controls = rank.get("controls", {})
    return isinstance(controls, dict) and all(map(_is_control, controls.values()))


def _is_control(control: object) -> bool:
    if not isinstance(control, dict):
        return control is None
    return {"kind", "value"} <= control.keys() and isinstance(control.get("words", []), list)


def _is_aggressors(header: _Record) -> bool:
    return header.get("mode") == "aggress"


def _compare(header: _Record, request: RunRequest) -> None:
    workload = request.workload
    asked: dict[str, object] = {"run_id": request.run_id, "operation": str(workload.operation)}
    asked |= {n: getattr(workload, n) for n in ("backend", "dtype", "reduction", "ranks")}
    _expect(header, asked)
    if "aggressors" in header:  # it ran with --aggressors, so times include their traffic
        raise _Invalid("aggressors sent beside it, which were not requested")
    shape = header.get("shape")
    if workload.operation.is_pattern and isinstance(shape, dict):
        # The header has only what the operation uses.
        _expect(shape, {n: getattr(workload.shape, n) for n in _SHAPE if n in shape})


def _expect(found: _Record, asked: _Record) -> None:
    for name, value in asked.items():
        if found.get(name) != value:
            raise _Invalid(f"{name} is {_shown(found.get(name))}, requested was {value!r}")


def _measured(record: _Record) -> Measurement:
    canary, size = _object(record, "canary_ns"), _whole(record, "bytes")
    times = _object(record, "time_s")
    return Measurement(
        bytes=size,
        median_s=_time(times, "median", size),
        min_s=_time(times, "min", size),
        mean_s=_time(times, "mean", size),
        p95_s=_time(times, "p95", size),
        max_s=_time(times, "max", size),
        algbw=_number(record, "algbw_Bps"),
        busbw=_number(record, "busbw_Bps"),
        samples_s=_samples(record),
        batch=_whole(record, "batch"),
        canary_s=_if_there(canary, "before", 1e-9),
        canary_after_s=_if_there(canary, "after", 1e-9),
        wrong=_whole(record, "wrong"),
        first_call_s=_if_there(record, "first_call_s"),
        rank_skew=_if_there(record, "rank_skew"),
        bytes_total=_whole(record, "bytes_total") if "bytes_total" in record else None,
    )


def _time(times: _Record, name: str, size: int) -> float:
    seconds = _positive(times, name)
    if problem := problem_of_time(seconds, size):
        raise _Invalid(f"{name}: {problem}")
    return seconds


def beyond_the_run(measurements: Iterable[Measurement], elapsed_s: float) -> Iterator[str]:
    """Yields a problem for the first time longer than its run, which took 0 s if unknown."""
    for one in measurements:
        if elapsed_s and (problem := problem_of_time(one.max_s, one.bytes, elapsed_s)):
            yield f"{one.bytes} bytes: {problem}"
            return


def _part(record: _Record) -> str:
    if "part" not in record:
        return ""
    part = record["part"]
    if part not in _PARTS:
        raise _Invalid(f"unknown part: {_shown(part)}")
    return str(part)


def _pair(record: _Record) -> tuple[int, int] | None:
    if "pair" not in record:
        return None
    pair = record["pair"]
    if not isinstance(pair, list) or len(pair) != 2 or not all(type(rank) is int for rank in pair):
        raise _Invalid(f"pair is not two ranks: {_shown(pair)}")
    return pair[0], pair[1]


def _traced(record: _Record) -> SizeTrace:
    digests = {name: record.get(name) for name in ("digest", "messages")}
    for name, digest in digests.items():
        if digest is not None and not isinstance(digest, str):
            raise _Invalid(f"{name} is not a text")
    agree = record.get("agree")
    if agree is not None and not isinstance(agree, bool):
        raise _Invalid("agree is not a bool")
    size, operations = _whole(record, "bytes"), _whole(record, "operations")
    return SizeTrace(size, operations, agree=agree, **digests)


def _parse(line: bytes) -> _Record:
    try:
        record = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:  # ValueError: not JSON, or not UTF-8
        raise _Invalid("not JSON") from error
    if not isinstance(record, dict):
        raise _Invalid("not a JSON object")
    return record


def _refuse_constant(name: str) -> NoReturn:
    # Python's json accepts NaN and Infinity, the contract doesn't.
    raise _Invalid(f"{name} is not a number")


def _samples(record: _Record) -> tuple[float, ...]:
    """Returns the samples in seconds."""
    found = record.get("samples_ns")
    if not isinstance(found, list) or not found or not all(_is_amount(s) for s in found):
        raise _Invalid("samples_ns is not a list of times")
    if len(found) != record.get("samples"):
        raise _Invalid(f"samples says {record.get('samples')}, but there are {len(found)}")
    return tuple(sample * 1e-9 for sample in found)


def _number(record: _Record, name: str) -> float:
    value = record.get(name)
    if not _is_amount(value):
        raise _Invalid(f"{name} is not a number from 0: {_shown(value)}")
    return float(value)


def _is_amount(value: object) -> TypeGuard[int | float]:
    # In Python, bool is an int, JSON's 1e999 is infinity, and isfinite(10**400) overflows.
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return 0 <= value < _BEYOND_ANY_AMOUNT


def _positive(record: _Record, name: str) -> float:
    value = _number(record, name)
    if value == 0:
        raise _Invalid(f"{name} is 0")
    return value


def _if_there(record: _Record, name: str, unit: float = 1.0) -> float | None:
    """Returns a positive number, multiplied by a unit; ``None`` if it was not measured."""
    return None if record.get(name) is None else _positive(record, name) * unit


def _whole(record: _Record, name: str) -> int:
    value = record.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _BEYOND_ANY_COUNT:
        raise _Invalid(f"{name} is not a whole number from 0: {_shown(value)}")
    return value


def _object(record: _Record, name: str) -> _Record:
    value = record.get(name)
    if not isinstance(value, dict):
        raise _Invalid(f"{name} is not an object")
    return value


def _shown(value: object) -> str:
    """Shortens a value, which may be long in a damaged file."""
    return repr(str(value)[:40])
