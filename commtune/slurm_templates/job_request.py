"""A campaign's request for jobs, and its combination with a description of the system."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from commtune.documents.nearest import quote_value, suggest_nearest
from commtune.errors import UserError
from commtune.model import JobScheduler
from commtune.slurm_templates.rendering import Job, JobOptions
from commtune.systems.schema import Partition, Qos, Slurm, SrunMpi, System

Placement = Literal["any", "same-switch", "same-group"]
Launcher = Literal["", "srun", "mpirun", "mpiexec", "ibrun"]


class InvalidRequest(UserError):
    """A request that this system or this launcher can't fulfil.

    Args:
        key: the field of the request that is at fault.
    """

    def __init__(self, key: str, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.key = key


@dataclass(frozen=True)
class JobRequest(JobOptions):
    """A request to Slurm or PBS; empty fields leave a choice to the system's description or site.

    Modules, if there are any, replace those of the description.
    """

    chunk: str = ""  # of PBS: resources of each node (``ncpus=64:ngpus=4``)
    #: Whether to ask for whole nodes; ``None`` does, unless a description says no.
    exclusive: bool | None = None
    #: nodes, ranks_per_node: numbers for every run.
    nodes: int = 1
    ranks_per_node: int = 1
    #: Starts the ranks; empty for that of the description, or else srun (mpiexec on PBS).
    launcher: Launcher = ""
    mpi: SrunMpi = ""  # value of srun's ``--mpi``
    launcher_options: tuple[str, ...] = ()  # further options of the launcher, one word each
    #: cpu_bind, gpu_bind: values of srun's options of these names.
    cpu_bind: str = ""
    gpu_bind: str = ""
    #: uenv, view: the software environment in which everything runs (CSCS), empty for none.
    uenv: str = ""
    view: str = ""
    container: str = ""  # path of an image in which the program runs; empty for none
    #: The command line before the image.
    container_command: tuple[str, ...] = ("apptainer", "exec")
    #: Words before the program, such as those of numactl.
    prefix: tuple[str, ...] = ()
    templates: Path | None = None  # a folder of the user's own templates
    jobs: int = 4  # the most jobs in flight
    placement: Placement = "any"  # the largest distance of a job's nodes in the network
    exclude: tuple[str, ...] = ()  # names of nodes that no job may have
    #: Length of an allocation, seconds; ``None`` for one that follows from the budget.
    time_s: float | None = None
    #: The longest time limit of a block's job, seconds; ``None`` for what its runs may take.
    block_time_s: float | None = None
    #: Seconds for which all jobs may be pending; ``None`` for no limit.
    pending_time_s: float | None = None
    #: Seconds between the first two polls; the interval grows.
    poll_s: float = 5.0
    #: Seconds that files of a finished job may take to become visible to the controller.
    late_files_s: float = 60.0

    def question(self) -> dict[str, object]:
        """Returns the fields that change results, as plain data; only equal ones compare."""
        asked = {name: _plain(getattr(self, name)) for name in _OF_THE_QUESTION}
        # Left out if empty, so that campaigns from before these keys can be continued.
        later = {name: _plain(getattr(self, name)) for name in _LATER}
        return asked | {name: value for name, value in later.items() if value}


#: Without ``mpi``: a wrong one gives no results, and the user must be able to correct it.
_OF_THE_QUESTION = (
    "partition", "constraint", "gres", "gpus_per_node", "cpus_per_rank", "memory", "exclusive",
    "nodes", "ranks_per_node", "launcher", "launcher_options", "cpu_bind", "gpu_bind", "modules",
    "container", "container_command", "prefix", "before", "placement",
)  # fmt: skip


_LATER = ("network", "uenv", "view", "chunk", "place", "resources")


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, str) else value


def job_for(
    system: System | None,
    request: JobRequest,
    *,
    name: str,
    time_s: float,
    output: str,
    comment: str = "",
    warn_s: int = 0,
    exclude: Collection[str] = (),
    libraries: Collection[str] = frozenset(),
    environment: Mapping[str, str] | None = None,
) -> Job:
    """Returns the job for a request on a system; without a description the request alone counts.

    Args:
        time_s: time limit, seconds.
        exclude: names of nodes to leave out, beside the request's.
        libraries: the libraries that are measured, by their names in search spaces; the
            description's entries for other libraries are left out.
        environment: variables of the whole job, beside the pinned ones of the description.

    Raises:
        InvalidRequest: as for ``check_request``.
    """
    check_request(system, request, time_s)
    if request.scheduler is JobScheduler.PBS and ":" in output:
        raise UserError(
            f"PBS can't print to {output}: qsub takes what is before a ':' for a machine",
            hint="set XDG_DATA_HOME to a folder without ':' in its path",
        )
    known = _on_system(system, request, libraries) if system else request
    return Job(
        name=name,
        time_s=time_s,
        output=output,
        comment=comment,
        warn_s=warn_s,
        exclude=",".join(sorted({*request.exclude, *exclude})),
        exclusive=known.exclusive is not False,
        switches=0 if request.placement == "any" else 1,
        select=_select(request) if request.scheduler is JobScheduler.PBS else "",
        environment={**pinned_variables(system, libraries), **(environment or {})},
        nodes=known.nodes,
        ranks_per_node=known.ranks_per_node,
        **{option: getattr(known, option) for option in JobOptions.__dataclass_fields__},
    )


def _select(request: JobRequest) -> str:
    """Returns the value of ``-l select`` of a PBS job: a chunk for each node.

    Launchers use ``mpiprocs``; ``ncpus`` is added as by default a chunk has one core.
    """
    cores = "" if re.search(r"(^|:)ncpus=", request.chunk) else f"ncpus={request.ranks_per_node}"
    words = (str(request.nodes), request.chunk, cores, f"mpiprocs={request.ranks_per_node}")
    return ":".join(word for word in words if word)


def check_request(system: System | None, request: JobRequest, time_s: float | None = None) -> None:
    """Refuses a request that a system is known not to allow.

    Args:
        time_s: time limit of a job, seconds; ``None`` if it isn't known yet.

    Raises:
        InvalidRequest: a required account is missing, partition or QOS is unknown, nodes or time
            exceed their limits, or Slurm can't provide the placement; the hint says what fits.
    """
    _check_placement(system, request)
    if system is None or system.slurm is None:
        return
    slurm = system.slurm
    if slurm.account == "required" and not request.account:
        raise InvalidRequest(
            "account",
            f"{system.name} takes no job without an account",
            hint="name the account, in a campaign file by `slurm: {account: NAME}`",
        )
    partition, qos = _queue(slurm, request)
    _check_limits(slurm, partition, qos, request.nodes, time_s or 0.0)


def pinned_variables(system: System | None, libraries: Collection[str]) -> dict[str, str]:
    """Returns the variables that a description pins in runs of these libraries."""
    found = system.pinned if system else {}
    return {name: pin.value for name, pin in found.items() if applies_to(pin.library, libraries)}


def applies_to(library: str, libraries: Collection[str]) -> bool:
    """Whether an entry for this library (empty for all) applies to runs of these libraries."""
    return not library or library in libraries


def _queue(slurm: Slurm, request: JobRequest) -> tuple[str, str]:
    """Returns the partition and the QOS of a job."""
    partition = request.partition or slurm.partition
    return partition, request.qos or (slurm.qos if partition == slurm.partition else "")


def _on_system(system: System, request: JobRequest, libraries: Collection[str]) -> JobRequest:
    """Fills empty fields of the request from the description."""
    modules = tuple(m.name for m in system.modules if applies_to(m.library, libraries))
    slurm, gpus = system.slurm, system.gpus.count if system.gpus else 0
    if slurm is None:
        queue = system.scheduler.queue if system.scheduler else ""
        partition = request.partition or queue
        return replace(request, partition=partition, modules=request.modules or modules)
    partition, qos = _queue(slurm, request)
    asked = bool(request.gres or request.gpus_per_node)
    per_node = slurm.gpus == "gpus-per-node" and not asked
    return replace(
        request,
        # A default partition that jobs needn't name is named only if the user does.
        partition=partition if slurm.partitions[partition].named else request.partition,
        qos=qos,
        constraint=request.constraint or slurm.constraint,
        reservation=request.reservation or slurm.reservation,
        memory=request.memory or slurm.memory,
        gres=f"gpu:{gpus}" if slurm.gpus == "gres" and not asked else request.gres,
        gpus_per_node=gpus if per_node else request.gpus_per_node,
        exclusive=slurm.exclusive if request.exclusive is None else request.exclusive,
        modules=request.modules or modules,
    )


def _check_placement(system: System | None, request: JobRequest) -> None:
    if request.placement == "any":
        return
    counted = system.slurm.switches if system and system.slurm else "switch"
    if request.placement == "same-switch" and counted == "group":
        raise InvalidRequest(
            "placement",
            f"Slurm on {system.name if system else 'this system'} knows groups, not switches",
            hint="ask for placement: same-group, or any",
        )
    if request.placement == "same-group" and counted != "group":
        raise InvalidRequest(
            "placement",
            "Slurm can keep a job within one of its switches, but not within a group, unless the "
            "description of the system says that a switch of Slurm's is a whole group",
            hint="ask for placement: same-switch, or any; in a description of your own, write "
            "`switches: group` under `slurm` where it is so",
        )


def _check_limits(slurm: Slurm, partition: str, qos: str, nodes: int, time_s: float) -> None:
    known = slurm.partitions.get(partition)
    if known is None:
        raise InvalidRequest(
            "partition",
            f"no partition {quote_value(partition)} in the description",
            hint=suggest_nearest(partition, slurm.partitions),
        )
    if qos and qos not in known.qos:
        raise InvalidRequest(
            "qos",
            f"no quality of service {quote_value(qos)} in partition {partition}",
            hint=suggest_nearest(qos, known.qos) or "the partition has none but the default",
        )
    limits = known.qos[qos] if qos else known
    if found := _beyond(limits, nodes, time_s):
        key, problem = found
        raise InvalidRequest(
            key,
            f"{qos or partition}: {problem}",
            hint=f"would do: {_would_do(slurm, nodes, time_s)}",
        )


def _beyond(limits: Partition | Qos, nodes: int, time_s: float) -> tuple[str, str] | None:
    """Returns the field of the request that exceeds a limit, with a message; ``None`` for none."""
    least = limits.least_nodes if isinstance(limits, Qos) else None
    if limits.most_nodes is not None and nodes > limits.most_nodes:
        return "nodes", f"{nodes} nodes, but at most {limits.most_nodes} are allowed"
    if least is not None and nodes < least:
        return "nodes", f"{nodes} nodes, but at least {least} are asked for"
    if limits.longest is not None and time_s > limits.longest:
        return "time_s", f"{time_s:g} s, but at most {limits.longest:g} s are allowed"
    return None


def _would_do(slurm: Slurm, nodes: int, time_s: float) -> str:
    found = []
    for name, partition in slurm.partitions.items():
        found += [name] if not _beyond(partition, nodes, time_s) else []
        fitting = [q for q, limits in partition.qos.items() if not _beyond(limits, nodes, time_s)]
        found += [f"{name} with {q}" for q in fitting]
    return ", ".join(found) or "fewer nodes or less time"
