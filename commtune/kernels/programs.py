"""Which program measures a workload, where it is not the native benchmark; and what it is."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from commtune import model
from commtune.errors import MissingComponent, UserError, install_command
from commtune.kernels.adapters.program import CommandProgram
from commtune.kernels.bench import NativeProgram
from commtune.kernels.build import digest_of_sources, library_folders
from commtune.kernels.python_bench.layout import OPERATIONS
from commtune.kernels.records import read_records
from commtune.paths import is_file
from commtune.tuner.ports import Records

#: Bytes of a file that are read to know it again.
_LONGEST_READ = 64 * 2**20

#: Names under which the system's own libraries are found, for an MPI that is part of it.
_SYSTEM_NAMES = {
    model.MpiFlavour.MPICH: ("libmpich.so.12", "libmpi.so.12"),
    model.MpiFlavour.OPENMPI: ("libmpi.so.40",),
    model.MpiFlavour.INTEL: ("libmpi.so.12",),
    model.MpiFlavour.MVAPICH: ("libmpi.so.12",),
    model.MpiFlavour.CRAY: ("libmpi_cray.so.12", "libmpi_gnu_123.so.12", "libmpi_gnu_91.so.12"),
}


@dataclass(frozen=True)
class PythonProgram:
    """The Python benchmark; implements ``tuner.ports.Program``.

    Attributes:
        pattern: a user's pattern, FILE.py:CLASS, with an absolute path; empty for operations.
    """

    libmpi: str
    pattern: str = ""
    env_names: Sequence[str] = ()

    def arguments(self, request: model.RunRequest, records: Path) -> list[str]:
        workload, timing = request.workload, request.timing
        options = {
            "op": workload.operation,
            "python": self.pattern if model.Operation(workload.operation).is_own else "",
            "sizes": ",".join(str(size) for size in workload.sizes),
            "dtype": workload.dtype,
            "reduction": workload.reduction,
            "window": workload.window or "",
            "backend": workload.backend,
            "records": records,
            "run-id": request.run_id,
            "expect-ranks": workload.ranks,
            "warmup": timing.warmup,
            "min-samples": timing.min_samples,
            "max-samples": timing.max_samples,
            "relative-ci": repr(timing.relative_ci),
            "time-cap": repr(timing.time_cap_s),
            "env-names": ",".join(self.env_names),
            "libmpi": self.libmpi,
        }
        # -P: the folder that it is started in is no place to import from.
        command = [sys.executable, "-P", "-m", "commtune.kernels.python_bench"]
        return [*command, *(f"--{name}={value}" for name, value in options.items() if value != "")]

    def read(self, records: Path, request: model.RunRequest) -> Records:
        return read_records(records, request)


AnyProgram = NativeProgram | PythonProgram | CommandProgram


def other_program(
    workload: model.Workload, mpi: model.MpiInstallation, watched: Sequence[str], path: str = ""
) -> PythonProgram | CommandProgram | None:
    """The program that measures a workload; ``None`` where that is the native benchmark.

    Args:
        watched: variables whose values every rank is to report, as far as it can.
        path: PATH of a user's own command; empty for that of its launcher.

    Raises:
        MissingComponent: mpi4py is not installed.
        UserError: the benchmark in Python doesn't know the operation.
    """
    own = workload.own or model.OwnBenchmark()
    if own.command:
        # In jobs, modules and containers bring the MPI; here it would be the first that is found.
        libmpi = libmpi_of(mpi) if path else ""
        return CommandProgram(own.command, own.output, Path(own.folder), path, libmpi)
    if model.Backend(workload.backend).is_native:
        return None
    # Found and not imported: it would load an MPI library into the controller.
    if importlib.util.find_spec("mpi4py") is None:
        raise MissingComponent(
            f"the backend {workload.backend} needs mpi4py",
            hint=install_command(".[python]"),
        )
    if not own.pattern and workload.operation not in OPERATIONS:
        raise UserError(
            f"the backend {workload.backend} does not know the operation {workload.operation}",
            hint=f"it knows {', '.join(OPERATIONS)}",
        )
    return PythonProgram(libmpi_of(mpi), own.pattern, tuple(watched))


def watching_program(program: Any, names: Sequence[str]) -> Any:
    """The same program, with the values of other variables reported, if it can tell them."""
    is_ours = isinstance(program, NativeProgram | PythonProgram)
    return replace(program, env_names=tuple(names)) if is_ours else program


def sources_of(workload: model.Workload) -> str:
    """What measures a workload, as a key: results of another one don't compare."""
    own = workload.own or model.OwnBenchmark()
    if own.command or model.Backend(workload.backend).is_native:
        return digest_of_sources()[:16]
    from commtune.kernels.python_bench.records import digest_python_bench

    path, colon, _ = own.pattern.partition(".py:")
    file = Path(path + ".py" if colon else path)
    return digest_python_bench(*([file] if is_file(file) else []))


def files_of(workload: model.Workload) -> dict[str, str]:
    """Keys of the files that a user's command names: with another key it is another program."""
    own = workload.own or model.OwnBenchmark()
    found: dict[str, str] = {}
    for index, word in enumerate(own.command):
        # --config=FILE names one too. The program itself is a file only by a path: what PATH finds
        # is the machine's, and changes with every update of it.
        for name in dict.fromkeys((word, word.partition("=")[2])):
            if name and (index > 0 or "/" in name) and (key := _key(Path(own.folder) / name)):
                found[name] = key
    return found


def _key(file: Path) -> str:
    """A key of what is in a file; empty where there is none that can be read."""
    with suppress(OSError, ValueError):  # a name that is too long, or no name of a file
        if is_file(file):
            length = file.stat().st_size
            if length > _LONGEST_READ:  # such as data: its length tells
                return f"{length} bytes"
            return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    return ""


def libmpi_of(mpi: model.MpiInstallation) -> str:
    """Where mpi4py is to look for the library of an MPI, as MPI4PY_LIBMPI says it."""
    # An mpi4py that was built for one MPI has its library already, and pays no attention.
    names = _SYSTEM_NAMES.get(mpi.flavour, ())
    return os.pathsep.join(library_folders(mpi.prefix) or names)
