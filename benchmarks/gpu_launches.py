"""Launches of programs under mpirun, kept as JSON: what comparisons with others have in common.

Nothing but Python's own library is needed, so that it runs on a machine without commtune: there
``commtune-bench`` is an executable that was built by hand (docs/benchmark.md).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Json = dict[str, Any]

_LONGEST_S = 120.0
_TAIL = 600
#: Variables of the machine that decide what communication libraries do.
_TELLING = ("NCCL_", "UCX_", "OMPI_", "CUDA_", "NVSHMEM_", "LD_LIBRARY_PATH")
#: What a header says of one launch and no other, or of no use in a comparison.
_DROPPED = ("run_id", "argv", "rank_info", "started_utc", "kernel", "seed")


@dataclass(frozen=True)
class Command:
    """What to launch.

    Attributes:
        program: executable and arguments; ``{records}`` in them is a file of this launch alone.
        mpirun: arguments of mpirun beside those of the session.
        environment: variables beside those of the session.
    """

    program: Sequence[str]
    mpirun: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


class Session:
    """Launches one program after the other and writes what came of each to a file at once.

    Attributes:
        document: all that is known, as it is written.
    """

    def __init__(self, options: argparse.Namespace, program: str) -> None:
        self._options = options
        self._began = time.monotonic()
        self._longest_s = 0.0
        self.document: Json = {
            "program": program,
            "arguments": sys.argv[1:],
            "machine": _machine(options),
            "launches": [],
        }

    def has_time_for(self, launches: int) -> bool:
        """Whether so many more launches fit, each as long as the longest so far."""
        spent_s = time.monotonic() - self._began
        return spent_s + launches * self._longest_s < float(self._options.seconds)

    def launch(self, command: Command, labels: Json) -> Json:
        """Launches it; returns, and keeps, what came of it, with the labels.

        Returns:
            ``wall_s``, ``exit_code`` (``None`` if it took too long), ``after_s`` from the last
            write to its records to its end, ``records`` (their text), and where it failed the
            end of its ``output``.
        """
        with tempfile.TemporaryDirectory() as folder:
            records = Path(folder) / "records.json"
            done = self._run(command, records)
            text = records.read_text(errors="replace") if records.exists() else ""
        self._longest_s = max(self._longest_s, done["wall_s"])
        kept = {**labels, **done, "records": text}
        self.document["launches"].append(kept)
        state = "ok" if done["exit_code"] == 0 else f"failed ({done['exit_code']})"
        words = " ".join(str(value) for value in labels.values())
        print(f"{words}: {state}, {done['wall_s']:.1f} s", file=sys.stderr, flush=True)
        return kept

    def _run(self, command: Command, records: Path) -> Json:
        program = [part.replace("{records}", str(records)) for part in command.program]
        mpirun = shlex.split(self._options.mpirun)
        arguments = [*mpirun, *command.mpirun, "-n", str(self._options.ranks), *program]
        began, began_utc = time.monotonic(), time.time()
        child = subprocess.Popen(
            arguments,
            env={**os.environ, **command.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        code: int | None = None
        try:
            output = child.communicate(timeout=_LONGEST_S)[0]
            code = child.returncode
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            output = child.communicate()[0]
        wall_s = time.monotonic() - began
        after_s = None
        if records.exists():
            after_s = began_utc + wall_s - records.stat().st_mtime
        done: Json = {"wall_s": wall_s, "exit_code": code, "after_s": after_s}
        text = output.decode(errors="replace")
        done["output"] = text if code == 0 else _ends(text)
        line = shlex.join([*_as_assignments(command.environment), *arguments])
        done["command"] = line.replace(str(records), "RECORDS")
        return done

    def save(self) -> None:
        """Writes the document, whole or not at all."""
        path: Path = self._options.json
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(self.document, indent=1) + "\n")
        fresh.replace(path)


def _ends(text: str) -> str:
    """A long text without its middle."""
    return text if len(text) <= 2 * _TAIL else f"{text[:_TAIL]}\n...\n{text[-_TAIL:]}"


def _as_assignments(environment: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in environment.items()]


def _said_by(*command: str) -> str:
    """What a program of the machine says; empty where there is no such program."""
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        return done.stdout.strip()
    return ""


def _machine(options: argparse.Namespace) -> Json:
    mpirun = shlex.split(options.mpirun)[0]
    query = "--query-gpu=name,driver_version,pci.bus_id,clocks.sm,clocks.max.sm,power.limit"
    return {
        "date_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "kernel": platform.release(),
        "processor": _processor(),
        "cpus": os.cpu_count(),
        "cpus_usable": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "gpus": _said_by("nvidia-smi", query, "--format=csv,noheader").splitlines(),
        "topology": _said_by("nvidia-smi", "topo", "-m"),
        "mpirun": _launcher_version(_said_by(mpirun, "--version")),
        "bench": _said_by(str(options.bench), "--version"),
        "environment": {
            name: value for name, value in sorted(os.environ.items()) if name.startswith(_TELLING)
        },
    }


def _launcher_version(said: str) -> str:
    """The line of it that holds a number: Open MPI's first, MPICH's second."""
    lines = [" ".join(line.split()) for line in said.splitlines()]
    return next((line for line in lines if any(char.isdigit() for char in line)), "")


def _processor() -> str:
    """The processor's name, as Linux knows it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return ""


def keep_records(session: Session, launch: Json, chunk: int = 0) -> None:
    """Replaces the text of commtune-bench's records by what they say, without single samples.

    Args:
        chunk: keep the means of so many samples at a time, as ``chunk_means_s``.
    """
    found = read_records(launch.pop("records"), chunk)
    launch["output"] = _ends(launch["output"])
    header = found["header"]
    if header:
        kept = {name: value for name, value in header.items() if name not in _DROPPED}
        kept["gpus"] = [rank.get("gpu") for rank in header.get("rank_info", [])]
        key = f"{header.get('backend')} {header.get('operation')}"
        session.document.setdefault("headers", {}).setdefault(key, kept)
        launch["init_s"] = header.get("init_s")
        launch["library_init_s"] = (header.get("library") or {}).get("init_s")
        launch |= {name: header[name] for name in ("gpu_start_s", "gpu_facts_s") if name in header}
    launch["measurements"] = found["measurements"]
    launch["footer"] = found["footer"]


def read_records(text: str, chunk: int = 0) -> Json:
    """Header, measurements without their samples, and footer, as far as they are there."""
    found: Json = {"header": None, "measurements": [], "footer": None}
    for line in text.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue  # cut short: what is before it is sound
        kind = record.pop("record", "")
        if kind == "measurement":
            samples = [float(sample) * 1e-9 for sample in record.pop("samples_ns", ())]
            if chunk:
                starts = range(0, len(samples) - chunk + 1, chunk)
                means = [statistics.fmean(samples[i : i + chunk]) for i in starts]
                record["chunk_means_s"] = means
            found["measurements"].append(record)
        elif kind in found:
            found[kind] = record
    return found


def launches_of(document: Json, **labels: object) -> list[Json]:
    """The launches that have all of these labels, in their order."""
    return [
        launch
        for launch in document["launches"]
        if all(launch.get(name) == value for name, value in labels.items())
    ]


def times_by_size(
    launches: Iterable[Json], times_of: Callable[[Json], Mapping[int, float]]
) -> dict[int, list[tuple[int, float]]]:
    """Turn and seconds of each launch, per size (bytes)."""
    found: dict[int, list[tuple[int, float]]] = {}
    for launch in launches:
        for size, seconds in times_of(launch).items():
            found.setdefault(size, []).append((launch["turn"], seconds))
    return found


def names_of(known: Collection[str], text: str) -> list[str]:
    """Reads names with commas between them, each of them known."""
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(known)}")
    return names


def powers(first: int, last: int, factor: int) -> tuple[int, ...]:
    """first, first * factor, ... up to last."""
    sizes = []
    while first <= last:
        sizes.append(first)
        first *= factor
    return tuple(sizes)


def median(values: Sequence[float]) -> float | None:
    """The median; ``None`` of nothing."""
    return statistics.median(values) if values else None


def shown(value: float | None, form: str) -> str:
    """A number for a table; a dash where there is none."""
    return "-" if value is None else format(value, form)


def size_words(size: int) -> str:
    """8 B, 64 KiB, 1 GiB."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size:,} B"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> str:
    """A table, its columns as wide as they have to be; the first ones hold words."""
    widths = [max(2, *(len(line[i]) for line in [head, *rows])) for i in range(len(head))]
    ruler = [
        "-" * width if i < words else "-" * (width - 1) + ":" for i, width in enumerate(widths)
    ]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(widths[i]) if i < words else cell.rjust(widths[i])
            for i, cell in enumerate(cells)
        ]
        return f"| {' | '.join(padded)} |"

    return "\n".join(line(cells) for cells in [head, ruler, *rows])


def machine_words(document: Json) -> str:
    """One line on what the numbers come from."""
    machine = document["machine"]
    gpus = [line.split(",")[0] for line in machine["gpus"]]
    names = f"{len(gpus)} x {gpus[0]}" if gpus else machine.get("processor", "no GPU seen")
    library = next(
        (h["library"]["name"] for h in document.get("headers", {}).values() if h.get("library")),
        "",
    )
    parts = [machine["date_utc"], names, machine["mpirun"], library]
    return ", ".join(part for part in parts if part)


def add_options(parser: argparse.ArgumentParser, *, seconds: float, launches: int) -> None:
    """The options that all these programs have."""
    parser.add_argument("--bench", type=Path, help="the executable commtune-bench")
    parser.add_argument(
        "--mpirun",
        default="mpirun --bind-to none",
        help="mpirun with its arguments, as one word (%(default)s)",
    )
    parser.add_argument("--ranks", type=int, default=2, help="one for each GPU (%(default)s)")
    parser.add_argument("--launches", type=int, default=launches, help="of each (%(default)s)")
    parser.add_argument(
        "--seconds",
        type=float,
        default=seconds,
        help="end by then with what there is (%(default)s)",
    )
    parser.add_argument("--json", type=Path, help="where results go")
    parser.add_argument("--from", dest="source", type=Path, help="show these results, run nothing")


def parse(parser: argparse.ArgumentParser, needed: Sequence[str]) -> argparse.Namespace:
    """The options; ends the program where those needed to measure are missing."""
    options = parser.parse_args()
    missing = [name for name in ("bench", "json", *needed) if getattr(options, name) is None]
    if options.source is None and missing:
        parser.error(
            "to measure, give --" + " --".join(name.replace("_", "-") for name in missing)
        )
    return options


def load(path: Path) -> Json:
    """Results that were written earlier; ends the program where there are none."""
    try:
        document: Json = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        sys.exit(f"{path} can't be read: {error}")
    return document
