"""Reads and writes recorded grids: measured runs of every configuration of a space, in one file.

A grid is a file of JSON Lines, compressed by gzip:

1. the header (``GridHeader``), with ``format`` and ``version``;
2. ``variables`` and ``configurations``, a row of values per configuration, ``null`` for unset;
3. from the third line on, a run per line, in the order made. ``c`` is the configuration's row,
   ``t`` the start in seconds since the recording began, ``w`` the wall seconds, ``m`` a list of
   ``[median, canary before, canary after, min, p95]`` in nanoseconds for each size of the header
   (``null`` if not measured). Optional are ``o`` for the outcome (default ``ok``), ``why`` for its
   reason, and ``load`` for the share of the machine that other programs used.

Times have four significant digits, as noise between runs is at least a hundred times larger.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from commtune.documents.files import read_file, writing_file
from commtune.errors import UserError
from commtune.model import Configuration, Measurement, Outcome, RunResult, Timing, Workload
from commtune.model.plausible import problem_of_time
from commtune.paths import exists
from commtune.private_files import replace_own_file, replacing_file
from commtune.tuner.statistics.machine_states import MachineStates, fit_states

_FORMAT, _VERSION = "commtune-grid", 1
_LARGEST_FILE = 2**28  # bytes, compressed or not; 32,000 runs of 8 KiB
_PER_SECOND = 1e9  # times are in nanoseconds, so that most need no exponent


@dataclass(frozen=True)
class GridHeader:
    """The header of a grid. Only ``campaign`` may have names of hosts or people.

    Attributes:
        recorded: date as YYYY-MM-DD.
        system: the machine's display name and its hardware.
        stack: MPI ``flavour`` and ``version``, and the operating system; with GPUs ``nccl`` or
            ``rccl``, ``cuda`` or ``hip``, and ``gpu_drivers``; in ``loaded``, versions of
            libraries below MPI to which the space was restricted.
        workload: the workload; every run measured its sizes.
        pinned: variables set in every run.
        benchmark: version and build of the benchmark program.
        campaign: text of the campaign file that named space, workload and timing.
        seed: seed of the order of runs.
        bus_factor: bus bandwidth over algorithm bandwidth (size divided by time).
        oversubscribed: whether there were fewer cores than ranks.
    """

    name: str
    recorded: str
    system: Mapping[str, Any]
    stack: Mapping[str, Any]
    workload: Workload
    timing: Timing
    campaign: str
    pinned: Mapping[str, str] = field(default_factory=dict)
    benchmark: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 1
    bus_factor: float = 1.0
    oversubscribed: bool = False

    def plain(self) -> dict[str, Any]:
        known = {"format": _FORMAT, "version": _VERSION, "recording": True}
        return {**known, **asdict(self), "workload": self.workload.plain()}


@dataclass(frozen=True)
class RecordedRun:
    """One recorded run.

    Attributes:
        configuration: index of its configuration in the grid.
        started_s: seconds since the recording began, without the time between sessions.
        sizes: the measurements of finished sizes, whatever the outcome.
        detail: the reason if the outcome is not ok.
        other_load: as in ``model.RunResult``.
    """

    configuration: int
    started_s: float
    wall_s: float
    outcome: Outcome
    sizes: tuple[Measurement, ...]
    detail: str = ""
    other_load: float | None = None

    @classmethod
    def from_result(cls, configuration: int, started_s: float, result: RunResult) -> RecordedRun:
        return cls(
            configuration,
            started_s,
            result.wall_s,
            result.outcome,
            result.measurements,
            result.detail,
            result.other_load,
        )

    def line(self, sizes: Sequence[int]) -> str:
        by_size = {size.bytes: size for size in self.sizes}
        rows = [_times_ns(by_size[size]) if size in by_size else None for size in sizes]
        while rows and rows[-1] is None:
            rows.pop()
        said = {
            "o": "" if self.outcome is Outcome.OK else str(self.outcome),
            "why": self.detail,
            "load": None if self.other_load is None else round(self.other_load, 3),
        }
        line = {"c": self.configuration, "t": round(self.started_s, 3), "w": round(self.wall_s, 4)}
        return _line({**line, **{k: v for k, v in said.items() if v not in ("", None)}, "m": rows})


@dataclass(frozen=True)
class Grid:
    """A recording: configurations, and their runs in the order made.

    Attributes:
        digest: SHA-256 of the file, in hexadecimal; empty for a grid that is not from a file.
    """

    header: GridHeader
    configurations: tuple[Configuration, ...]
    runs: tuple[RecordedRun, ...]
    digest: str = ""

    @cached_property
    def index(self) -> Mapping[Configuration, int]:
        """The indices of configurations with at least one run."""
        present = {run.configuration for run in self.runs}
        return {c: i for i, c in enumerate(self.configurations) if i in present}

    @cached_property
    def span_s(self) -> float:
        """Seconds from the start of the recording to the end of its last run."""
        return max((run.started_s + run.wall_s for run in self.runs), default=0.0)

    @cached_property
    def speeds(self) -> MachineStates:
        sizes = (size for run in self.runs if run.outcome is Outcome.OK for size in run.sizes)
        return fit_states([size.canary_s for size in sizes if size.canary_s is not None])

    def runs_of(self, configuration: Configuration) -> tuple[RecordedRun, ...]:
        """Returns the recorded runs of a configuration, in order."""
        wanted = self.index.get(configuration)
        return tuple(run for run in self.runs if run.configuration == wanted)

    def truth(self, configuration: Configuration) -> dict[int, float]:
        """Returns the median seconds over good runs in all machine states, by size (bytes)."""
        found: dict[int, list[float]] = {}
        for run in self.runs_of(configuration):
            for size in run.sizes if run.outcome is Outcome.OK else ():
                found.setdefault(size.bytes, []).append(size.median_s)
        return {size: median(values) for size, values in found.items()}

    @classmethod
    def parse(cls, text: str, digest: str = "") -> Grid:
        """Parses the lines of a recording.

        Raises:
            ValueError, TypeError, LookupError, AttributeError, RecursionError: it is invalid.
        """
        lines = text.splitlines()
        header = _header(json.loads(lines[0]))
        head = json.loads(lines[1])
        named = [zip(head["variables"], row, strict=True) for row in head["configurations"]]
        configurations = tuple(
            Configuration({name: value for name, value in row if value is not None})
            for row in named
        )
        runs = tuple(_run(json.loads(line), header, len(configurations)) for line in lines[2:])
        return cls(header, configurations, runs, digest)

    def lines(self) -> list[str]:
        names = sorted({name for configuration in self.configurations for name in configuration})
        rows = [
            [configuration.get(name) for name in names] for configuration in self.configurations
        ]
        return [
            _line(self.header.plain()),
            _line({"variables": names, "configurations": rows}),
            *(run.line(self.header.workload.sizes) for run in self.runs),
        ]

    def packed(self) -> bytes:
        """Returns the compressed recording, without a file name and time in the gzip header."""
        return gzip.compress("".join(self.lines()).encode(), compresslevel=9, mtime=0)


def _times_ns(size: Measurement) -> list[float | None]:
    """Returns the times of a size that a recording stores, in nanoseconds."""
    times = (size.median_s, size.canary_s, size.canary_after_s, size.min_s, size.p95_s)
    return [None if value is None else _nanoseconds(value) for value in times]


def _nanoseconds(seconds: float) -> float:
    short = float(f"{seconds * _PER_SECOND:.4g}")
    return int(short) if short.is_integer() else short


def _line(data: Mapping[str, Any]) -> str:
    return json.dumps(data, separators=(",", ":")) + "\n"


def load_grid(path: Path, *, is_whole: bool = True) -> Grid:
    """Reads a recording, compressed or not; if it isn't whole, without its last, cut line.

    Raises:
        UserError: the file can't be read, or is no complete recording of this version.
    """
    try:
        content = read_file(path, _LARGEST_FILE)
        if not is_whole:
            content = content[: content.rfind(b"\n") + 1]
        digest = hashlib.sha256(content).hexdigest()
        plain = _unpacked(content) if content[:2] == b"\x1f\x8b" else content
        return Grid.parse(plain.decode(), digest)
    except OSError as error:  # includes gzip.BadGzipFile
        raise UserError(f"can't read the recording {path}: {error.strerror or error}") from error
    except (EOFError, zlib.error, UnicodeDecodeError) as error:
        raise UserError(f"{path} is cut short or damaged: {error}") from error
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else error
        raise UserError(
            f"{path} is not a recording that this version of commtune reads: {why}",
            hint="recordings are made by 'commtune record'",
        ) from error


def _unpacked(content: bytes) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
        plain = packed.read(_LARGEST_FILE + 1)
    if len(plain) > _LARGEST_FILE:
        raise ValueError("unpacked, it is larger than 256 MiB")
    return plain


def _header(data: dict[str, Any]) -> GridHeader:
    if data.pop("format", None) != _FORMAT:
        raise ValueError("its first line is not a header")
    if (version := data.pop("version")) != _VERSION:
        raise ValueError(f"it has format version {version}, known is {_VERSION}")
    del data["recording"]
    workload = Workload.of_plain(data.pop("workload"))
    timing = Timing(**data.pop("timing"))
    return GridHeader(**data, workload=workload, timing=timing)


def _run(data: Mapping[str, Any], header: GridHeader, configurations: int) -> RecordedRun:
    if not 0 <= data["c"] < configurations:
        raise ValueError(f"a run of configuration {data['c']}, of {configurations}")
    sizes, rows = header.workload.sizes, data["m"]
    if len(rows) > len(sizes):
        raise ValueError(f"a run of {len(rows)} sizes, of {len(sizes)}")
    return RecordedRun(
        configuration=data["c"],
        started_s=data["t"],
        wall_s=data["w"],
        outcome=Outcome(data.get("o", "ok")),
        sizes=tuple(
            parse_size(bytes_, row, wall_s=data["w"], bus_factor=header.bus_factor)
            for bytes_, row in zip(sizes, rows, strict=False)
            if row is not None
        ),
        detail=data.get("why", ""),
        other_load=data.get("load"),
    )


def parse_size(
    bytes_: int, row: Sequence[float | None], *, wall_s: float, bus_factor: float = 1.0
) -> Measurement:
    """Parses the times of a size in a run: median, canaries before and after, min, p95 in ns.

    The mean and maximum are not recorded; median and p95 take their places.

    Raises:
        ValueError: a time is missing or implausible.
    """
    median_s, canary, after, lowest, p95 = (_seconds(value) for value in row)
    if median_s is None or lowest is None or p95 is None:
        raise ValueError(f"a time of {bytes_} B is missing")
    for seconds in (median_s, lowest, p95):
        if problem := problem_of_time(seconds, bytes_, wall_s or None):
            raise ValueError(problem)
    bandwidth = bytes_ / median_s
    return Measurement(
        bytes=bytes_,
        median_s=median_s,
        min_s=lowest,
        mean_s=median_s,
        p95_s=p95,
        max_s=p95,
        algbw=bandwidth,
        busbw=bandwidth * bus_factor,
        canary_s=canary,
        canary_after_s=after,
    )


def _seconds(value: float | None) -> float | None:
    if value is None:
        return None
    if not 0 < value < math.inf:
        raise ValueError(f"{value} is not a time")
    return value / _PER_SECOND


@dataclass
class Recorder:
    """Writes a recording in progress.

    Lines are appended to a file beside the recording, which is compressed at the end.

    Attributes:
        out: path of the compressed recording.
    """

    out: Path
    _sizes: tuple[int, ...] = ()

    @property
    def part(self) -> Path:
        """The file with the lines that were recorded so far."""
        return self.out.with_name(f"{self.out.name}.part")

    @property
    def known(self) -> Path:
        """The file with the runs of earlier sessions."""
        return self.part if exists(self.part) else self.out

    def load(self) -> Grid | None:
        """Loads what earlier sessions recorded, if anything, but no truncated line at the end.

        Raises:
            UserError: the file is no recording.
        """
        if not exists(self.part):
            return load_grid(self.out) if exists(self.out) else None
        grid = load_grid(self.part, is_whole=False)
        return grid if grid.runs else None

    def begin(self, grid: Grid) -> None:
        """Starts the file with a grid; what earlier sessions recorded is replaced atomically."""
        self._sizes = grid.header.workload.sizes
        with writing_file(self.part):
            replace_own_file(self.part, "".join(grid.lines()))

    def add(self, run: RecordedRun) -> None:
        # A link that another user laid there meanwhile is not followed.
        def without_links(path: str, flags: int) -> int:
            return os.open(path, flags | os.O_NOFOLLOW)

        with writing_file(self.part), open(self.part, "a", opener=without_links) as file:
            file.write(run.line(self._sizes))

    def finish(self) -> None:
        """Compresses the recording, and removes the file beside it."""
        packed = load_grid(self.part).packed()
        with writing_file(self.out):
            with replacing_file(self.out) as part:
                part.write_bytes(packed)
            self.part.unlink()
