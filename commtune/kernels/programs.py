"""Which program measures a workload, where it is not the native benchmark; and what it is."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from commtune.errors import MissingComponent, UserError
from commtune.kernels.adapters.program import CommandProgram
from commtune.kernels.bench import NativeProgram
from commtune.kernels.build import digest_of_sources
from commtune.kernels.twin.layout import OPERATIONS
from commtune.kernels.twin.program import TwinProgram, libmpi_of
from commtune.model import Backend, MpiInstallation, OwnBenchmark, Workload

AnyProgram = NativeProgram | TwinProgram | CommandProgram


def other_program(
    workload: Workload, mpi: MpiInstallation, watched: Sequence[str]
) -> TwinProgram | CommandProgram | None:
    """The program that measures a workload; ``None`` where that is the native benchmark.

    Args:
        watched: variables whose values every rank is to report, as far as it can.

    Raises:
        MissingComponent: mpi4py is not installed.
        UserError: the benchmark in Python doesn't know the operation.
    """
    own = workload.own or OwnBenchmark()
    if own.command:
        return CommandProgram(own.command, own.output, Path(own.folder))
    if Backend(workload.backend).is_native:
        return None
    if importlib.util.find_spec("mpi4py") is None:
        raise MissingComponent(
            f"the backend {workload.backend} needs mpi4py",
            hint="python -m pip install mpi4py, or 'commtune[python]'",
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
    from commtune.kernels.twin.records import digest_of_twin

    file = Path(_file_of(own.pattern))
    return digest_of_twin(file) if own.pattern and file.is_file() else digest_of_twin()


def _file_of(pattern: str) -> str:
    path, colon, _ = pattern.partition(".py:")
    return path + ".py" if colon else path
