"""An aggressor beside runs: on nodes of its own in the same job, while each of them is timed."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from commtune.model import Aggressor, Outcome, RunResult
from commtune.slurm_templates import BackgroundCommand as Command
from commtune.slurm_templates import JobRequest, Step, launch_words
from commtune.slurm_templates.background_command import Presence, read_presence
from commtune.systems.schema import System

#: Seconds that it may take to begin: srun, the library's start, the first messages.
BEGINS_S = 60
#: Seconds that its end may take: asked by a file, by a signal, killed.
ENDS_S = 20.0
#: What it usually takes of a job beside each run, seconds.
AROUND_A_RUN_S = 10.0
_TAIL_BYTES = 4000


class _Arguments(Protocol):
    """The command line of one rank of the aggressor."""

    def __call__(
        self, records: Path, run_id: str, *, longest_s: float, stop_file: Path
    ) -> Sequence[str]: ...


class _Traffic(Protocol):
    """What an aggressor did, from its records."""

    @property
    def bytes_moved(self) -> int: ...
    @property
    def active_s(self) -> float: ...
    @property
    def gigabits_per_s(self) -> float: ...
    @property
    def gigabits_per_s_between_nodes(self) -> float: ...


class _ReadTraffic(Protocol):
    """Reads the records of an aggressor, whatever their state."""

    def __call__(self, records: Path, /) -> _Traffic: ...


@dataclass(frozen=True)
class AggressorFiles:
    """Where the aggressor beside one run leaves its files.

    Attributes:
        output: what it printed, and how long it was there.
    """

    output: Path

    @classmethod
    def of_step(cls, output: str | Path) -> AggressorFiles:
        """Beside a step of a block's job that prints to this file; see ``Step.beside``."""
        return cls(Path(f"{output}.beside"))

    @classmethod
    def of_run(cls, folder: Path, run_id: str) -> AggressorFiles:
        """Beside a run in an allocation, where records are in this folder."""
        return cls(folder / "beside" / f"{run_id}.out")

    @property
    def records(self) -> Path:
        """What it moved."""
        return self.output.with_name(f"{self.output.name}.jsonl")

    @property
    def stop_file(self) -> Path:
        """Made for its end."""
        return self.output.with_name(f"{self.output.name}.stop")


@dataclass(frozen=True)
class AggressorLaunch:
    """An aggressor beside each run of a campaign.

    Attributes:
        job_request: the campaign's: its nodes are the first ones of a job, the aggressor's follow.
        libraries, mpi_launcher: as for ``slurm_templates.launch``.
        sign: text that it prints as soon as it sends.
    """

    aggressor: Aggressor
    system: System | None
    job_request: JobRequest
    libraries: Collection[str]
    mpi_launcher: str
    arguments: _Arguments
    sign: str
    read: _ReadTraffic

    def command(self, place: AggressorFiles, run_id: str, limit_s: float) -> Command:
        """What starts it beside a run.

        Args:
            limit_s: seconds that the run may take.
        """
        # Longer than all that the run can take; whatever happens, it is not there for ever.
        longest_s = limit_s + BEGINS_S + 2 * ENDS_S
        program = self.arguments(
            place.records, run_id, longest_s=longest_s, stop_file=place.stop_file
        )
        words = launch_words(
            self.system,
            self._own_request(),
            program,
            self.libraries,
            mpi_launcher=self.mpi_launcher,
            first_node=self.job_request.nodes,
        )
        return Command(words, self.sign, str(place.stop_file), BEGINS_S)

    def joined(self, step: Step, run_id: str) -> Step:
        """A step of a block's job with the aggressor beside it."""
        return replace(
            step,
            beside=self.command(AggressorFiles.of_step(step.output), run_id, step.time_limit_s),
        )

    @property
    def whole_request(self) -> JobRequest:
        """What jobs with timed runs ask for."""
        return request_with_aggressor(self.job_request, self.aggressor)

    def _own_request(self) -> JobRequest:
        """Binding is meant for the ranks of the runs, and for as many of them."""
        ranks = self.aggressor.ranks_per_node
        alike = ranks == self.job_request.ranks_per_node
        return replace(
            self.job_request,
            nodes=self.aggressor.nodes,
            ranks_per_node=ranks,
            cpu_bind=self.job_request.cpu_bind if alike else "",
            gpu_bind=self.job_request.gpu_bind if alike else "",
        )

    def presence(self, place: AggressorFiles) -> Presence:
        """Whether it was there as long as a run that is over."""
        return read_presence(_tail(place.output))

    def checked(self, result: RunResult, place: AggressorFiles) -> RunResult:
        """The result of a run that is over, with what was done beside it.

        A run without traffic beside it answers another question: it is lost, whatever it measured.
        """
        there = self.presence(place)
        if there.was_there:
            return self._with_traffic(result, place)
        if result.outcome.is_lost:
            return result
        return replace(
            result,
            outcome=Outcome.INTERRUPTED,
            detail=f"not beside its aggressor: {there.why}",
            output_tail=_tail(place.output),
        )

    def _with_traffic(self, result: RunResult, place: AggressorFiles) -> RunResult:
        traffic = self.read(place.records)
        if result.header is None or not traffic.bytes_moved:
            return result
        return replace(result, header={**result.header, "beside": _aggressor_facts(traffic)})


def _aggressor_facts(traffic: _Traffic) -> dict[str, Any]:
    """What an aggressor did, as plain data that is kept with the run."""
    return {
        "bytes_moved": traffic.bytes_moved,
        "active_s": traffic.active_s,
        "gigabits_per_s": traffic.gigabits_per_s,
        "gigabits_per_s_between_nodes": traffic.gigabits_per_s_between_nodes,
    }


def request_with_aggressor(job_request: JobRequest, aggressor: Aggressor | None) -> JobRequest:
    """What a job asks for whose runs have an aggressor beside them."""
    if aggressor is None:
        return job_request
    return replace(
        job_request,
        nodes=job_request.nodes + aggressor.nodes,
        ranks_per_node=max(job_request.ranks_per_node, aggressor.ranks_per_node),
    )


def _tail(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - _TAIL_BYTES))
            return stream.read().decode(errors="replace")
    except OSError:
        return ""
