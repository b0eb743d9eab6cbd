"""Renders the job scripts of a campaign: blocks of runs, traces, and allocations."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from commtune.cluster.environment_padding import pad_variables
from commtune.cluster.jobs.aggressor import AggressorLaunch, request_with_aggressor
from commtune.cluster.jobs.job_folder import JobFolder
from commtune.cluster.jobs.submission import job_name
from commtune.cluster.scheduler import AFTER_VARIABLE, KEY_VARIABLE, StepLauncher
from commtune.documents.packed_files import record_file
from commtune.model import RunRequest
from commtune.slurm_templates.job_request import JobRequest, job_for
from commtune.slurm_templates.launch_command import words_in_uenv
from commtune.slurm_templates.rendering import Step, render_allocation, render_block
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
    launch: Callable[..., tuple[str, ...]]  # ``launch_words`` for this system and MPI
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
            command=self.launch(
                self.job_request, command, first_node=0 if self.aggressor else None
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


#: Seconds before an allocation's end at which its controller is signalled.
_WARN_S = 30
#: Variables that the controller needs as well, to use the same files, MPI and built benchmark.
_PASSED = (
    "COMMTUNE_DB_WAIT",
    "COMMTUNE_GPU_ARCHITECTURES",
    "COMMTUNE_MPI_PATH",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
)


@dataclass(frozen=True)
class AllocationScript:
    """The contents of an allocation's job script, but for the job's key."""

    campaign: str
    system: System | None
    job_request: JobRequest
    command: tuple[str, ...]  # the controller and its arguments
    folder: Path  # parent of the jobs' folders
    database: str  # URL of the database, for the controller
    time_s: float  # length of the allocation, seconds
    #: Variables of the controller, which its runs inherit.
    environment: Mapping[str, str] = field(default_factory=dict)

    def render(self, key: str, after: str = "", exclude: Collection[str] = ()) -> str:
        """Returns the script of the job with this key.

        Args:
            after: number of the predecessor, whose controller is dead when this job begins.

        Raises:
            UserError: a value can't be quoted safely, or the system doesn't allow such a job.
        """
        folder = JobFolder(self.folder / key)
        passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
        # Slurm stores scripts where others may read them, and the URL of a server may hold a
        # password. So the script names a private file in the job's folder that has the URL.
        database = (
            {"COMMTUNE_DB": self.database}
            if self.database.startswith("sqlite")
            else {"COMMTUNE_DB_FILE": str(folder.database)}
        )
        ours = {KEY_VARIABLE: key, **({AFTER_VARIABLE: after} if after else {})}
        job = job_for(
            self.system,
            self.job_request,
            name=job_name(self.campaign, key),
            time_s=self.time_s,
            output=str(folder.output),
            comment=f"commtune:{self.campaign}",
            exclude=exclude,
            warn_s=_WARN_S,
            environment={**passed, **self.environment, **database, **ours},
        )
        command = words_in_uenv(self.job_request, self.command)
        return render_allocation(job, command, self.job_request.templates)
