"""Untimed runs in jobs, in which the library says what it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from commtune.cluster.jobs.job_folder import JobFolder
from commtune.cluster.tracing import run as tracing
from commtune.cluster.tracing.libraries import library_of
from commtune.model import Execution, MpiFlavour, RunRequest
from commtune.tuner.ports import Program


@dataclass(frozen=True)
class Tracer:
    """Asks for traces, and reads them.

    Attributes:
        environment: variables of every run.
        watched: names of all variables of the space.
        folder: where record files of traces go, apart from those of runs.
    """

    program: Program
    flavour: MpiFlavour
    environment: Mapping[str, str]
    watched: Sequence[str]
    folder: Path

    @property
    def can_trace(self) -> bool:
        """Whether the benchmark can run untimed."""
        return isinstance(self.program, tracing.TracingProgram)

    def asked(self, request: RunRequest) -> tuple[list[str], dict[str, str]]:
        """The command line of a rank, and variables that make the library talk."""
        assert isinstance(self.program, tracing.TracingProgram)
        library = library_of(self.flavour, request.workload.backend)
        names = tracing.names_of(request, self.watched)
        self.folder.mkdir(parents=True, exist_ok=True)
        controls = tracing.controls_for(library, names)
        command = self.program.trace_arguments(request, self._records(request), controls)
        environment = {**self.environment, **request.configuration}
        return command, tracing.logging_environment(library, names, environment)

    def execution(self, request: RunRequest, folder: JobFolder) -> Execution | None:
        """What the library did; ``None`` where the run did not come to its end."""
        assert isinstance(self.program, tracing.TracingProgram)
        ending = folder.ending(0)
        if ending is None or ending.status != 0:
            return None
        library = library_of(self.flavour, request.workload.backend)
        names = tracing.names_of(request, self.watched)
        found = self.program.read(self._records(request), request)
        output = folder.whole(folder.step_output(0))
        return tracing.execution_of(library, request, names, found, output)

    def _records(self, request: RunRequest) -> Path:
        return self.folder / f"{request.run_id}.jsonl"
