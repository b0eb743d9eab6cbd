"""Scripts of jobs: what of a campaign goes into them."""

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
from commtune.model import RunRequest
from commtune.slurm_templates.job_request import JobRequest, job_for
from commtune.slurm_templates.launch_command import launch_words
from commtune.slurm_templates.rendering import Step, render_block
from commtune.systems.schema import System
from commtune.tuner.ports import Program

#: What a job takes beside its runs, seconds: its start, modules, and the scheduler's own lag.
_AROUND_S = 60.0
#: What a run takes beside the benchmark, seconds: srun, the library's start.
_AROUND_A_RUN_S = 5.0
#: By how much runs may be slower than so far.
_SLACK = 2.0


@dataclass(frozen=True)
class Scripts:
    campaign: str
    system: System | None
    job_request: JobRequest
    program: Program
    #: The libraries that are measured, as search spaces call them.
    libraries: Collection[str]
    #: Variables of every run: pinned ones, protected ones and the MPI's own.
    environment: Mapping[str, str]
    mpi_launcher: str  # path of its mpirun or mpiexec
    records: Path  # where record files go
    #: An aggressor beside each timed run, on nodes behind theirs.
    aggressor: AggressorLaunch | None = None
    #: What lets nodes say where they stand; ``None`` where the site described it.
    places: StepLauncher | None = None

    def block(
        self,
        folder: JobFolder,
        requests: Sequence[RunRequest],
        limit_s: float,
        time_s: float,
        exclude: Collection[str] = (),
    ) -> str:
        """The script of a block.

        Raises:
            UserError: a value can't be delivered, or the system doesn't allow such a job.
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
            time_s += len(requests) * self.aggressor.around_a_run_s
        return self._render(folder, job_request, tuple(steps), time_s, exclude)

    def trace(
        self,
        folder: JobFolder,
        request: RunRequest,
        command: Sequence[str],
        diagnosing: Mapping[str, str],
        limit_s: float,
    ) -> str:
        step = self._step(folder, 0, request, command, diagnosing, limit_s)
        return self._render(folder, self.job_request, (step,), limit_s + _AROUND_S, ())

    def _command(self, request: RunRequest) -> list[str]:
        return self.program.arguments(request, self.records / f"{request.run_id}.jsonl")

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


def time_limit_of_job(runs: int, typical_s: float | None, limit_s: float) -> float:
    """Seconds to ask for: what the runs likely take and some more, and room for one that hangs.

    Args:
        typical_s: wall seconds of a run so far; ``None`` before anything is known.
        limit_s: seconds that each run may take.
    """
    if typical_s is None:
        return runs * limit_s + _AROUND_S
    likely_s = min(limit_s, _SLACK * typical_s + _AROUND_A_RUN_S)
    return math.ceil(runs * likely_s + 2 * limit_s + _AROUND_S)
