"""What Slurm says of its partitions and their nodes, to describe or recognize a site."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from commtune.cluster.slurm.placement import expand_hosts
from commtune.cluster.slurm.queries import FIELD, RECORD, SlurmFault, ask_slurm, read_count
from commtune.errors import EnvironmentFault, MissingComponent
from commtune.systems.detection.seen import SeenPartition, SeenSlurm

#: A person waits.
_TIMEOUT_S = 10.0
#: Name, longest time, nodes of a job, sharing, nodes, sockets, cores of one, memory, generic
#: resources, names of nodes. One line for every shape of nodes.
_COLUMNS = ("%P", "%l", "%s", "%h", "%D", "%X", "%Y", "%m", "%G", "%N")
FORMAT = RECORD + FIELD.join(_COLUMNS) + FIELD
_GPU_COUNT = re.compile(r"(?:^|,)gpu(?::[\w.+-]+?)?:(\d+)(?=[,(]|$)")
#: Kinds of --mpi that descriptions know.
_MPI_KINDS = ("none", "pmi2", "pmix", "cray_shasta")


def describe_slurm(environment: Mapping[str, str], host: str) -> SeenSlurm | None:
    """Asks Slurm; ``None`` where there is none or it doesn't answer.

    Args:
        host: name of this machine, to tell whether it is a node.
    """
    try:
        config = ask_slurm(["scontrol", "show", "config"], environment, _TIMEOUT_S)
    except (SlurmFault, MissingComponent):
        return None
    listed = _asked(["sinfo", "--noheader", f"--format={FORMAT}"], environment)
    kinds = _asked(["srun", "--mpi=list"], environment)
    return read_slurm(config, listed, kinds, host)


def _asked(question: list[str], environment: Mapping[str, str]) -> str:
    try:
        return ask_slurm(question, environment, _TIMEOUT_S)
    except (SlurmFault, MissingComponent):
        return ""


def read_slurm(config: str, listed: str, kinds: str, host: str) -> SeenSlurm:
    """Reads ``scontrol show config``, ``sinfo`` with our format, and ``srun --mpi=list``."""
    said = dict(re.findall(r"^(\w+)\s+= (.*?)\s*$", config, re.MULTILINE))
    whole = said.get("SelectType", "") == "select/linear"
    partitions = read_partitions(listed)
    has_gpus = any(partition.gpus for partition in partitions)
    asks = "gpus-per-node" if said.get("SelectType", "") == "select/cons_tres" else "gres"
    enforced = said.get("AccountingStorageEnforce", "").split(",")
    return SeenSlurm(
        cluster=said.get("ClusterName", ""),
        version=said.get("SLURM_VERSION", ""),
        partitions=tuple(replace(p, whole_nodes=True) if whole else p for p in partitions),
        is_node=host.partition(".")[0] in _nodes(listed),
        enforces_accounts="associations" in enforced,
        asks_gpus=asks if has_gpus else "none",
        mpi_default=said.get("MpiDefault", ""),
        mpi_kinds=tuple(kind for kind in _MPI_KINDS if kind in kinds.split()),
    )


def read_partitions(listed: str) -> tuple[SeenPartition, ...]:
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
        longest=read_limit(longest),
        whole_nodes=sharing == "EXCLUSIVE",
        sockets=read_count(sockets),
        cores=read_count(sockets) * read_count(cores),
        memory=read_count(memory) * 2**20,
        gpus=sum(map(int, _GPU_COUNT.findall(resources))),
    )


def read_limit(text: str) -> float | None:
    """Seconds of ``2-00:00:00``, ``1:00:00`` or ``30:00``; ``None`` for ``infinite``."""
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", text.strip(), re.ASCII)
    if not found:
        return None
    days, hours, minutes, seconds = (float(number or 0) for number in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _nodes(listed: str) -> set[str]:
    names: set[str] = set()
    for fields in _records(listed):
        try:
            names.update(expand_hosts(fields[-1]))
        except EnvironmentFault:  # more names than any machine has
            continue
    return names
