"""From the records and the output of a traced run to what was executed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from commtune.cluster.tracing.library import (
    TracedLibrary,
    TraceEvidence,
    differing_controls,
    judge_settings,
)
from commtune.formatting import format_size
from commtune.model import Execution, RunRequest
from commtune.tuner.effective.settings import judge_execution
from commtune.tuner.ports import Program, Records


class _SizeTrace(Protocol):
    """One size of a traced run."""

    @property
    def bytes(self) -> int: ...
    @property
    def operations(self) -> int: ...
    @property
    def digest(self) -> str | None: ...
    @property
    def agree(self) -> bool | None: ...


class _TraceRecords(Records, Protocol):
    """What the record file of a traced run holds."""

    @property
    def traces(self) -> Sequence[_SizeTrace]: ...


@runtime_checkable
class TracingProgram(Program, Protocol):
    """A benchmark program that can also be run untimed, to see what the library does."""

    def trace_arguments(
        self, request: RunRequest, records: Path, controls: Sequence[str]
    ) -> list[str]:
        """The command line of one rank; ``controls`` are names of MPI_T control variables."""
        ...

    def read(self, records: Path, request: RunRequest) -> _TraceRecords:
        """Reads a record file."""
        ...


def names_of(request: RunRequest, watched: Sequence[str]) -> tuple[str, ...]:
    """All variables of interest."""
    return tuple(sorted({*watched, *request.configuration}))


def controls_for(library: TracedLibrary, names: Sequence[str]) -> list[str]:
    """The control variables to ask for."""
    own = [control for name in names if (control := library.control_of(name))]
    return list(dict.fromkeys([*own, *library.further]))


def logging_environment(
    library: TracedLibrary, names: Sequence[str], environment: Mapping[str, str]
) -> dict[str, str]:
    """The variables that make a library talk, without those that anybody else sets or searches."""
    taken = {*names, *environment}
    return {name: value for name, value in library.diagnosing.items() if name not in taken}


def execution_of(
    library: TracedLibrary,
    request: RunRequest,
    names: tuple[str, ...],
    found: _TraceRecords,
    output: str,
) -> Execution | None:
    """What the library did; ``None`` where the run was cut short or its records are unsound."""
    if found.header is None or found.footer is None or found.problems:
        return None
    evidence = _evidence(library, request, names, found, found.header, output)
    settings, verdict = judge_settings(library, evidence)
    return judge_execution(
        request.configuration,
        str(request.workload.operation),
        settings,
        fingerprints={t.bytes: t.digest for t in found.traces if t.digest is not None},
        did=verdict.did,
        notes=(*verdict.notes, *_disagreements(found)),
    )


def _evidence(
    library: TracedLibrary,
    request: RunRequest,
    names: tuple[str, ...],
    found: _TraceRecords,
    header: Mapping[str, Any],
    output: str,
) -> TraceEvidence:
    ranks = header["rank_info"]
    held: list[dict[str, Any]] = [_by_variable(library, names, rank) for rank in ranks]
    return TraceEvidence(
        configuration=request.configuration,
        operation=request.workload.operation,
        names=names,
        seen=tuple(rank["environment"] for rank in ranks),
        controls=held[0] if held else {},
        differing=differing_controls(held),
        output=output,
        operations={trace.bytes: trace.operations for trace in found.traces},
        files=tuple(Path(file) for file in header.get("libraries", ())),
    )


def _by_variable(
    library: TracedLibrary, names: Sequence[str], rank: Mapping[str, Any]
) -> dict[str, Any]:
    """Control variables of a rank by the variable that sets them; further ones by their own."""
    controls = rank.get("controls", {})
    owners = {name: library.control_of(name) or "" for name in names}
    owners |= {control: control for control in library.further}
    return {name: controls[owner] for name, owner in owners.items() if owner in controls}


def _disagreements(found: _TraceRecords) -> list[str]:
    sizes = [format_size(trace.bytes) for trace in found.traces if trace.agree is False]
    return [f"ranks got different sums at {', '.join(sizes)}"] if sizes else []
