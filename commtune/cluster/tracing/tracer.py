"""Prepares untimed runs with tracing, and reads from them what the library did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from commtune.cluster.tracing.library import TracedLibrary, TraceEvidence, judge_settings
from commtune.cluster.tracing.mpich import MPICH
from commtune.cluster.tracing.nccl import NCCL
from commtune.cluster.tracing.openmpi import OPENMPI
from commtune.documents.packed_files import record_file
from commtune.formatting import format_size
from commtune.model import Backend, Execution, MpiFlavour, RunRequest
from commtune.tuner.effective.settings import judge_execution
from commtune.tuner.ports import Program, Records

#: The control variables of Intel MPI and Cray MPICH are not named like environment variables, so
#: that traces of these have fingerprints only.
_LIBRARIES = {MpiFlavour.MPICH: MPICH, MpiFlavour.OPENMPI: OPENMPI}


def _library_of(flavour: MpiFlavour, backend: str) -> TracedLibrary:
    """Returns how to trace the library of a backend: an MPI, or NCCL or RCCL."""
    return NCCL if backend == Backend.XCCL else _LIBRARIES.get(flavour, TracedLibrary())


@runtime_checkable
class _TracingProgram(Program, Protocol):
    """A benchmark program that can also make traced runs."""

    def trace_arguments(
        self, request: RunRequest, records: Path, controls: Sequence[str]
    ) -> list[str]:
        """Returns a rank's command line; ``controls`` are names of MPI_T control variables."""


@dataclass(frozen=True)
class Tracer:
    program: Program
    flavour: MpiFlavour
    environment: Mapping[str, str]  # variables of every run
    watched: Sequence[str]  # names of all variables of the space
    #: Folder of the traces' record files, apart from those of timed runs.
    folder: Path

    @property
    def can_trace(self) -> bool:
        return isinstance(self.program, _TracingProgram)

    def prepare(self, request: RunRequest) -> tuple[list[str], dict[str, str]]:
        """Returns the command line of a rank, and the variables that make the library log."""
        assert isinstance(self.program, _TracingProgram)
        library = _library_of(self.flavour, request.workload.backend)
        names = self._names(request)
        own = [control for name in names if (control := library.control_of(name))]
        controls = list(dict.fromkeys([*own, *library.further]))
        # Leave out those that the space or the environment sets.
        taken = {*names, *self.environment}
        taken |= library.too_risky({**self.environment, **request.configuration})
        logging = {n: value for n, value in library.diagnosing.items() if n not in taken}
        return self.program.trace_arguments(request, self._records(request), controls), logging

    def read(self, request: RunRequest, output: str) -> Execution | None:
        """Returns what the library did; ``None`` if the run's records are incomplete or invalid.

        Args:
            output: of the run.
        """
        found = self.records(request)
        if found.header is None or found.footer is None or found.problems:
            return None
        library = _library_of(self.flavour, request.workload.backend)
        evidence = _evidence(library, request, self._names(request), found, output)
        settings, verdict = judge_settings(library, evidence)
        sizes = [format_size(trace.bytes) for trace in found.traces if trace.agree is False]
        differing = [f"ranks got different sums at {', '.join(sizes)}"] if sizes else []
        return judge_execution(
            request.configuration,
            str(request.workload.operation),
            settings,
            fingerprints={t.bytes: t.fingerprint for t in found.traces if t.fingerprint},
            did=verdict.did,
            notes=(*verdict.notes, *differing),
        )

    def records(self, request: RunRequest) -> Records:
        """Reads the record file of a traced run."""
        assert isinstance(self.program, _TracingProgram)
        return self.program.read(self._records(request), request)

    def _names(self, request: RunRequest) -> tuple[str, ...]:
        return tuple(sorted({*self.watched, *request.configuration}))

    def _records(self, request: RunRequest) -> Path:
        return record_file(self.folder, request.run_id)


def _evidence(
    library: TracedLibrary,
    request: RunRequest,
    names: tuple[str, ...],
    found: Records,
    output: str,
) -> TraceEvidence:
    header = found.header or {}
    ranks = header["rank_info"]
    held: list[dict[str, Any]] = [_by_variable(library, names, rank) for rank in ranks]
    return TraceEvidence(
        configuration=request.configuration,
        operation=request.workload.operation,
        names=names,
        seen=tuple(rank["environment"] for rank in ranks),
        controls=held[0] if held else {},
        differing=_differing_controls(held),
        output=output,
        operations={trace.bytes: trace.operations for trace in found.traces},
        files=tuple(Path(file) for file in header.get("libraries", ())),
    )


def _by_variable(
    library: TracedLibrary, names: Sequence[str], rank: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns a rank's control variables by environment variable, further ones by their names."""
    controls = rank.get("controls", {})
    owners = {name: library.control_of(name) or "" for name in names}
    owners |= {control: control for control in library.further}
    return {name: controls[owner] for name, owner in owners.items() if owner in controls}


def _differing_controls(ranks: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    first, *others = [dict(rank) for rank in ranks] or [{}]
    return frozenset(name for name in first for other in others if other.get(name) != first[name])
