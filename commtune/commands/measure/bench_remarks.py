"""What must be said beside the numbers of a run of the benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commtune import formatting as text
from commtune.app.measure.benchmarking import list_settings_remarks
from commtune.campaign.workload import rounded_words
from commtune.model import (
    Backend,
    Direction,
    MpiInstallation,
    Operation,
    Outcome,
    RunRequest,
    RunResult,
    Workload,
)
from commtune.model.operations import ACTIVE

#: A median so many times the minimum: most samples waited for something that others did not.
_FAR = 5.0


def list_remarks(request: RunRequest, mpi: MpiInstallation, result: RunResult) -> list[str]:
    """What must be said of a run beside its numbers, a line each."""
    said = _settings_remarks(request, mpi, result)
    return said + (_run_remarks(request.workload, result) if result.outcome is Outcome.OK else [])


def _run_remarks(workload: Workload, result: RunResult) -> list[str]:
    """Of a run that came to its end: other sizes than asked for, and who disturbed it."""
    said = [_rounded_sizes(workload, result)]
    if result.oversubscribed:
        said.append(
            "more ranks than cores: these times say nothing about a machine with enough cores"
        )
    else:
        said.append(_disturbance(workload, result))
    if result.detail:
        said.append(f"{result.detail}: these times may not be reproducible")
    return [line for line in said if line]


def _settings_remarks(request: RunRequest, mpi: MpiInstallation, result: RunResult) -> list[str]:
    """What the catalogue says of the settings of a run, as ``commtune doctor`` does."""
    found = {**_versions(result.header or {}), mpi.flavour.library: mpi.version}
    return [f"-x: {remark}" for remark in list_settings_remarks(request.configuration, found)]


def _versions(header: Mapping[str, Any]) -> dict[str, str]:
    versions, library = header.get("versions") or {}, header.get("library")
    name, _, version = str((library or {}).get("name") or "").partition(" ")
    return {**versions, **({name.lower(): version} if version else {})}


def _rounded_sizes(workload: Workload, result: RunResult) -> str:
    """Which sizes were moved as others; empty where none was."""
    factor = _counted(workload)
    pairs = [piece.measurement for piece in result.pieces if piece.pair is not None]
    wholes = [*result.measurements, *pairs]
    if factor is None or any(m.bytes_total is None for m in wholes):
        return rounded_words(workload)
    totals = {m.bytes: m.bytes_total or 0 for m in wholes}
    # Where a sender's share is divided among receivers, it may come to no whole number.
    moved = {size: round(total / factor) for size, total in sorted(totals.items())}
    odd = [
        f"{text.format_size(size)} as {text.format_size(m)}"
        for size, m in moved.items()
        if m != size
    ]
    if not odd:
        return ""
    element = workload.element_bytes
    return (
        f"moved: {text.list_first(odd)}; every message has whole elements of {workload.dtype} "
        f"({element} bytes), one at least. Bandwidths are of what was moved"
    )


def _counted(workload: Workload) -> int | None:
    """How many times its size an operation's bandwidth counts; ``None`` where files say it."""
    operation, shape = workload.operation, workload.shape
    if operation is Operation.MATRIX or operation.is_own:
        return None
    if operation in ACTIVE:
        return shape.active * (1 if shape.direction == Direction.OUTBOUND else 2)
    if operation is Operation.STREAM:
        return workload.stream_window
    return workload.ranks - 1 if operation in (Operation.INCAST, Operation.ONE_TO_MANY) else 1


def _disturbance(workload: Workload, result: RunResult) -> str:
    """That ranks waited for their cores, though each has one; empty where nothing shows it."""
    found = [*result.measurements, *(piece.measurement for piece in result.pieces)]
    signs = []
    without = sum(m.canary_s is None for m in found)
    if without and _has_canary(workload, result.header or {}):
        signs.append(
            f"rank 0 and its neighbour did not run at the same time before {without} of "
            f"{len(found)} measurements"
        )
    worst = max(found, key=lambda m: m.median_s / m.min_s, default=None)
    if worst is not None and worst.median_s > _FAR * worst.min_s:
        times = worst.median_s / worst.min_s
        at = text.format_size(worst.bytes)
        signs.append(f"at {at} the median is {times:.0f} times the minimum")
    return f"background load disturbs these times: {'; '.join(signs)}" if signs else ""


def _has_canary(workload: Workload, header: Mapping[str, Any]) -> bool:
    """Whether a cache line goes from rank 0 to a neighbour: not beside GPUs, nor in Python."""
    ranks = header.get("rank_info") or []
    beside = sum(rank.get("node") == ranks[0].get("node") for rank in ranks)
    return workload.backend == Backend.MPI_HOST and beside > 1
