"""Real traces in tests, on an MPI wheel of the project."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from components import require_component
from mpi_fixture import built_benchmark

from commtune.cluster.local.benchmark import LocalBenchmark
from commtune.cluster.local.launch import base_environment
from commtune.cluster.mpi.discovery import find_mpi
from commtune.errors import MissingComponent
from commtune.kernels.bench import NativeProgram
from commtune.model import (
    Configuration,
    Execution,
    MpiInstallation,
    Operation,
    RunRequest,
    Timing,
    Workload,
)

_LIMIT_S = 300.0
#: Bytes. At 8 B a trace makes more calls, and at each of them three ranks that spin on two cores
#: wait for the scheduler.
_SIZES = (256, 4096)


@dataclass(frozen=True)
class Bench:
    """Traces configurations; all their variables together are watched."""

    mpi: MpiInstallation
    executable: Path
    folder: Path

    def __call__(
        self,
        *configurations: Mapping[str, str],
        ranks: int = 3,
        sizes: tuple[int, ...] = _SIZES,
    ) -> list[Execution]:
        watched = sorted({name for settings in configurations for name in settings})
        traces = [
            self.one(settings, watched=watched, ranks=ranks, sizes=sizes)
            for settings in configurations
        ]
        found = [trace for trace in traces if trace is not None]
        assert len(found) == len(traces), "a run did not come to its end"
        return found

    def one(
        self,
        settings: Mapping[str, str],
        *,
        watched: Sequence[str] = (),
        ranks: int = 3,
        sizes: tuple[int, ...] = _SIZES,
    ) -> Execution | None:
        names = tuple(watched or settings)
        environment = base_environment(os.environ, self.mpi)
        program = NativeProgram(self.executable, names)
        benchmark = LocalBenchmark(self.mpi, program, environment, names, self.folder)
        workload = Workload(Operation.ALLREDUCE, sizes, ranks)
        run = RunRequest(uuid.uuid4().hex, Configuration(settings), workload, Timing())
        return benchmark.trace(run, _LIMIT_S)


def traced_on(wheel: str, folder: Path) -> Bench:
    """Traces on a wheel, or a skip where it is not installed."""
    mpi, executable = _built(wheel) or (None, None)
    require_component(f"wheel:{wheel} (make .mpi/{wheel}.installed)", mpi is not None)
    assert mpi is not None
    assert executable is not None
    return Bench(mpi, executable, folder)


@cache
def _built(wheel: str) -> tuple[MpiInstallation, Path] | None:
    try:
        mpi = find_mpi(f"wheel:{wheel}")
    except MissingComponent:
        return None
    return mpi, built_benchmark(mpi)
