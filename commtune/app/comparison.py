"""Measuring any two configurations against each other; nothing of it is stored."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from commtune.app.operands import Operand, operand_notes, read_operand, with_pins
from commtune.app.stored import checked_shape, on_slurm_again, timing_of, workload_of
from commtune.campaign.workload import DEFAULT_SIZES, check_elements, rounded_words
from commtune.db.records import CampaignDescription
from commtune.documents.quantities import QuantityError
from commtune.errors import EnvironmentFault, InvalidKey, UserError
from commtune.formatting import format_ranks
from commtune.model import Backend, Configuration, MpiInstallation, Operation, Timing, Workload
from commtune.tuner.ports import Benchmark, Reporter
from commtune.tuner.verification.pairwise import (
    Arm,
    Difference,
    PairwiseComparison,
    PairwiseResult,
)
from commtune.wiring import benchmark_setup, slurm_submission, space_fitting
from commtune.wiring.gpu_toolchains import libraries_of
from commtune.wiring.slurm_campaign import SlurmCampaign
from commtune.wording import format_outcomes

__all__ = [
    "Arm",
    "ComparisonResult",
    "Difference",
    "PairwiseResult",
    "WorkloadChanges",
    "_merge_workload",
    "compare",
    "emulated_nodes",
]


@dataclass(frozen=True)
class WorkloadChanges:
    """What is to be measured otherwise than a profile's campaign does; ``None``: as it does."""

    operation: Operation | None = None
    ranks: int | None = None
    sizes: tuple[int, ...] | None = None
    backend: Backend | None = None
    emulate_nodes: int | None = None


@dataclass(frozen=True)
class ComparisonResult:
    """What came of a comparison.

    Attributes:
        names: the two as they were written.
        library: what the runs communicated by, as ``NCCL 2.28.9`` or ``MPICH 5.0.2``.
        pairs: the evidence.
    """

    names: Mapping[Arm, str]
    configurations: Mapping[Arm, Configuration]
    workload: Workload
    mpi: MpiInstallation
    library: str
    pairs: PairwiseResult

    def check_worked(self) -> None:
        """Makes sure that both worked at least once.

        Raises:
            EnvironmentFault: one never did; with the end of its output.
        """
        is_own = self.workload.own is not None
        alone = ", with these variables set" if is_own else ": commtune bench -x NAME=VALUE"
        for arm in Arm:
            failures = self.pairs.failures[arm]
            failed = sum(failures.values())
            if failed and failed == self.pairs.blocks:
                detail, tail = self.pairs.details[arm]
                raise EnvironmentFault(
                    f"{arm} ({self.names[arm]}) failed in all of {failed} runs: "
                    f"{format_outcomes(failures)}: {detail}",
                    hint=tail or f"try it by itself{alone}",
                )


@dataclass(frozen=True)
class _Task:
    """What is to be compared, and how; ``on`` where the profile is of a campaign on Slurm."""

    configurations: Mapping[Arm, Configuration]
    workload: Workload
    timing: Timing
    mpi: MpiInstallation
    on: SlurmCampaign | None


def compare(
    a: str,
    b: str,
    *,
    changes: WorkloadChanges | None = None,
    mpi: str | None = None,
    time_s: float = 30.0,
    db: str | None = None,
    reporter: Reporter,
) -> ComparisonResult:
    """Measures two configurations against each other, in blocks of one run of each.

    Ctrl-C ends it early; what was measured until then is in the result.

    Args:
        a, b: ``default``, a profile, ``NAME=VALUE NAME=VALUE``, ``@FILE`` or ``baseline:NAME``.
        changes: to the workload of the profile, or of an allreduce by two ranks.
        mpi: in the place of the profile's, or of the one that is found.
        time_s: wall seconds of the runs.
        db: database file or URL; the user's own by default.

    Raises:
        UserError, UnknownName: what is asked for is nothing known, or can't be measured here.
        EnvironmentFault: the benchmark can't be started at all, or run after run was lost.
    """
    operands = {Arm.A: read_operand(a, db), Arm.B: read_operand(b, db)}
    stored = next((one.stored for one in operands.values() if one.stored), None)
    on = on_slurm_again(stored, mpi, reporter.say) if stored else None
    named = mpi or (stored.settings.get("mpi") if stored else None) or "auto"
    workload = _merge_workload(changes or WorkloadChanges(), stored)
    task = _Task(
        configurations=with_pins(operands),
        workload=workload,
        timing=timing_of(stored) if stored else Timing(),
        mpi=on.mpi if on else benchmark_setup.find_named_mpi(named, workload),
        on=on,
    )
    _refuse_outside(task, ["commtune", "compare", a, b])
    for note in _notes(operands, task):
        reporter.say(f"note: {note}")
    with _prepare_benchmark(task) as benchmark:
        found = PairwiseComparison(
            benchmark, task.configurations, workload, task.timing, time_s, reporter
        ).run()
    return ComparisonResult(
        names={arm: one.written for arm, one in operands.items()},
        configurations=task.configurations,
        workload=workload,
        mpi=task.mpi,
        library=space_fitting.library_words(workload.backend, task.mpi),
        pairs=found,
    )


def _notes(operands: Mapping[Arm, Operand], task: _Task) -> Iterator[str]:
    """What is to be said before: of sizes that are moved as others, of settings, of sets."""
    if rounded := rounded_words(task.workload):
        yield rounded
    libraries = libraries_of(task.workload.backend, task.mpi)
    for one in operands.values():
        yield from operand_notes(one, {task.mpi.flavour.library: task.mpi.version}, libraries)


def _merge_workload(changes: WorkloadChanges, stored: CampaignDescription | None) -> Workload:
    """What both are to do.

    Args:
        stored: the profile's campaign, if one of the two is a profile.

    Raises:
        InvalidKey: changes that don't go together, or with the rest.
    """
    workload = workload_of(stored) if stored else Workload(Operation.ALLREDUCE, DEFAULT_SIZES)
    given = {
        "operation": changes.operation,
        "sizes": changes.sizes,
        "ranks": changes.ranks,
        "backend": changes.backend,
    }
    before = workload.backend
    known: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    workload = replace(workload, **known)
    nodes = changes.emulate_nodes
    if nodes is None:
        # A profile's emulated nodes stay with its backend.
        nodes = workload.emulated_nodes if workload.backend == before else 0
    nodes = emulated_nodes(nodes, workload.ranks, Backend(workload.backend))
    workload = replace(workload, emulated_nodes=nodes)
    try:
        check_elements(workload.sizes, workload.dtype, Backend(workload.backend))
    except QuantityError as error:
        raise InvalidKey("sizes", error.message, error.hint) from error
    workload = checked_shape(workload, stored)
    # One process of a user's own program may well be what is to be compared.
    least = 2 if workload.own is None else 1
    if workload.ranks < least:
        raise InvalidKey("ranks", f"{workload.ranks} is out of range", f"from {least}")
    return workload


def emulated_nodes(nodes: int, ranks: int, backend: Backend) -> int:
    """The number of nodes that one machine is to be; 0 for none.

    Raises:
        InvalidKey: the backend can't, or ranks can't be shared evenly.
    """
    if nodes and backend is not Backend.XCCL:
        raise InvalidKey("emulate_nodes", "only the backend xccl can do that", "leave it out")
    if nodes and (nodes < 2 or ranks % nodes):
        raise InvalidKey(
            "emulate_nodes",
            f"{ranks} ranks can't be shared evenly by {nodes} nodes",
            "give each of two nodes or more as many ranks as the others",
        )
    return nodes


def _refuse_outside(task: _Task, command: list[str]) -> None:
    """Ranks of a campaign on Slurm are started in an allocation: here, they would be elsewhere."""
    workload, on = task.workload, task.on
    if on is None:
        return
    if workload.ranks != on.request.nodes * on.request.ranks_per_node:
        raise InvalidKey(
            "ranks",
            f"{workload.ranks}, and the campaign on Slurm is about "
            f"{format_ranks(on.request.nodes * on.request.ranks_per_node, on.request.nodes)}",
            "leave it out",
        )
    if on.allocation is None:
        asked = [f"--nodes={on.request.nodes}", f"--ntasks-per-node={on.request.ranks_per_node}"]
        asked += [f"--account={on.request.account}"] if on.request.account else []
        asked += [f"--partition={on.request.partition}"] if on.request.partition else []
        raise UserError(
            "the profile was measured on Slurm, and this is no allocation: ranks would be started "
            "on this node alone",
            hint=f"compare inside of one: {shlex.join(['salloc', *asked, *command])}",
        )


@contextmanager
def _prepare_benchmark(task: _Task) -> Iterator[Benchmark]:
    """What makes runs; their records are gone afterwards."""
    names = tuple(sorted({name for one in task.configurations.values() for name in one}))
    on = task.on
    place = on.folder.parent if on else None  # which all nodes see
    if place:
        place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="commtune-", dir=place) as folder:
        if on is None:
            yield benchmark_setup.prepare_benchmark(
                task.mpi, {}, names, task.workload, Path(folder)
            )
        else:
            yield slurm_submission.steps_on_slurm(on, names, Path(folder))
