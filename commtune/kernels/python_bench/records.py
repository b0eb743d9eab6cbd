"""Records of the contract, as src/records/records.cpp writes them."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import commtune
from commtune.kernels.python_bench.libraries import communication_libraries, library_versions
from commtune.kernels.python_bench.measuring import SizeResult
from commtune.kernels.python_bench.options import Options
from commtune.kernels.python_bench.sampling import summarise_samples
from commtune.kernels.python_bench.world import Placement, World

_CONTRACT = 1


def open_records(path: str) -> Callable[[Mapping[str, Any]], None]:
    """What writes a record at once, so that it is there whatever happens next."""
    file = open(path, "w", encoding="utf-8") if path else sys.stdout  # noqa: SIM115, PTH123  # it lives as long as the run

    def write(record: Mapping[str, Any]) -> None:
        file.write(json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n")
        file.flush()

    return write


def digest_python_bench(*further: Path) -> str:
    """A key of the Python benchmark's sources, and of further files."""
    digest = hashlib.sha256()
    for path in [*sorted(Path(__file__).parent.glob("*.py")), *further]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def header_record(
    options: Options,
    arguments: Sequence[str],
    world: World,
    placement: Placement,
    *,
    arrays: str,
    gpus: Sequence[Mapping[str, Any]],
    resolution_s: float,
    init_s: float,
) -> dict[str, Any]:
    """The header; ``gpus`` are facts of every rank's, empty where none is used."""
    import mpi4py

    compiler = f"Python {platform.python_version()}, {arrays}, mpi4py {mpi4py.__version__}"
    kernel, libraries = os.uname(), communication_libraries()
    return {
        "record": "header",
        "contract": _CONTRACT,
        "run_id": options.run_id,
        "benchmark": {
            "version": commtune.__version__,
            "compiler": compiler,
            "flags": "",
            "build_id": digest_python_bench(),
        },
        "argv": list(arguments),
        "clock": {"name": "CLOCK_MONOTONIC", "resolution_s": resolution_s},
        "seed": options.seed,
        "backend": options.backend,
        "operation": options.op,
        "dtype": options.dtype,
        "reduction": options.reduction,
        "memory": "device" if options.uses_gpus else "host",
        "timing": {"mode": "blocking", "timer": "wall"},
        **({"shape": {"window": options.window}} if options.op == "stream" else {}),
        "ranks": world.size,
        "mpi": {"library": world.library(), "standard": world.standard()},
        "libraries": libraries,
        "versions": library_versions(libraries),
        "started_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "kernel": f"{kernel.sysname} {kernel.release} {kernel.machine}",
        "init_s": init_s,
        **placement.facts(gpus),
    }


def size_record(result: SizeResult, *, oversubscribed: bool) -> dict[str, Any]:
    layout = result.work.layout
    found = summarise_samples(result.samples_s)
    bandwidth = layout.bytes_total / found.median
    return {
        "record": "measurement",
        "bytes": layout.bytes,
        "count": layout.count,
        "bytes_meaning": layout.meaning,
        "bytes_per_rank": layout.bytes_per_rank,
        "bytes_per_peer": layout.bytes_per_peer,
        "bytes_total": layout.bytes_total,
        "made_of": "call" if result.work.is_call else "messages",
        "warmup": result.warmup,
        "samples": len(result.samples_s),
        "batch": result.batch,
        # Tenths of a nanosecond: finer than any clock.
        "samples_ns": [round(sample * 1e9, 1) for sample in result.samples_s],
        "time_s": found.times,
        "median_ci_s": [found.median_low, found.median_high],
        "stop": result.stop,
        "algbw_Bps": bandwidth,
        "busbw_Bps": bandwidth * layout.bus_factor,
        "first_call_s": result.first_call_s,
        "rank_skew": result.rank_skew,
        # Python is too slow to see a cache line travel.
        "canary_ns": {"before": None, "after": None},
        "wrong": result.wrong,
        "checked": result.checked,
        "status": "wrong" if result.wrong else "ok",
        "oversubscribed": oversubscribed,
        "elapsed_s": result.elapsed_s,
    }
