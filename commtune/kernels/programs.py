"""Which program measures a workload, where it is not the native benchmark; and what it is."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from commtune.errors import MissingComponent, UserError, install_command
from commtune.kernels.adapters.program import CommandProgram
from commtune.kernels.bench import NativeProgram
from commtune.kernels.build import digest_of_sources
from commtune.kernels.python_bench.layout import OPERATIONS
from commtune.kernels.python_bench.program import TwinProgram, libmpi_of
from commtune.model import Backend, MpiInstallation, OwnBenchmark, Workload

#: Bytes of a file that are read to know it again.
_LONGEST_READ = 64 * 2**20

AnyProgram = NativeProgram | TwinProgram | CommandProgram


def other_program(
    workload: Workload, mpi: MpiInstallation, watched: Sequence[str], path: str = ""
) -> TwinProgram | CommandProgram | None:
    """The program that measures a workload; ``None`` where that is the native benchmark.

    Args:
        watched: variables whose values every rank is to report, as far as it can.
        path: PATH of a user's own command; empty for that of its launcher.

    Raises:
        MissingComponent: mpi4py is not installed.
        UserError: the benchmark in Python doesn't know the operation.
    """
    own = workload.own or OwnBenchmark()
    if own.command:
        # In jobs, modules and containers bring the MPI; here it would be the first that is found.
        libmpi = libmpi_of(mpi) if path else ""
        return CommandProgram(own.command, own.output, Path(own.folder), path, libmpi)
    if Backend(workload.backend).is_native:
        return None
    if importlib.util.find_spec("mpi4py") is None:
        raise MissingComponent(
            f"the backend {workload.backend} needs mpi4py",
            hint=install_command("commtune[python]"),
        )
    if not own.pattern and workload.operation not in OPERATIONS:
        raise UserError(
            f"the backend {workload.backend} does not know the operation {workload.operation}",
            hint=f"it knows {', '.join(OPERATIONS)}",
        )
    return TwinProgram(libmpi_of(mpi), own.pattern, tuple(watched))


def watching_program(program: Any, names: Sequence[str]) -> Any:
    """The same program, with the values of other variables reported, if it can tell them."""
    if isinstance(program, NativeProgram | TwinProgram):
        return replace(program, env_names=tuple(names))
    return program


def sources_of(workload: Workload) -> str:
    """What measures a workload, as a key: results of another one don't compare."""
    own = workload.own or OwnBenchmark()
    if own.command or Backend(workload.backend).is_native:
        return digest_of_sources()[:16]
    from commtune.kernels.python_bench.records import digest_of_twin

    file = Path(_file_of(own.pattern))
    return digest_of_twin(file) if own.pattern and file.is_file() else digest_of_twin()


def files_of(workload: Workload) -> dict[str, str]:
    """Keys of the files that a user's command names, by its words: changed, it is another program.

    What PATH finds is left out: it is the machine's, and changes with every update of it. Of a
    file that is long to read, such as data, its length tells.
    """
    own = workload.own or OwnBenchmark()
    found: dict[str, str] = {}
    for index, word in enumerate(own.command):
        # ``--config=FILE`` names one too; the program itself is a file only by a path.
        for name in dict.fromkeys((word, word.partition("=")[2])):
            if name and (index > 0 or "/" in name) and (key := _key(Path(own.folder) / name)):
                found[name] = key
    return found


def _key(file: Path) -> str:
    """Of what is in a file; empty where there is none that can be read."""
    try:
        if not file.is_file():
            return ""
        length = file.stat().st_size
        if length > _LONGEST_READ:
            return f"{length} bytes"
        return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    except (OSError, ValueError):  # a name that is too long, or no name of a file
        return ""


def _file_of(pattern: str) -> str:
    path, colon, _ = pattern.partition(".py:")
    return path + ".py" if colon else path
