"""Chooses the program for a workload if it isn't the native benchmark, and identifies it."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from commtune import model
from commtune.errors import MissingComponent, UserError, install_command
from commtune.kernels.adapters.program import CommandProgram
from commtune.kernels.bench import NativeProgram, common_arguments
from commtune.kernels.build import digest_of_sources, library_folders
from commtune.kernels.python_bench.layout import OPERATIONS
from commtune.kernels.records import read_records
from commtune.paths import is_file
from commtune.tuner.ports import Records

#: The most bytes of a file for a digest of its content.
_LONGEST_READ = 64 * 2**20

#: Names of MPI libraries on the system's default path.
_SYSTEM_NAMES = {
    model.MpiFlavour.MPICH: ("libmpich.so.12", "libmpi.so.12"),
    model.MpiFlavour.OPENMPI: ("libmpi.so.40",),
    model.MpiFlavour.INTEL: ("libmpi.so.12",),
    model.MpiFlavour.MVAPICH: ("libmpi.so.12",),
    model.MpiFlavour.CRAY: ("libmpi_cray.so.12", "libmpi_gnu_123.so.12", "libmpi_gnu_91.so.12"),
}


@dataclass(frozen=True)
class PythonProgram:
    """The Python benchmark; implements ``tuner.ports.Program``."""

    libmpi: str
    #: A user's pattern as FILE.py:CLASS with an absolute path; empty for operations.
    pattern: str = ""
    env_names: Sequence[str] = ()

    def arguments(self, request: model.RunRequest, records: Path) -> list[str]:
        workload = request.workload
        options = {
            "python": self.pattern if workload.operation.is_own else "",
            "window": workload.window,
            "backend": workload.backend,
            "operations": request.timing.operations,
            "libmpi": self.libmpi,
        }
        # -P prevents imports from the working directory.
        command = [sys.executable, "-P", "-m", "commtune.kernels.python_bench"]
        command += common_arguments(request, records, self.env_names)
        return [*command, *(f"--{name}={value}" for name, value in options.items() if value)]

    def read(self, records: Path, request: model.RunRequest) -> Records:
        return read_records(records, request)


AnyProgram = NativeProgram | PythonProgram | CommandProgram


def other_program(
    workload: model.Workload, mpi: model.MpiInstallation, watched: Sequence[str], path: str = ""
) -> PythonProgram | CommandProgram | None:
    """Returns the program that measures a workload; ``None`` for the native benchmark.

    Args:
        watched: variables whose values ranks report if they can.
        path: PATH for a user's own command; empty for the launcher's.

    Raises:
        MissingComponent: mpi4py is not installed.
        UserError: the Python benchmark doesn't support the operation.
    """
    own = workload.own or model.OwnBenchmark()
    if own.command:
        # In jobs, environment modules and containers provide the MPI, so it is not looked up here.
        libmpi = libmpi_of(mpi) if path else ""
        return CommandProgram(own.command, own.output, Path(own.folder), path, libmpi)
    if model.Backend(workload.backend).is_native:
        return None
    # It is not imported, as that would load an MPI library into the controller.
    if importlib.util.find_spec("mpi4py") is None:
        raise MissingComponent(
            f"the backend {workload.backend} needs mpi4py", hint=install_command(".[python]")
        )
    if not own.pattern and workload.operation not in OPERATIONS:
        raise UserError(
            f"the backend {workload.backend} does not know the operation {workload.operation}",
            hint=f"it knows {', '.join(OPERATIONS)}",
        )
    return PythonProgram(libmpi_of(mpi), own.pattern, tuple(watched))


def watching_program(program: AnyProgram, names: Sequence[str]) -> AnyProgram:
    """Returns a program that reports the values of other variables, if it supports that."""
    if isinstance(program, CommandProgram):
        return program
    return replace(program, env_names=tuple(names))


def sources_of(workload: model.Workload) -> str:
    """Returns a digest of the benchmark's sources; results of different ones aren't comparable."""
    own = workload.own or model.OwnBenchmark()
    if own.command or model.Backend(workload.backend).is_native:
        return digest_of_sources()[:16]
    from commtune.kernels.python_bench.records import digest_python_bench

    path, colon, _ = own.pattern.partition(".py:")
    file = Path(path + ".py" if colon else path)
    return digest_python_bench(*([file] if is_file(file) else []))


def files_of(workload: model.Workload) -> dict[str, str]:
    """Returns digests of the files that a user's command names, which identify the program."""
    own = workload.own or model.OwnBenchmark()
    found: dict[str, str] = {}
    for index, word in enumerate(own.command):
        # --config=FILE names a file too. A program without a path is not included, since what PATH
        # finds may change with every update of the machine.
        for name in dict.fromkeys((word, word.partition("=")[2])):
            if name and (index > 0 or "/" in name) and (key := _key(Path(own.folder) / name)):
                found[name] = key
    return found


def _key(file: Path) -> str:
    """Returns a digest of a file; empty if there is no readable file."""
    with suppress(OSError, ValueError):  # the name is too long or invalid
        if is_file(file):
            length = file.stat().st_size
            if length > _LONGEST_READ:  # for large files such as data, the length must do
                return f"{length} bytes"
            return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    return ""


def libmpi_of(mpi: model.MpiInstallation) -> str:
    """Returns the value of MPI4PY_LIBMPI by which mpi4py finds the library of an MPI."""
    # An mpi4py that was built for one MPI is linked to its library, and ignores this.
    names = _SYSTEM_NAMES.get(mpi.flavour, ())
    return os.pathsep.join(library_folders(mpi.prefix) or names)
