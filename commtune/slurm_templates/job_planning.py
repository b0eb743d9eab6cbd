"""From a request, and the description of a system where there is one, to a job's options."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from commtune.documents.nearest import quote_value, suggest
from commtune.slurm_templates.job_request import InvalidRequest, JobRequest
from commtune.slurm_templates.rendering import Job
from commtune.systems.schema import Partition, Qos, Slurm, System


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
    """The job that a request is on a system; without a description the request alone decides.

    Args:
        time_s: time limit, seconds.
        exclude: names of nodes to leave out, beside the request's.
        libraries: the libraries that are measured, as search spaces call them; what the
            description has for other libraries is left out.
        environment: variables of the whole job, beside the pinned ones of the description.

    Raises:
        InvalidRequest: as for ``check_request``.
    """
    check_request(system, request, time_s)
    shared = {
        "name": name,
        "nodes": request.nodes,
        "ranks_per_node": request.ranks_per_node,
        "time_s": time_s,
        "output": output,
        "comment": comment,
        "warn_s": warn_s,
        "account": request.account,
        "exclude": ",".join(sorted({*request.exclude, *exclude})),
        "cpus_per_rank": request.cpus_per_rank,
        "switches": 0 if request.placement == "any" else 1,
        "before": request.before,
        "after": request.after,
        "environment": {**pinned_variables(system, libraries), **(environment or {})},
    }
    own = _on_system(system, request, libraries) if system else _alone(request)
    return Job(**{**shared, **own})  # type: ignore[arg-type]  # fields by name


def check_request(system: System | None, request: JobRequest, time_s: float | None = None) -> None:
    """Refuses what a system is known not to allow.

    Args:
        time_s: time limit of a job, seconds; ``None`` where it isn't known yet.

    Raises:
        InvalidRequest: no account where one is required, an unknown partition or quality of
            service, more nodes or time than it allows, or a placement that Slurm can't give; the
            hint names what would do.
    """
    _check_placement(system, request)
    if system is None:
        return
    slurm = system.jobs
    if slurm.account == "required" and not request.account:
        raise InvalidRequest(
            "account",
            f"{system.name} takes no job without an account",
            hint="name the account, in a campaign file by `slurm: {account: NAME}`",
        )
    partition, qos = _queue(slurm, request)
    _check_limits(slurm, partition, qos, request.nodes, time_s or 0.0)


def pinned_variables(system: System | None, libraries: Collection[str]) -> dict[str, str]:
    """The variables that a description pins in runs of these libraries."""
    found = system.pinned if system else {}
    return {name: pin.value for name, pin in found.items() if applies_to(pin.library, libraries)}


def applies_to(library: str, libraries: Collection[str]) -> bool:
    """Whether an entry for this library, or for all, is for runs of these libraries."""
    return not library or library in libraries


def _alone(request: JobRequest) -> dict[str, object]:
    return {
        "partition": request.partition,
        "qos": request.qos,
        "constraint": request.constraint,
        "reservation": request.reservation,
        "memory": request.memory,
        "gres": request.gres,
        "gpus_per_node": request.gpus_per_node,
        "exclusive": request.exclusive is not False,
        "modules": request.modules,
    }


def _queue(slurm: Slurm, request: JobRequest) -> tuple[str, str]:
    """The partition and the quality of service that a job goes to."""
    partition = request.partition or slurm.partition
    return partition, request.qos or (slurm.qos if partition == slurm.partition else "")


def _on_system(
    system: System, request: JobRequest, libraries: Collection[str]
) -> dict[str, object]:
    slurm = system.jobs
    partition, qos = _queue(slurm, request)
    gpus = system.gpus.count if system.gpus else 0
    asked = bool(request.gres or request.gpus_per_node)
    modules = tuple(m.name for m in system.modules if applies_to(m.library, libraries))
    return {
        "partition": partition,
        "qos": qos,
        "constraint": request.constraint or slurm.constraint,
        "reservation": request.reservation or slurm.reservation,
        "memory": request.memory or slurm.memory,
        "gres": f"gpu:{gpus}" if slurm.gpus == "gres" and not asked else request.gres,
        "gpus_per_node": (
            gpus if slurm.gpus == "gpus-per-node" and not asked else request.gpus_per_node
        ),
        "exclusive": slurm.exclusive if request.exclusive is None else request.exclusive,
        "modules": request.modules or modules,
    }


def _check_placement(system: System | None, request: JobRequest) -> None:
    if request.placement == "any":
        return
    counted = system.jobs.switches if system else "switch"
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
            hint=suggest(partition, slurm.partitions),
        )
    if qos and qos not in known.qos:
        raise InvalidRequest(
            "qos",
            f"no quality of service {quote_value(qos)} in partition {partition}",
            hint=suggest(qos, known.qos) or "the partition has none but the default",
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
    """The field of the request that is beyond limits, and in which way."""
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
