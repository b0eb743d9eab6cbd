"""Reading the benchmark's records (JSON Lines, contract version 1).

A file may come from a run that was killed, ran out of disk, or went mad: whatever is in it, the
answer is what could be read and a list of problems in words, never an exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from commtune.kernels.record_values import (
    InvalidRecord,
    optional_ns,
    optional_positive,
    parse_record,
    read_number,
    read_object,
    read_positive,
    read_samples,
    read_whole,
)
from commtune.model import AggressorPattern, Measurement, RunRequest, SubMeasurement, Workload

#: The version of the contract that this module reads; see contract/v1.schema.json.
CONTRACT = 1

_PARTS = ("inside", "between", "split", "translate", "assemble", "kept-apart")
_LARGEST_FILE = 64 * 2**20
_MOST_PROBLEMS = 10


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
        mismatch: that another library was at work than the one that it was for; else empty.
    """

    header: Mapping[str, Any] | None = None
    measurements: tuple[Measurement, ...] = ()
    footer: Mapping[str, Any] | None = None
    problems: tuple[str, ...] = ()
    traces: tuple[SizeTrace, ...] = ()
    traffic: Mapping[str, Any] | None = None
    pieces: tuple[SubMeasurement, ...] = ()
    mismatch: str = ""


def read_records(path: Path, request: RunRequest | None = None) -> Records:
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


@dataclass
class _Reader:
    request: RunRequest | None
    header: Mapping[str, Any] | None = None
    measurements: list[Measurement] = field(default_factory=list)
    footer: Mapping[str, Any] | None = None
    problems: list[str] = field(default_factory=list)
    traces: list[SizeTrace] = field(default_factory=list)
    traffic: Mapping[str, Any] | None = None
    pieces: list[SubMeasurement] = field(default_factory=list)
    _seen: set[tuple[str, int]] = field(default_factory=set)

    def read(self, content: bytes) -> None:
        too_long = len(content) > _LARGEST_FILE
        *lines, rest = content.split(b"\n")
        for place, line in enumerate(lines, start=1):
            self._line(place, line)
            if len(self.problems) >= _MOST_PROBLEMS:
                self.problems.append("reading stopped here")
                return
        if too_long:
            self.problems.append(f"longer than {_LARGEST_FILE} bytes; the rest was not read")
        elif rest:
            self.problems.append(f"line {len(lines) + 1} is cut short")

    def _line(self, place: int, line: bytes) -> None:
        try:
            self._record(parse_record(line))
        except InvalidRecord as error:
            self.problems.append(f"line {place}: {error}")

    def _record(self, record: Mapping[str, Any]) -> None:
        kind = record.get("record")
        if self.footer is not None:
            raise InvalidRecord("a record after the footer")
        if kind == "header":
            self._header(record)
        elif self.header is None:
            raise InvalidRecord("no header before this record")
        elif kind == "measurement":
            self._measurement(record)
        elif kind == "trace":
            self._trace(record)
        elif kind == "traffic":
            self._traffic(record)
        elif kind == "footer":
            self._footer(record)
        else:
            raise InvalidRecord(f"unknown kind of record: {str(kind)[:40]!r}")

    def _header(self, record: Mapping[str, Any]) -> None:
        if self.header is not None:
            raise InvalidRecord("a second header")
        contract = read_whole(record, "contract")
        if contract != CONTRACT:
            raise InvalidRecord(
                f"contract version {contract}; this commtune reads version {CONTRACT}"
            )
        ranks = record.get("rank_info")
        if not isinstance(ranks, list) or not all(_is_rank(rank) for rank in ranks):
            raise InvalidRecord("rank_info is not a list of ranks with their environments")
        if not isinstance(record.get("oversubscribed"), bool):
            raise InvalidRecord("oversubscribed is not a bool")
        if self.request is not None:
            _compare(record, self.request)
        if _is_aggressors(record):
            _check_aggressor(record)
        self.header = record

    def _measurement(self, record: Mapping[str, Any]) -> None:
        measurement = replace(_measured(record), operation=self._later(record))
        if "part" in record or "pair" in record:
            self._piece(SubMeasurement(measurement, _part(record), _pair(record)))
            return
        named = f" of {measurement.operation}" if measurement.operation else ""
        self._expect_new(f"measurement{named}", measurement.bytes)
        self.measurements.append(measurement)

    def _later(self, record: Mapping[str, Any]) -> str:
        """The operation of a measurement, if it is one of ``Workload.then``; else empty."""
        if "operation" not in record:
            return ""
        name = str(record["operation"])[:40]
        if self.request is None or name not in self.request.workload.then:
            raise InvalidRecord(f"a measurement of {name}, which nobody asked for")
        return name

    def _piece(self, piece: SubMeasurement) -> None:
        name = piece.part or "pair {} {}".format(*piece.pair or ())
        self._expect_new(f"measurement ({name})", piece.measurement.bytes)
        self.pieces.append(piece)

    def _trace(self, record: Mapping[str, Any]) -> None:
        trace = _traced(record)
        self._expect_new("trace", trace.bytes)
        self.traces.append(trace)

    def _traffic(self, record: Mapping[str, Any]) -> None:
        if self.header is None or not _is_aggressors(self.header):
            raise InvalidRecord("traffic of a run that is no aggressor")
        for name in ("bytes_moved", "bytes_between_nodes"):
            read_whole(record, name)
        for name in ("traffic_s", "active_s"):
            read_number(record, name)
        self.traffic = record

    def _expect_new(self, kind: str, size: int) -> None:
        if (kind, size) in self._seen:
            raise InvalidRecord(f"a second {kind} of {size} bytes")
        if self.request is not None and size not in self.request.workload.sizes:
            raise InvalidRecord(f"a {kind} of {size} bytes, which nobody asked for")
        self._seen.add((kind, size))

    def _footer(self, record: Mapping[str, Any]) -> None:
        if record.get("status") not in ("ok", "wrong"):
            raise InvalidRecord(f"unknown status: {str(record.get('status'))[:40]!r}")
        read_number(record, "elapsed_s")
        count = read_whole(record, "measurements")
        if self.header is not None and _is_aggressors(self.header):
            self._traffic(record)
        self.footer = record
        found = len(self.measurements) + len(self.pieces)
        if count != found:
            raise InvalidRecord(f"the footer counts {count} measurements, not {found}")


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
        raise InvalidRecord(f"unknown pattern: {str(header.get('pattern'))[:40]!r}")
    for name in ("message_bytes", "ranks", "nodes"):
        read_whole(header, name)


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
            raise InvalidRecord(
                f"{name} is {str(header.get(name))[:40]!r}, asked for was {value!r}"
            )
    if "aggressors" in header:  # as with --aggressors: no time of a quiet network
        raise InvalidRecord("aggressors sent beside it, which nobody asked for")
    _compare_shape(header, workload)


def _compare_shape(header: Mapping[str, Any], workload: Workload) -> None:
    found, asked = header.get("shape"), workload.shape
    names = ("group_size", "active", "direction", "inside", "between", "assemble")
    if not workload.operation.is_pattern or not isinstance(found, dict):
        return
    for name in names:
        value = getattr(asked, name)
        # Only what the operation uses is there.
        if name in found and found[name] != value:
            raise InvalidRecord(f"{name} is {str(found[name])[:40]!r}, asked for was {value!r}")


def _measured(record: Mapping[str, Any]) -> Measurement:
    times = read_object(record, "time_s")
    canary = read_object(record, "canary_ns")
    return Measurement(
        bytes=read_whole(record, "bytes"),
        median_s=read_positive(times, "median"),
        min_s=read_positive(times, "min"),
        mean_s=read_positive(times, "mean"),
        p95_s=read_positive(times, "p95"),
        max_s=read_positive(times, "max"),
        algbw=read_number(record, "algbw_Bps"),
        busbw=read_number(record, "busbw_Bps"),
        samples_s=read_samples(record),
        batch=read_whole(record, "batch"),
        canary_s=optional_ns(canary, "before"),
        canary_after_s=optional_ns(canary, "after"),
        wrong=read_whole(record, "wrong"),
        first_call_s=optional_positive(record, "first_call_s"),
        rank_skew=optional_positive(record, "rank_skew"),
        bytes_total=read_whole(record, "bytes_total") if "bytes_total" in record else None,
    )


def _part(record: Mapping[str, Any]) -> str:
    if "part" not in record:
        return ""
    part = record["part"]
    if part not in _PARTS:
        raise InvalidRecord(f"unknown part: {str(part)[:40]!r}")
    return str(part)


def _pair(record: Mapping[str, Any]) -> tuple[int, int] | None:
    if "pair" not in record:
        return None
    pair = record["pair"]
    if not isinstance(pair, list) or len(pair) != 2 or not all(type(rank) is int for rank in pair):
        raise InvalidRecord(f"pair is not two ranks: {str(pair)[:40]!r}")
    return pair[0], pair[1]


def _traced(record: Mapping[str, Any]) -> SizeTrace:
    digest, agree = record.get("digest"), record.get("agree")
    if digest is not None and not isinstance(digest, str):
        raise InvalidRecord("digest is not a text")
    if agree is not None and not isinstance(agree, bool):
        raise InvalidRecord("agree is not a bool")
    return SizeTrace(read_whole(record, "bytes"), read_whole(record, "operations"), digest, agree)
