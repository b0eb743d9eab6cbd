"""From a system description to a job's options and a launch command."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from commtune.errors import UserError
from commtune.nearest import quoted, suggestion
from commtune.slurm_templates.quoting import NO_CODE, Code, variable, word
from commtune.slurm_templates.rendering import Job
from commtune.systems.schema import Partition, PerRank, Qos, Slurm, System

_LOCAL_RANK = "{local_rank}"


@dataclass(frozen=True)
class Request:
    """What is asked of a system for one job; empty where the description decides.

    Attributes:
        time_s: time limit, seconds.
        libraries: the libraries that are measured, as search spaces call them; what the
            description has for other libraries is left out.
        before, after: lines of shell that a person wrote.
    """

    name: str
    nodes: int
    ranks_per_node: int
    time_s: float
    output: str
    account: str = ""
    partition: str = ""
    qos: str = ""
    reservation: str = ""
    nodelist: str = ""
    exclude: str = ""
    comment: str = ""
    warn_s: int = 0
    libraries: frozenset[str] = frozenset()
    before: Code = NO_CODE
    after: Code = NO_CODE


def job_for(system: System, request: Request) -> Job:
    """The job that a request is on a system.

    Raises:
        UserError: no account where one is required, an unknown partition or quality of service,
            or more nodes or time than it allows; the hint names what would do.
    """
    slurm = system.slurm
    if slurm.account == "required" and not request.account:
        raise UserError(f"{system.name} takes no job without an account", hint="name the account")
    partition = request.partition or slurm.partition
    qos = request.qos or (slurm.qos if partition == slurm.partition else "")
    _check_limits(slurm, partition, qos, request)
    gpus = system.gpus.count if system.gpus else 0
    return Job(
        name=request.name,
        nodes=request.nodes,
        ranks_per_node=request.ranks_per_node,
        time_s=request.time_s,
        output=request.output,
        account=request.account,
        partition=partition,
        qos=qos,
        constraint=slurm.constraint,
        reservation=request.reservation or slurm.reservation,
        memory=slurm.memory,
        gres=f"gpu:{gpus}" if slurm.gpus == "gres" else "",
        nodelist=request.nodelist,
        exclude=request.exclude,
        comment=request.comment,
        gpus_per_node=gpus if slurm.gpus == "gpus-per-node" else 0,
        exclusive=slurm.exclusive,
        warn_s=request.warn_s,
        modules=tuple(m.name for m in system.modules if _meant(m.library, request.libraries)),
        environment={
            name: pinned.value
            for name, pinned in system.pinned.items()
            if _meant(pinned.library, request.libraries)
        },
        before=request.before,
        after=request.after,
    )


def launch(
    system: System,
    nodes: int,
    ranks_per_node: int,
    command: tuple[str, ...],
    libraries: Collection[str] = (),
) -> tuple[str, ...]:
    """The command that starts a program's ranks with srun as the description says.

    CPU binding is left to Slurm where the description's is for another number of ranks a node.

    Raises:
        UserError: the description's launcher isn't srun, which alone is known here.
    """
    launcher, binding = system.launcher, system.binding
    if launcher.command != "srun":
        raise UserError(
            f"ranks on {system.name} are started by {launcher.command}, which can't be used yet",
            hint="write srun into a description of your own, if the system has it",
        )
    words = ["srun", f"--nodes={nodes}", f"--ntasks-per-node={ranks_per_node}"]
    words += [f"--mpi={launcher.mpi}"] if launcher.mpi else []
    if binding and binding.ranks == ranks_per_node:
        words.append(f"--cpu-bind={binding.cpu}")
    words += ["--export=ALL", *launcher.options]
    own = [b for b in (binding.per_rank if binding else []) if _meant(b.library, libraries)]
    return (*words, *_rank_wrapper(own), *command)


def _rank_wrapper(bindings: list[PerRank]) -> tuple[str, ...]:
    """A small shell around each rank that sets what differs between the ranks of a node."""
    if not bindings:
        return ()
    lines = [f"export {variable(b.variable)}={_with_local_rank(b.value)}" for b in bindings]
    return ("bash", "-c", "; ".join([*lines, 'exec -- "$@"']), "rank")


def _with_local_rank(value: str) -> str:
    pieces = re.split(f"({re.escape(_LOCAL_RANK)})", value)
    return "".join('"$SLURM_LOCALID"' if p == _LOCAL_RANK else word(p) for p in pieces if p)


def _meant(library: str, libraries: Collection[str]) -> bool:
    return not library or library in libraries


def _check_limits(slurm: Slurm, partition: str, qos: str, request: Request) -> None:
    known = slurm.partitions.get(partition)
    if known is None:
        raise UserError(
            f"no partition {quoted(partition)} in the description",
            hint=suggestion(partition, slurm.partitions),
        )
    if qos and qos not in known.qos:
        raise UserError(
            f"no quality of service {quoted(qos)} in partition {partition}",
            hint=suggestion(qos, known.qos) or "the partition has none but the default",
        )
    limits = known.qos[qos] if qos else known
    if problem := _beyond(limits, request):
        raise UserError(
            f"{qos or partition}: {problem}", hint=f"would do: {_would_do(slurm, request)}"
        )


def _beyond(limits: Partition | Qos, request: Request) -> str:
    least = limits.least_nodes if isinstance(limits, Qos) else None
    if limits.most_nodes is not None and request.nodes > limits.most_nodes:
        return f"{request.nodes} nodes, but at most {limits.most_nodes} are allowed"
    if least is not None and request.nodes < least:
        return f"{request.nodes} nodes, but at least {least} are asked for"
    if limits.longest is not None and request.time_s > limits.longest:
        return f"{request.time_s:g} s, but at most {limits.longest:g} s are allowed"
    return ""


def _would_do(slurm: Slurm, request: Request) -> str:
    found = []
    for name, partition in slurm.partitions.items():
        found += [name] if not _beyond(partition, request) else []
        fitting = [qos for qos, limits in partition.qos.items() if not _beyond(limits, request)]
        found += [f"{name} with {qos}" for qos in fitting]
    return ", ".join(found) or "fewer nodes or less time"
