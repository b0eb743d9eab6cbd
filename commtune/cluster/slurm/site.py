"""What Slurm says of the site: the cluster's name, its network, accounts and partitions."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from commtune.cluster.placement import Topology, expand_readable_hosts
from commtune.cluster.scheduler import Site
from commtune.cluster.slurm.allocation import read_topology
from commtune.cluster.slurm.client import SlurmError, SlurmFault, SlurmScheduler, ask_slurm
from commtune.cluster.slurm.command_output import FIELD, RECORD, read_count
from commtune.errors import EnvironmentFault, MissingComponent
from commtune.systems.detection.seen import SeenPartition, SeenSlurm

_TIMEOUT_S = 60.0
#: A person waits.
_PATIENCE_S = 10.0
_CONFIG = ("scontrol", "show", "config")
#: Name, longest time, nodes of a job, sharing, nodes, sockets, cores of one, memory, generic
#: resources, names of nodes. One line for every shape of nodes.
_COLUMNS = ("%P", "%l", "%s", "%h", "%D", "%X", "%Y", "%m", "%G", "%N")
_PARTITION_FORMAT = RECORD + FIELD.join(_COLUMNS) + FIELD
_GPU_COUNT = re.compile(r"(?:^|,)gpu(?::[\w.+-]+?)?:(\d+)(?=[,(]|$)")
#: Kinds of --mpi that descriptions know.
_MPI_KINDS = ("none", "pmi2", "pmix", "cray_shasta")


def describe_site(environment: Mapping[str, str]) -> Site:
    """Asks Slurm.

    Raises:
        MissingComponent: there is no Slurm here.
        SlurmFault: it gives no answer.
    """
    try:
        said = _read_config(ask_slurm(_CONFIG, environment, _TIMEOUT_S))
    except MissingComponent as error:
        raise MissingComponent(
            "the campaign file asks for Slurm, and there is no Slurm here (no scontrol)",
            hint="start it on a login node; or remove 'slurm:' to measure on this machine",
        ) from error
    try:
        network = ask_slurm(("scontrol", "show", "topology"), environment, _TIMEOUT_S)
        topology = read_topology(network)
    except EnvironmentFault:
        topology = Topology({})
    return Site(
        name=said.get("ClusterName", ""),
        version=said.get("SLURM_VERSION", ""),
        topology=topology,
        keeps_accounts=SlurmScheduler(environment).has_accounts(),
    )


def cluster_name(environment: Mapping[str, str]) -> str:
    """The name of the cluster that this machine belongs to; empty where nobody says."""
    if inside := environment.get("SLURM_CLUSTER_NAME"):
        return inside
    return _read_config(_ask_for_person(_CONFIG, environment)).get("ClusterName", "")


def silent_daemon(environment: Mapping[str, str]) -> str:
    """``slurmctld`` or ``slurmdbd``, if it gives no answer; empty where all that are there do."""
    if not _ask_for_person(_CONFIG, environment):
        return "slurmctld"
    return "slurmdbd" if are_accounts_silent(environment) else ""


def are_accounts_silent(environment: Mapping[str, str]) -> bool:
    """Whether there are accounts, and slurmdbd does not answer for them."""
    try:
        SlurmScheduler(environment, timeout_s=_PATIENCE_S).account(["1"], time.time())
    except MissingComponent:
        return False
    except SlurmFault as fault:
        return fault.error is not SlurmError.ACCOUNTING_OFF
    return False


def describe_slurm(environment: Mapping[str, str], host: str) -> SeenSlurm | None:
    """Asks Slurm, as ``host``; ``None`` where there is none or it doesn't answer."""
    config = _ask_for_person(_CONFIG, environment)
    if not config:
        return None
    listed = _ask_for_person(("sinfo", "--noheader", f"--format={_PARTITION_FORMAT}"), environment)
    kinds = _ask_for_person(("srun", "--mpi=list"), environment)
    return _read_slurm(config, listed, kinds, host)


def _ask_for_person(question: Sequence[str], environment: Mapping[str, str]) -> str:
    """What a program prints; nothing where the answer would only be nice to have."""
    try:
        return ask_slurm(question, environment, _PATIENCE_S)
    except (SlurmFault, MissingComponent):
        return ""


def _read_config(printed: str) -> dict[str, str]:
    return dict(re.findall(r"^(\w+)\s+= (.*?)\s*$", printed, re.MULTILINE))


def _read_slurm(config: str, listed: str, kinds: str, host: str) -> SeenSlurm:
    """Reads ``scontrol show config``, ``sinfo`` with our format, and ``srun --mpi=list``."""
    said = _read_config(config)
    whole = said.get("SelectType", "") == "select/linear"
    partitions = _read_partitions(listed)
    has_gpus = any(partition.gpus for partition in partitions)
    asks = "gpus-per-node" if said.get("SelectType", "") == "select/cons_tres" else "gres"
    enforced = said.get("AccountingStorageEnforce", "").split(",")
    return SeenSlurm(
        cluster=said.get("ClusterName", ""),
        version=said.get("SLURM_VERSION", ""),
        partitions=tuple(replace(p, whole_nodes=True) if whole else p for p in partitions),
        # A list of more names than any machine has can't be read.
        is_node=any(
            host.partition(".")[0] in expand_readable_hosts(fields[-1])
            for fields in _records(listed)
        ),
        enforces_accounts="associations" in enforced,
        asks_gpus=asks if has_gpus else "none",
        mpi_default=said.get("MpiDefault", ""),
        mpi_kinds=tuple(kind for kind in _MPI_KINDS if kind in kinds.split()),
    )


def _read_partitions(listed: str) -> tuple[SeenPartition, ...]:
    """Reads what ``sinfo`` printed; a partition has the shape that most of its nodes have."""
    found: dict[str, list[SeenPartition]] = {}
    for fields in _records(listed):
        partition = _read_partition(fields)
        found.setdefault(partition.name, []).append(partition)
    return tuple(_merged(shapes) for shapes in found.values())


def _records(listed: str) -> Iterable[list[str]]:
    records = (text.split(FIELD)[:-1] for text in listed.split(RECORD)[1:])
    return (fields for fields in records if len(fields) == len(_COLUMNS) and fields[0])


def _merged(shapes: list[SeenPartition]) -> SeenPartition:
    most = max(shapes, key=lambda shape: shape.nodes)
    return replace(most, nodes=sum(shape.nodes for shape in shapes))


def _read_partition(fields: list[str]) -> SeenPartition:
    name, longest, job, sharing, nodes, sockets, cores, memory, resources, _ = fields
    return SeenPartition(
        name=name.rstrip("*"),
        is_default=name.endswith("*"),
        nodes=read_count(nodes),
        # "1-64", "2-infinite"; a partition for one size of job says just that.
        most_nodes=read_count(job.rpartition("-")[2]) or None,
        longest=_read_limit(longest),
        whole_nodes=sharing == "EXCLUSIVE",
        sockets=read_count(sockets),
        cores=read_count(sockets) * read_count(cores),
        memory=read_count(memory) * 2**20,
        gpus=sum(map(int, _GPU_COUNT.findall(resources))),
    )


def _read_limit(text: str) -> float | None:
    """Seconds of ``2-00:00:00``, ``1:00:00`` or ``30:00``; ``None`` for ``infinite``."""
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", text.strip(), re.ASCII)
    if not found:
        return None
    days, hours, minutes, seconds = (float(number or 0) for number in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
