"""Makes single runs of the benchmark, and traces the effect of settings on a library."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from commtune.errors import EnvironmentFault
from commtune.model import (
    DEFAULT,
    Configuration,
    Execution,
    MpiInstallation,
    RunRequest,
    RunResult,
)
from commtune.spaces.catalogue import checking
from commtune.tuner.effective.settings import (
    DID,
    NOTE,
    Setting,
    effective_configuration,
    group_executions,
    settings_of,
)
from commtune.tuner.effective.settings import split_fingerprint as split_fingerprint
from commtune.tuner.execution.time_limits import first_limit
from commtune.tuner.ports import Benchmark
from commtune.wiring import benchmark_setup, space_fitting

#: The shortest time limit of a run, and that of a trace, seconds.
_LIMIT_S, _TRACE_LIMIT_S = 600.0, 120.0


@dataclass(frozen=True)
class TraceResult:
    """The effect of settings on a library.

    Attributes:
        library: its name and version, for messages.
        execution: its behaviour with the settings.
        default: its behaviour without them.
    """

    library: str
    execution: Execution
    default: Execution

    @property
    def settings(self) -> Mapping[str, Setting]:
        """The effect of each setting, by its name."""
        return settings_of(self.execution)

    @property
    def effective(self) -> Configuration:
        """The configuration without the settings that had no effect."""
        return effective_configuration(self.execution)

    @property
    def lines(self) -> list[str]:
        """The lines of the library's output that are worth showing."""
        return [line for line in self.execution.said if line.startswith((DID, NOTE))]


def run_benchmark(request: RunRequest, mpi: str = "auto") -> tuple[RunResult, MpiInstallation]:
    """Makes a run, without storing it; returns its result, even of a failure, and its MPI.

    Args:
        mpi: the MPI: its folder, compiler, name, or ``auto``.

    Raises:
        MissingComponent, UserError: this machine lacks what the run needs.
    """
    found = benchmark_setup.find_named_mpi(mpi)
    with benchmark_setup.unstored_benchmark(found, {}, request.workload) as benchmark:
        limit_s = max(_LIMIT_S, first_limit(request.workload, request.timing))
        return benchmark.measure(request, limit_s), found


def trace_settings(request: RunRequest, mpi: str = "auto") -> TraceResult:
    """Traces a library's behaviour under a run's configuration, and under the default.

    Raises:
        EnvironmentFault: a run under one of them did not finish.
        MissingComponent, UserError: this machine lacks what the run needs.
    """
    found = benchmark_setup.find_named_mpi(mpi)
    configuration = request.configuration
    both = [DEFAULT] if configuration.is_default else [DEFAULT, configuration]
    traces = trace_each(request, both, found)
    library = space_fitting.library_words(request.workload.backend, found)
    return TraceResult(library, traces[-1], traces[0])


def trace_each(
    request: RunRequest, configurations: Sequence[Configuration], mpi: MpiInstallation
) -> tuple[Execution, ...]:
    """Traces a library's behaviour under each configuration.

    Raises:
        EnvironmentFault: a run under one of them did not finish.
    """
    names = tuple(dict.fromkeys(name for each in configurations for name in each))
    workload = request.workload
    with benchmark_setup.unstored_benchmark(mpi, {}, workload, watched=names) as benchmark:
        return group_executions([_trace(benchmark, request, each) for each in configurations])


def list_settings_remarks(settings: Configuration, versions: Mapping[str, str]) -> list[str]:
    """Returns the remarks of the catalogue on a user's settings, as in ``commtune doctor``.

    Args:
        versions: versions of libraries by name, as far as known.
    """
    asked = [checking.EnvironmentSetting(name, value) for name, value in settings.items()]
    every = checking.check_settings(asked, versions)
    # Several libraries may have the same remark on a variable.
    return list({remark.key: remark.what for remark in every}.values())


def _trace(benchmark: Benchmark, request: RunRequest, configuration: Configuration) -> Execution:
    own = RunRequest(uuid.uuid4().hex, configuration, request.workload, request.timing)
    execution = benchmark.trace(own, _TRACE_LIMIT_S)
    if execution is not None:
        return execution
    flags = " ".join(f"-x {name}={value}" for name, value in configuration.items())
    raise EnvironmentFault(
        f"the run did not finish under {configuration}",
        hint=f"see why: commtune bench --op {request.workload.operation} "
        f"--ranks {request.workload.ranks} {flags}".rstrip(),
    )
