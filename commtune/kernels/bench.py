"""Builds the native benchmark's command lines, and makes it a program for the tuner."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from commtune import model
from commtune.kernels.records import read_records
from commtune.model.operations import ACTIVE, GROUPED, MIXED
from commtune.tuner.ports import Records

#: The line that an aggressor prints once, as soon as it has sent messages.
AGGRESSOR_SIGN = "commtune-bench: sending"


@dataclass(frozen=True)
class NativeProgram:
    """The native benchmark's executable; implements ``tuner.ports.Program``."""

    executable: Path
    env_names: Sequence[str] = ()  # variables whose values every rank reports in the header
    #: Name and version that runs with ``xccl`` must report in the header; empty for any library.
    library: str = ""
    matrix: Path | None = None  # file with the workload's matrix, which rank 0 reads
    #: Whether runs with only ``xccl`` exit without freeing memory and communicators, which takes a
    #: fifth of a short run (docs/gpu.md). Other backends must free them, as their messages may
    #: still use memory of a GPU.
    leaves_memory: bool = False

    def arguments(self, request: model.RunRequest, records: Path) -> list[str]:
        workload = request.workload
        is_on_gpu = model.Backend(workload.backend).uses_gpu
        command = [
            str(self.executable),
            *common_arguments(request, records, self.env_names),
            *([f"--then={','.join(workload.then)}"] if workload.then else []),
            # Ranks bind themselves near their GPUs; launchers, which don't know these, leave them
            # unbound.
            *([f"--backend={workload.backend}", "--bind=gpu"] if is_on_gpu else []),
            *_window(workload),
            *_shape(workload),
            *(["--rotate=yes"] if workload.rotate else []),
            *_timing(request.timing),
        ]
        only_xccl = {workload.backend, *workload.shape.backends} == {model.Backend.XCCL}
        command += ["--end=quick"] if self.leaves_memory and only_xccl else []
        has_matrix = self.matrix is not None and workload.operation is model.Operation.MATRIX
        return [*command, f"--matrix={self.matrix}"] if has_matrix else command

    def trace_arguments(
        self, request: model.RunRequest, records: Path, controls: Sequence[str]
    ) -> list[str]:
        """Returns the arguments of an untimed run that reports MPI_T control variables."""
        command = [*self.arguments(request, records), "--mode=trace"]
        return [*command, f"--controls={','.join(controls)}"] if controls else command

    def read(self, records: Path, request: model.RunRequest) -> Records:
        found = read_records(records, request)
        return replace(found, mismatch=_mismatch(self.library, found.header or {}))


def common_arguments(
    request: model.RunRequest, records: Path, env_names: Sequence[str]
) -> list[str]:
    """Returns the arguments that the native benchmark shares with the one in Python."""
    workload, timing = request.workload, request.timing
    options = {
        "op": workload.operation,
        "sizes": ",".join(map(str, workload.sizes)),
        "dtype": workload.dtype,
        "reduction": workload.reduction,
        "records": records,
        "run-id": request.run_id,
        "expect-ranks": workload.ranks,
        "warmup": timing.warmup,
        "min-samples": timing.min_samples,
        "max-samples": timing.max_samples,
        "relative-ci": repr(timing.relative_ci),
        "time-cap": repr(timing.time_cap_s),
        "env-names": ",".join(env_names),
    }
    return [f"--{name}={value}" for name, value in options.items() if value != ""]


def _mismatch(asked: str, header: Mapping[str, Any]) -> str:
    """Returns a problem if a run loaded another library than it was built with; else empty."""
    library = header.get("library")
    name = library.get("name") if isinstance(library, dict) else None
    if not asked or not isinstance(name, str) or _words_of(name) == _words_of(asked):
        return ""
    return (
        f"MISMATCH: the ranks ran with {name[:60]}, and the benchmark was built with {asked}, "
        "which results would be stored for. LD_LIBRARY_PATH or a module brings the other one: "
        "remove it, or build with its headers (commtune build)"
    )


def _words_of(library: str) -> tuple[str, ...]:
    """Splits a library into name and version numbers, without suffixes by packagers."""
    name, _, version = library.partition(" ")
    return (name, *re.findall(r"[0-9]+", version)[:3])


def aggressor_arguments(
    executable: Path,
    aggressor: model.Aggressor,
    records: Path,
    run_id: str,
    *,
    longest_s: float,
    stop_file: Path | None = None,
) -> list[str]:
    """Returns the command line of a rank of an aggressor, without the launcher.

    Args:
        longest_s: seconds after which it ends in any case, at least 0.001.
        stop_file: it ends when this file exists; its folder must exist from the beginning.
    """
    command = [
        str(executable),
        # It has no operation, but sends messages until it is told to end.
        "--mode=aggress",
        f"--pattern={aggressor.pattern}",
        f"--message={aggressor.message_bytes}",
        f"--records={records}",
        f"--run-id={run_id}",
        f"--expect-ranks={aggressor.ranks}",
        f"--longest={longest_s!r}",
    ]
    if aggressor.burst_s or aggressor.pause_s:
        command += [f"--burst={aggressor.burst_s!r}", f"--pause={aggressor.pause_s!r}"]
    return [*command, f"--stop-file={stop_file}"] if stop_file else command


def read_traffic(records: Path) -> dict[str, float]:
    """Reads the traffic of all ranks of an aggressor so far; empty if it sent nothing.

    Bytes count each message once, seconds exclude pauses, rates are in Gb/s of these.
    """
    sent = read_records(records).traffic
    if not sent or not sent["bytes_moved"]:
        return {}
    bits_per_byte_s = 8e-9 / sent["active_s"] if sent["active_s"] > 0 else 0.0
    return {
        "bytes_moved": sent["bytes_moved"],
        "active_s": sent["active_s"],
        "gigabits_per_s": sent["bytes_moved"] * bits_per_byte_s,
        "gigabits_per_s_between_nodes": sent["bytes_between_nodes"] * bits_per_byte_s,
    }


def _window(workload: model.Workload) -> list[str]:
    # Guard operations share the workload, but may not use all its keys.
    is_stream = workload.operation is model.Operation.STREAM
    return [f"--window={workload.window}"] if workload.window and is_stream else []


def _shape(workload: model.Workload) -> list[str]:
    """Returns options for the keys of a shape that the operation uses (guards share workloads)."""
    shape, operation = workload.shape, workload.operation
    names: list[str] = []
    names += ["group_size"] if operation in GROUPED else []
    names += ["active", "direction"] if operation in ACTIVE else []
    names += ["inside", "between"] if operation in MIXED else []
    names += ["assemble"] if operation is model.Operation.STRIPING else []
    given = ((name, getattr(shape, name)) for name in names)
    return [f"--{name.replace('_', '-')}={value}" for name, value in given if value]


def _timing(timing: model.Timing) -> list[str]:
    mode = [f"--timing={timing.mode}", f"--operations={timing.operations}"]
    return [
        *(mode if timing.operations else ()),
        *(["--graph=yes"] if timing.graph else []),
        *([f"--timer={timing.timer}"] if timing.timer != model.WALL else ()),
    ]
