"""Runs an aggressor, background traffic on nodes of its own in the same job, beside each run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from commtune.cluster.jobs.job_folder import read_tail
from commtune.model import Aggressor, Outcome, RunResult
from commtune.slurm_templates.background_command import BackgroundCommand as Command
from commtune.slurm_templates.background_command import Presence
from commtune.slurm_templates.job_request import JobRequest
from commtune.slurm_templates.rendering import Step

#: Seconds that an aggressor may take to start: srun, initialization of MPI, the first messages.
_BEGINS_S = 60
#: Seconds that it may take to end: by its stop file, then SIGTERM, then SIGKILL.
_ENDS_S = 20.0


def output_beside_step(output: str | Path) -> Path:
    """Returns an aggressor's output beside the job step that prints to this file (``Step``)."""
    return Path(f"{output}.beside")


def output_beside_run(folder: Path, run_id: str) -> Path:
    """Returns an aggressor's output beside a run in an allocation; ``folder``: of the records."""
    return folder / "beside" / f"{run_id}.out"


def _records_of(output: Path) -> Path:
    return Path(f"{output}.jsonl")


@dataclass(frozen=True)
class AggressorLaunch:
    """Everything that is needed to start an aggressor beside each run of a campaign."""

    #: Seconds by which an aggressor may lengthen a launch.
    grace_s: ClassVar[float] = _BEGINS_S + _ENDS_S
    #: Seconds by which it usually lengthens a run in a job.
    around_a_run_s: ClassVar[float] = 10.0

    aggressor: Aggressor
    #: The request for the campaign's runs. They have the first nodes of a job, the aggressor the
    #: following ones.
    job_request: JobRequest
    launch: Callable[..., tuple[str, ...]]  # ``launch_words`` for this system and MPI
    #: arguments, read: ``kernels.bench.aggressor_arguments`` for this aggressor, and
    #: ``kernels.bench.read_traffic``.
    arguments: Callable[..., Sequence[str]]
    sign: str  # text that it prints as soon as it sends
    read: Callable[[Path], Mapping[str, float]]

    def command(self, output: Path, run_id: str, limit_s: float) -> Command:
        """Returns the command of the aggressor for a run.

        Args:
            output: file for what it prints; its other files are beside that one.
            limit_s: seconds that the run may take.
        """
        # The program's own limit is longer than any run, and ends it if nothing else does.
        longest_s = limit_s + _BEGINS_S + 2 * _ENDS_S
        stop_file = Path(f"{output}.stop")
        program = self.arguments(
            _records_of(output), run_id, longest_s=longest_s, stop_file=stop_file
        )
        words = self.launch(self._own_request(), program, first_node=self.job_request.nodes)
        return Command(words, self.sign, str(stop_file), _BEGINS_S)

    def joined(self, step: Step, run_id: str) -> Step:
        """Returns the step with the aggressor beside it."""
        output = output_beside_step(step.output)
        return replace(step, beside=self.command(output, run_id, step.time_limit_s))

    def _own_request(self) -> JobRequest:
        """Returns the request for its nodes, without the runs' binding if its ranks differ."""
        ranks = self.aggressor.ranks_per_node
        alike = ranks == self.job_request.ranks_per_node
        return replace(
            self.job_request,
            nodes=self.aggressor.nodes,
            ranks_per_node=ranks,
            cpu_bind=self.job_request.cpu_bind if alike else "",
            gpu_bind=self.job_request.gpu_bind if alike else "",
        )

    def checked(self, result: RunResult, output: Path) -> RunResult:
        """Returns the result of a finished run, with the traffic beside it in its header.

        A run that had no traffic beside it, or not to its end, isn't comparable to the others: it
        becomes INTERRUPTED, whatever it measured.
        """
        there = read_presence(output)
        if there.was_there:
            traffic = self.read(_records_of(output))
            if result.header is None or not traffic:
                return result
            return replace(result, header={**result.header, "beside": traffic})
        if result.outcome.is_lost:
            return result
        return replace(
            result,
            outcome=Outcome.INTERRUPTED,
            detail=f"not beside its aggressor: {there.why}",
            output_tail=read_tail(output),
        )


def read_presence(output: Path) -> Presence:
    """Returns whether an aggressor with this output was there for its whole run."""
    return Presence.read(read_tail(output))


def request_with_aggressor(job_request: JobRequest, aggressor: Aggressor | None) -> JobRequest:
    """Returns the request for a job that has room for the runs and the aggressor."""
    if aggressor is None:
        return job_request
    return replace(
        job_request,
        nodes=job_request.nodes + aggressor.nodes,
        ranks_per_node=max(job_request.ranks_per_node, aggressor.ranks_per_node),
    )
