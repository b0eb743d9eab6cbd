"""From a wish, and the description of a system where there is one, to a job's options."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from commtune.documents.nearest import quote_value, suggest
from commtune.slurm_templates.job_request import InvalidRequest, JobRequest
from commtune.slurm_templates.rendering import Job
from commtune.systems.schema import Partition, Qos, Slurm, System


def job_for(
    system: System | None,
    wish: JobRequest,
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
    """The job that a wish is on a system; without a description the wish alone decides.

    Args:
        time_s: time limit, seconds.
        exclude: names of nodes to leave out, beside the wish's.
        libraries: the libraries that are measured, as search spaces call them; what the
            description has for other libraries is left out.
        environment: variables of the whole job, beside the pinned ones of the description.

    Raises:
        WishRefused: as for ``check_wish``.
    """
    check_request(system, wish, time_s)
    shared = {
        "name": name,
        "nodes": wish.nodes,
        "ranks_per_node": wish.ranks_per_node,
        "time_s": time_s,
        "output": output,
        "comment": comment,
        "warn_s": warn_s,
        "account": wish.account,
        "exclude": ",".join(sorted({*wish.exclude, *exclude})),
        "cpus_per_rank": wish.cpus_per_rank,
        "switches": 0 if wish.placement == "any" else 1,
        "before": wish.before,
        "after": wish.after,
        "environment": {**pinned_variables(system, libraries), **(environment or {})},
    }
    own = _on_system(system, wish, libraries) if system else _alone(wish)
    return Job(**{**shared, **own})  # type: ignore[arg-type]  # fields by name


def check_request(system: System | None, wish: JobRequest, time_s: float | None = None) -> None:
    """Refuses what a system is known not to allow.

    Args:
        time_s: time limit of a job, seconds; ``None`` where it isn't known yet.

    Raises:
        WishRefused: no account where one is required, an unknown partition or quality of service,
            more nodes or time than it allows, or a placement that Slurm can't give; the hint
            names what would do.
    """
    _check_placement(system, wish)
    if system is None:
        return
    slurm = system.jobs
    if slurm.account == "required" and not wish.account:
        raise InvalidRequest(
            "account",
            f"{system.name} takes no job without an account",
            hint="name the account, in a campaign file by `slurm: {account: NAME}`",
        )
    partition, qos = _queue(slurm, wish)
    _check_limits(slurm, partition, qos, wish.nodes, time_s or 0.0)


def pinned_variables(system: System | None, libraries: Collection[str]) -> dict[str, str]:
    """The variables that a description pins in runs of these libraries."""
    found = system.pinned if system else {}
    return {name: pin.value for name, pin in found.items() if applies_to(pin.library, libraries)}


def applies_to(library: str, libraries: Collection[str]) -> bool:
    """Whether an entry for this library, or for all, is for runs of these libraries."""
    return not library or library in libraries


def _alone(wish: JobRequest) -> dict[str, object]:
    return {
        "partition": wish.partition,
        "qos": wish.qos,
        "constraint": wish.constraint,
        "reservation": wish.reservation,
        "memory": wish.memory,
        "gres": wish.gres,
        "gpus_per_node": wish.gpus_per_node,
        "exclusive": wish.exclusive is not False,
        "modules": wish.modules,
    }


def _queue(slurm: Slurm, wish: JobRequest) -> tuple[str, str]:
    """The partition and the quality of service that a job goes to."""
    partition = wish.partition or slurm.partition
    return partition, wish.qos or (slurm.qos if partition == slurm.partition else "")


def _on_system(system: System, wish: JobRequest, libraries: Collection[str]) -> dict[str, object]:
    slurm = system.jobs
    partition, qos = _queue(slurm, wish)
    gpus = system.gpus.count if system.gpus else 0
    asked = bool(wish.gres or wish.gpus_per_node)
    modules = tuple(m.name for m in system.modules if applies_to(m.library, libraries))
    return {
        "partition": partition,
        "qos": qos,
        "constraint": wish.constraint or slurm.constraint,
        "reservation": wish.reservation or slurm.reservation,
        "memory": wish.memory or slurm.memory,
        "gres": f"gpu:{gpus}" if slurm.gpus == "gres" and not asked else wish.gres,
        "gpus_per_node": (
            gpus if slurm.gpus == "gpus-per-node" and not asked else wish.gpus_per_node
        ),
        "exclusive": slurm.exclusive if wish.exclusive is None else wish.exclusive,
        "modules": wish.modules or modules,
    }


def _check_placement(system: System | None, wish: JobRequest) -> None:
    if wish.placement == "any":
        return
    counted = system.jobs.switches if system else "switch"
    if wish.placement == "same-switch" and counted == "group":
        raise InvalidRequest(
            "placement",
            f"Slurm on {system.name if system else 'this system'} knows groups, not switches",
            hint="ask for placement: same-group, or any",
        )
    if wish.placement == "same-group" and counted != "group":
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
    """The field of the wish that is beyond limits, and in which way."""
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
