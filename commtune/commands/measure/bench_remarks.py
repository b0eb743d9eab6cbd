"""What must be said of a run of the benchmark beside its numbers, a line each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from commtune import formatting as text
from commtune.campaign.workload import ELEMENT_BYTES, rounded_words
from commtune.model import (
    Backend,
    Direction,
    Measurement,
    MpiInstallation,
    Operation,
    RunRequest,
    RunResult,
    Workload,
)
from commtune.model.patterns import ACTIVE
from commtune.model.run_costs import RunCost, named_parts
from commtune.model.workload import STREAM_WINDOW
from commtune.spaces.catalogue.checking import (
    EnvironmentSetting,
    check_settings,
    misspelled_values,
)

#: A median so many times the minimum: most samples waited for something that others did not.
_FAR = 5.0
_MOST_SHOWN = 4


def run_remarks(workload: Workload, result: RunResult) -> list[str]:
    """Of a run that came to its end: other sizes than asked for, and who disturbed it."""
    said = [rounded_sizes(workload, result)]
    if result.oversubscribed:
        said.append(
            "more ranks than cores: these times say nothing of a machine with enough cores"
        )
    else:
        said.append(disturbance(workload, result))
    if result.detail:
        said.append(f"{result.detail}: these times may not come back")
    return [line for line in said if line]


def settings_remarks(request: RunRequest, mpi: MpiInstallation, result: RunResult) -> list[str]:
    """What the catalogue says of the settings of a run, as ``commtune doctor`` does."""
    settings = [EnvironmentSetting(name, value) for name, value in request.configuration.items()]
    found = {**_versions(result.header or {}), mpi.flavour.library: mpi.version}
    every = [*check_settings(settings, found), *misspelled_values(settings, found)]
    return list({remark.key: f"-x: {remark.what}" for remark in every}.values())


def _versions(header: Mapping[str, Any]) -> dict[str, str]:
    versions, library = header.get("versions") or {}, header.get("library")
    name, _, version = str((library or {}).get("name") or "").partition(" ")
    return {**versions, **({name.lower(): version} if version else {})}


def all_measured(result: RunResult) -> list[Measurement]:
    """All that was measured: of whole operations, of parts and of pairs."""
    return [*result.measurements, *(piece.measurement for piece in result.pieces)]


def rounded_sizes(workload: Workload, result: RunResult) -> str:
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
    shown = ", ".join(odd[:_MOST_SHOWN]) + (", ..." if len(odd) > _MOST_SHOWN else "")
    element = ELEMENT_BYTES[workload.dtype]
    return (
        f"moved: {shown}; every message has whole elements of {workload.dtype} ({element} bytes), "
        "one at least. Bandwidths are of what was moved"
    )


def _counted(workload: Workload) -> int | None:
    """How many times its size an operation's bandwidth counts; ``None`` where files say it."""
    operation, shape = workload.operation, workload.shape
    if operation is Operation.MATRIX or operation.is_own:
        return None
    if operation in ACTIVE:
        return shape.active * (1 if shape.direction == Direction.OUTBOUND else 2)
    if operation is Operation.STREAM:
        return workload.window or STREAM_WINDOW
    return workload.ranks - 1 if operation in (Operation.INCAST, Operation.ONE_TO_MANY) else 1


def disturbance(workload: Workload, result: RunResult) -> str:
    """That ranks waited for their cores, though each has one; empty where nothing shows it."""
    found = all_measured(result)
    signs = [*_missed(workload, result, found), *_far(found)]
    if not signs:
        return ""
    return f"other load disturbs these times: {'; '.join(signs)}"


def _missed(workload: Workload, result: RunResult, found: Sequence[Measurement]) -> Iterator[str]:
    """Where the two ranks of the canary missed each other."""
    without = sum(m.canary_s is None for m in found)
    if without and _has_canary(workload, result.header or {}):
        yield (
            f"two neighbours did not run at the same time before {without} of "
            f"{len(found)} measurements"
        )


def _has_canary(workload: Workload, header: Mapping[str, Any]) -> bool:
    """Whether a cache line goes from rank 0 to a neighbour: not beside GPUs, nor in Python."""
    ranks = header.get("rank_info") or []
    beside = sum(rank.get("node") == ranks[0].get("node") for rank in ranks)
    return workload.backend == Backend.MPI_HOST and beside > 1


def _far(found: Sequence[Measurement]) -> Iterator[str]:
    """The measurement whose median is farthest above its minimum, if it is far."""
    worst = max(found, key=lambda m: m.median_s / m.min_s, default=None)
    if worst is not None and worst.median_s > _FAR * worst.min_s:
        times = worst.median_s / worst.min_s
        yield f"at {text.format_size(worst.bytes)} the median is {times:.0f} times the minimum"


def cost_words(cost: RunCost) -> str:
    """``0.52 s: launch 0.31 s, MPI_Init ...``."""
    return f"the run took {text.format_duration(cost.wall_s)}: " + ", ".join(
        f"{name} {text.format_duration(max(0.0, seconds))}" for name, seconds in named_parts(cost)
    )
