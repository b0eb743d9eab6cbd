"""What ``commtune compare`` is to measure: flags, on top of what a profile was measured by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from commtune.campaign.workload import DEFAULT_SIZES, check_elements, parse_sizes
from commtune.commands.flags import emulated_nodes, one_of
from commtune.commands.profiles.stored import checked_shape, workload_of
from commtune.db.queries.description import CampaignDescription
from commtune.documents.quantities import QuantityError
from commtune.errors import UserError
from commtune.model import Backend, Operation, Workload


@dataclass(frozen=True)
class Flags:
    """What the command line may say; ``None`` leaves it to the profile, or to the default."""

    op: str | None = None
    ranks: int | None = None
    sizes: str | None = None
    mpi: str | None = None
    time: str = "30s"
    backend: str | None = None
    emulate_nodes: int | None = None


def workload_asked(flags: Flags, stored: CampaignDescription | None) -> Workload:
    """What both sides are to do.

    Raises:
        UserError: a flag that names nothing known, or that doesn't go with the others.
    """
    workload = workload_of(stored) if stored else Workload(Operation.ALLREDUCE, DEFAULT_SIZES)
    changes: dict[str, Any] = {}
    if flags.op is not None:
        changes["operation"] = Operation(one_of("--op", flags.op, list(Operation)))
    if flags.sizes is not None:
        changes["sizes"] = _sizes(flags.sizes)
    if flags.ranks is not None:
        changes["ranks"] = flags.ranks
    changes |= _machinery(flags, workload)
    workload = replace(workload, **changes)
    _check_elements(workload)
    workload = checked_shape(workload, stored)
    if workload.ranks < 2:
        raise UserError(f"--ranks: {workload.ranks} is out of range", hint="from 2")
    return workload


def _machinery(flags: Flags, workload: Workload) -> dict[str, Any]:
    """By what messages are moved; a profile's emulated nodes stay with its backend."""
    changes: dict[str, Any] = {}
    backend = Backend(workload.backend)
    if flags.backend is not None:
        native = [known for known in Backend if known is not Backend.COMMAND]
        backend = Backend(one_of("--backend", flags.backend, native))
        changes["backend"] = backend
    nodes = flags.emulate_nodes
    if nodes is None:
        nodes = workload.emulated_nodes if backend == workload.backend else 0
    ranks = flags.ranks if flags.ranks is not None else workload.ranks
    changes["emulated_nodes"] = emulated_nodes(nodes, ranks, backend)
    return changes


def _check_elements(workload: Workload) -> None:
    try:
        check_elements(workload.sizes, workload.dtype, Backend(workload.backend))
    except QuantityError as error:
        raise UserError(f"--sizes: {error.message}", hint=error.hint) from error


def _sizes(written: str) -> tuple[int, ...]:
    try:
        return parse_sizes(written if ".." in written else written.split(","))
    except QuantityError as error:
        raise UserError(f"--sizes: {error.message}", hint=error.hint) from error
