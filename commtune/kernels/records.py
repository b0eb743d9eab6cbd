"""Reading the benchmark's records (JSON Lines, contract version 1).

A file may come from a run that was killed, ran out of disk, or went mad: whatever is in it, the
answer is what could be read and a list of problems in words, never an exception.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeGuard

from commtune.model import AggressorPattern, Measurement, RunRequest

#: The version of the contract that this module reads; see contract/v1.schema.json.
CONTRACT = 1

_PARTS = ("inside", "between", "split", "translate", "assemble")
_LARGEST_FILE = 64 * 2**20
_MOST_PROBLEMS = 10
_BEYOND_ANY_AMOUNT = 1e30


@dataclass(frozen=True)
class SizeTrace:
    """What an untimed run says of one size.

    Attributes:
        operations: how often the operation was done.
        digest: depends on the order of summation; ``None`` where no order shows.
        agree: whether all ranks got the same bits; ``None`` where they should not.
    """

    bytes: int
    operations: int
    digest: str | None
    agree: bool | None


@dataclass(frozen=True)
class Piece:
    """A measurement that is none of the whole operation.

    Attributes:
        part: ``inside`` or ``between`` of a matrix, ``split``, ``translate`` or ``assemble`` of
            striping; ``""`` for a pair.
        pair: sender and receiver; ``None`` for a part.
    """

    measurement: Measurement
    part: str
    pair: tuple[int, int] | None


@dataclass(frozen=True)
class Records:
    """What a record file holds, as far as it could be read.

    Attributes:
        header, footer: verbatim; ``None`` where there is none.
        measurements: sizes that were finished and whose record is sound; of the whole operation.
        pieces: likewise, of parts of an operation and of pairs of ranks, each by itself.
        traces: likewise, of an untimed run, which has no measurements.
        traffic: the last that an aggressor said of what it moved, verbatim; ``None`` elsewhere.
        problems: what is wrong with the file, for a person; empty for a sound file, also where
            the run was cut short between two records.
    """

    header: Mapping[str, Any] | None = None
    measurements: tuple[Measurement, ...] = ()
    footer: Mapping[str, Any] | None = None
    problems: tuple[str, ...] = ()
    traces: tuple[SizeTrace, ...] = ()
    traffic: Mapping[str, Any] | None = None
    pieces: tuple[Piece, ...] = ()


def read(path: Path, request: RunRequest | None = None) -> Records:
    """Reads a record file, whatever its state; a missing file gives empty records.

    Args:
        request: what was asked for; with it, records that answer something else are problems.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except FileNotFoundError:
        return Records()
    except OSError as error:
        return Records(problems=(f"{path} can't be read: {error.strerror}",))
    reader = _Reader(request)
    reader.read(content)
    return Records(
        reader.header,
        tuple(reader.measurements),
        reader.footer,
        tuple(reader.problems),
        tuple(reader.traces),
        reader.traffic,
        tuple(reader.pieces),
    )


class _Unsound(Exception):
    """A record that doesn't follow the contract; caught in this module."""


@dataclass
class _Reader:
    request: RunRequest | None
    header: Mapping[str, Any] | None = None
    measurements: list[Measurement] = field(default_factory=list)
    footer: Mapping[str, Any] | None = None
    problems: list[str] = field(default_factory=list)
    traces: list[SizeTrace] = field(default_factory=list)
    traffic: Mapping[str, Any] | None = None
    pieces: list[Piece] = field(default_factory=list)

    def read(self, content: bytes) -> None:
        too_long = len(content) > _LARGEST_FILE
        *lines, rest = content.split(b"\n")
        for number, line in enumerate(lines, start=1):
            self._line(number, line)
            if len(self.problems) >= _MOST_PROBLEMS:
                self.problems.append("reading stopped here")
                return
        if too_long:
            self.problems.append(f"longer than {_LARGEST_FILE} bytes; the rest was not read")
        elif rest:
            self.problems.append(f"line {len(lines) + 1} is cut short")

    def _line(self, number: int, line: bytes) -> None:
        try:
            self._record(_parse(line))
        except _Unsound as error:
            self.problems.append(f"line {number}: {error}")

    def _record(self, record: Mapping[str, Any]) -> None:
        kind = record.get("record")
        if self.footer is not None:
            raise _Unsound("a record after the footer")
        if kind == "header":
            self._header(record)
        elif self.header is None:
            raise _Unsound("no header before this record")
        elif kind == "measurement":
            self._measurement(record)
        elif kind == "trace":
            self._trace(record)
        elif kind == "traffic":
            self._traffic(record)
        elif kind == "footer":
            self._footer(record)
        else:
            raise _Unsound(f"unknown kind of record: {str(kind)[:40]!r}")

    def _header(self, record: Mapping[str, Any]) -> None:
        if self.header is not None:
            raise _Unsound("a second header")
        contract = _whole(record, "contract")
        if contract != CONTRACT:
            raise _Unsound(f"contract version {contract}; this commtune reads version {CONTRACT}")
        ranks = record.get("rank_info")
        if not isinstance(ranks, list) or not all(_is_rank(rank) for rank in ranks):
            raise _Unsound("rank_info is not a list of ranks with their environments")
        if not isinstance(record.get("oversubscribed"), bool):
            raise _Unsound("oversubscribed is not a bool")
        if self.request is not None:
            _compare(record, self.request)
        if _is_aggressors(record):
            _check_aggressor(record)
        self.header = record

    def _measurement(self, record: Mapping[str, Any]) -> None:
        measurement = _measured(record)
        if "part" in record or "pair" in record:
            self._piece(Piece(measurement, _part(record), _pair(record)))
            return
        self._expect_new("measurement", measurement.bytes, [m.bytes for m in self.measurements])
        self.measurements.append(measurement)

    def _piece(self, piece: Piece) -> None:
        alike = [p for p in self.pieces if (p.part, p.pair) == (piece.part, piece.pair)]
        name = piece.part or "pair {} {}".format(*piece.pair or ())
        self._expect_new(
            f"measurement ({name})", piece.measurement.bytes, [p.measurement.bytes for p in alike]
        )
        self.pieces.append(piece)

    def _trace(self, record: Mapping[str, Any]) -> None:
        trace = _traced(record)
        self._expect_new("trace", trace.bytes, [t.bytes for t in self.traces])
        self.traces.append(trace)

    def _traffic(self, record: Mapping[str, Any]) -> None:
        if self.header is None or not _is_aggressors(self.header):
            raise _Unsound("traffic of a run that is no aggressor")
        for name in ("bytes_moved", "bytes_between_nodes"):
            _whole(record, name)
        for name in ("traffic_s", "active_s"):
            _number(record, name)
        self.traffic = record

    def _expect_new(self, kind: str, size: int, sizes: Sequence[int]) -> None:
        if size in sizes:
            raise _Unsound(f"a second {kind} of {size} bytes")
        if self.request is not None and size not in self.request.workload.sizes:
            raise _Unsound(f"a {kind} of {size} bytes, which nobody asked for")

    def _footer(self, record: Mapping[str, Any]) -> None:
        if record.get("status") not in ("ok", "wrong"):
            raise _Unsound(f"unknown status: {str(record.get('status'))[:40]!r}")
        _number(record, "elapsed_s")
        count = _whole(record, "measurements")
        if self.header is not None and _is_aggressors(self.header):
            self._traffic(record)
        self.footer = record
        found = len(self.measurements) + len(self.pieces)
        if count != found:
            raise _Unsound(f"the footer counts {count} measurements, not {found}")


def _parse(line: bytes) -> Mapping[str, Any]:
    try:
        record = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:  # ValueError: no JSON, or no UTF-8
        raise _Unsound("not JSON") from error
    if not isinstance(record, dict):
        raise _Unsound("not a JSON object")
    return record


def _no_number(name: str) -> NoReturn:
    raise _Unsound(f"{name} is no number")


def _is_rank(rank: object) -> bool:
    if not isinstance(rank, dict) or not isinstance(rank.get("environment"), dict):
        return False
    controls = rank.get("controls", {})
    return isinstance(controls, dict) and all(
        control is None or (isinstance(control, dict) and {"kind", "value"} <= control.keys())
        for control in controls.values()
    )


def _is_aggressors(header: Mapping[str, Any]) -> bool:
    return header.get("mode") == "aggress"


def _check_aggressor(header: Mapping[str, Any]) -> None:
    if header.get("pattern") not in list(AggressorPattern):
        raise _Unsound(f"unknown pattern: {str(header.get('pattern'))[:40]!r}")
    for name in ("message_bytes", "ranks", "nodes"):
        _whole(header, name)


def _compare(header: Mapping[str, Any], request: RunRequest) -> None:
    workload = request.workload
    asked = {
        "run_id": request.run_id,
        "operation": str(workload.operation),
        "backend": workload.backend,
        "dtype": workload.dtype,
        "reduction": workload.reduction,
        "ranks": workload.ranks,
    }
    for name, value in asked.items():
        if header.get(name) != value:
            raise _Unsound(f"{name} is {str(header.get(name))[:40]!r}, asked for was {value!r}")


def _measured(record: Mapping[str, Any]) -> Measurement:
    times = _mapping(record, "time_s")
    canary = _mapping(record, "canary_ns")
    return Measurement(
        bytes=_whole(record, "bytes"),
        median_s=_positive(times, "median"),
        min_s=_positive(times, "min"),
        mean_s=_positive(times, "mean"),
        p95_s=_positive(times, "p95"),
        max_s=_positive(times, "max"),
        algbw=_number(record, "algbw_Bps"),
        busbw=_number(record, "busbw_Bps"),
        samples_s=_samples(record),
        batch=_whole(record, "batch"),
        canary_s=_optional_ns(canary, "before"),
        canary_after_s=_optional_ns(canary, "after"),
        wrong=_whole(record, "wrong"),
    )


def _part(record: Mapping[str, Any]) -> str:
    if "part" not in record:
        return ""
    part = record["part"]
    if part not in _PARTS:
        raise _Unsound(f"unknown part: {str(part)[:40]!r}")
    return str(part)


def _pair(record: Mapping[str, Any]) -> tuple[int, int] | None:
    if "pair" not in record:
        return None
    pair = record["pair"]
    if not isinstance(pair, list) or len(pair) != 2 or not all(type(rank) is int for rank in pair):
        raise _Unsound(f"pair is not two ranks: {str(pair)[:40]!r}")
    return pair[0], pair[1]


def _traced(record: Mapping[str, Any]) -> SizeTrace:
    digest, agree = record.get("digest"), record.get("agree")
    if digest is not None and not isinstance(digest, str):
        raise _Unsound("digest is not a text")
    if agree is not None and not isinstance(agree, bool):
        raise _Unsound("agree is not a bool")
    return SizeTrace(_whole(record, "bytes"), _whole(record, "operations"), digest, agree)


def _samples(record: Mapping[str, Any]) -> tuple[float, ...]:
    samples = record.get("samples_ns")
    if not isinstance(samples, list) or not samples or not all(_is_amount(s) for s in samples):
        raise _Unsound("samples_ns is not a list of times")
    if len(samples) != record.get("samples"):
        raise _Unsound(f"samples says {record.get('samples')}, but there are {len(samples)}")
    return tuple(sample * 1e-9 for sample in samples)


def _is_amount(value: object) -> TypeGuard[int | float]:
    # bool is an int to Python; 1e999 is infinity to its JSON; and isfinite(10**400) overflows.
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return 0 <= value < _BEYOND_ANY_AMOUNT


def _number(record: Mapping[str, Any], name: str) -> float:
    value = record.get(name)
    if not _is_amount(value):
        raise _Unsound(f"{name} is not a number from 0: {str(value)[:40]!r}")
    return float(value)


def _positive(record: Mapping[str, Any], name: str) -> float:
    value = _number(record, name)
    if value == 0:
        raise _Unsound(f"{name} is 0")
    return value


def _whole(record: Mapping[str, Any], name: str) -> int:
    value = record.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _Unsound(f"{name} is not a whole number from 0: {str(value)[:40]!r}")
    return value


def _optional_ns(record: Mapping[str, Any], name: str) -> float | None:
    return None if record.get(name) is None else _positive(record, name) * 1e-9


def _mapping(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = record.get(name)
    if not isinstance(value, dict):
        raise _Unsound(f"{name} is not an object")
    return value
