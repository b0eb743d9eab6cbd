"""Renders the job scripts of a campaign: blocks of runs, and traces."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from commtune.cluster.environment_padding import pad_variables
from commtune.cluster.jobs.aggressor import AggressorLaunch, request_with_aggressor
from commtune.cluster.jobs.job_folder import JobFolder
from commtune.cluster.jobs.submission import job_name
from commtune.cluster.scheduler import StepLauncher
from commtune.documents.packed_files import record_file
from commtune.model import RunRequest
from commtune.slurm_templates.job_request import JobRequest, job_for
from commtune.slurm_templates.launch_command import launch_words
from commtune.slurm_templates.rendering import Step, render_block
from commtune.systems.schema import System
from commtune.tuner.ports import Program

#: Seconds that a job takes beside its runs: prologue, modules, the scheduler's own delay.
_AROUND_S = 60.0
#: Seconds that a run takes beside the benchmark: srun, initialization of MPI.
_AROUND_A_RUN_S = 5.0
#: Factor by which runs may be slower than those so far.
_SLACK = 2.0


@dataclass(frozen=True)
class Scripts:
    """What is common to the job scripts of a campaign."""

    campaign: str
    system: System | None
    job_request: JobRequest
    program: Program
    #: The libraries that are measured, as search spaces call them.
    libraries: Collection[str]
    #: Variables of every run: pinned ones, protected ones and the MPI's own.
    environment: Mapping[str, str]
    mpi_launcher: str  # path of the MPI's mpirun or mpiexec
    records: Path  # folder of the record files
    #: The aggressor beside each timed run, on the nodes after theirs.
    aggressor: AggressorLaunch | None = None
    #: Asks nodes for their place in the network; ``None`` where the scheduler's topology has it.
    places: StepLauncher | None = None

    def time_limit(self, runs: int, typical_s: float | None, limit_s: float) -> float:
        """Returns a job's time limit in seconds: its runs' likely time, and room for one to hang.

        Args:
            typical_s: median wall seconds of a run so far; ``None`` before the first one.
            limit_s: seconds that each run may take.
        """
        around_s = _AROUND_S + (runs * self.aggressor.around_a_run_s if self.aggressor else 0.0)
        if typical_s is None:
            return runs * limit_s + around_s
        likely_s = min(limit_s, _SLACK * typical_s + _AROUND_A_RUN_S)
        return math.ceil(runs * likely_s + 2 * limit_s + around_s)

    def block(
        self,
        folder: JobFolder,
        requests: Sequence[RunRequest],
        limit_s: float,
        time_s: float,
        exclude: Collection[str] = (),
    ) -> str:
        """Returns the script of a block.

        Args:
            limit_s: seconds that each run may take.
            time_s: time limit of the job, seconds.

        Raises:
            UserError: a value can't be quoted safely, or the system doesn't allow such a job.
        """
        steps = [
            self._step(folder, position, request, self._command(request), {}, limit_s)
            for position, request in enumerate(requests)
        ]
        job_request = self.job_request
        if self.aggressor is not None:
            timed = zip(steps, requests, strict=True)
            steps = [self.aggressor.joined(step, request.run_id) for step, request in timed]
            job_request = request_with_aggressor(job_request, self.aggressor.aggressor)
        return self._render(folder, job_request, tuple(steps), time_s, exclude)

    def trace(
        self,
        folder: JobFolder,
        request: RunRequest,
        command: Sequence[str],
        diagnosing: Mapping[str, str],
        limit_s: float,
    ) -> str:
        """Returns the script of a trace: one run, with the variables ``diagnosing`` besides."""
        step = self._step(folder, 0, request, command, diagnosing, limit_s)
        return self._render(folder, self.job_request, (step,), limit_s + _AROUND_S, ())

    def _command(self, request: RunRequest) -> list[str]:
        return self.program.arguments(request, record_file(self.records, request.run_id))

    def _step(
        self,
        folder: JobFolder,
        position: int,
        request: RunRequest,
        command: Sequence[str],
        further: Mapping[str, str],
        limit_s: float,
    ) -> Step:
        return Step(
            command=launch_words(
                self.system,
                self.job_request,
                command,
                self.libraries,
                mpi_launcher=self.mpi_launcher,
                first_node=0 if self.aggressor else None,
            ),
            output=str(folder.step_output(position)),
            exit_file=str(folder.step_exit(position)),
            environment=pad_variables(
                request, {**further, **request.configuration}, self.environment, self.records
            ),
            time_limit_s=limit_s,
        )

    def _render(
        self,
        folder: JobFolder,
        job_request: JobRequest,
        steps: tuple[Step, ...],
        time_s: float,
        exclude: Collection[str],
    ) -> str:
        job = job_for(
            self.system,
            job_request,
            name=job_name(self.campaign, folder.path.name),
            time_s=min(time_s, self.job_request.block_time_s or time_s),
            output=str(folder.output),
            comment=f"commtune:{self.campaign}",
            exclude=exclude,
            libraries=self.libraries,
            environment=self.environment,
        )
        places = self.places.place_command(job_request.nodes) if self.places else ()
        return render_block(job, steps, folder.path, job_request.templates, places)
