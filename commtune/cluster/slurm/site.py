"""Asks Slurm about the site: the cluster's name, topology, accounting and partitions."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from commtune.cluster.placement import Topology, expand_readable_hosts
from commtune.cluster.scheduler import Site, read_span
from commtune.cluster.slurm.allocation import read_topology
from commtune.cluster.slurm.client import SlurmScheduler, ask_slurm, try_ask_slurm
from commtune.cluster.slurm.command_output import format_of, read_count, read_records
from commtune.cluster.slurm.faults import SlurmError, SlurmFault
from commtune.cluster.slurm.shared_answer import ask_of_site
from commtune.errors import EnvironmentFault, MissingComponent
from commtune.systems.detection.seen import SeenPartition, SeenSlurm

#: Time limit, seconds, where a user waits for the answer.
_PATIENCE_S = 10.0
_CONFIG = ("scontrol", "show", "config")
#: Partition, time limit, nodes per job, oversubscription, nodes, sockets, cores per socket,
#: memory, generic resources, node list. sinfo prints a line for each kind of node.
_COLUMNS = ("%P", "%l", "%s", "%h", "%D", "%X", "%Y", "%m", "%G", "%N")
_PARTITION_FORMAT = format_of(_COLUMNS)
_GPU_COUNT = re.compile(r"(?:^|,)gpu(?::[\w.+-]+?)?:(\d+)(?=[,(]|$)")
#: Types of srun's --mpi that descriptions of systems have.
_MPI_KINDS = ("none", "pmi2", "pmix", "cray_shasta")


def describe_site(environment: Mapping[str, str], folder: Path) -> Site:
    """Describes the site by Slurm, or by a recent answer to another campaign of the user.

    Args:
        folder: where campaigns share Slurm's answers.

    Raises:
        MissingComponent: there is no Slurm here.
        SlurmFault: it gives no answer.
    """
    answer = ask_of_site(partial(_ask_site, environment), "scontrol", folder)
    with suppress(LookupError, TypeError, ValueError):  # another version stored it
        return _read_site(answer)
    return _read_site(_ask_site(environment))


def _read_site(answer: str) -> Site:
    """Reads what ``_ask_site`` returns."""
    said = json.loads(answer)
    topology: Topology = {}
    with suppress(EnvironmentFault):
        topology = read_topology(said["topology"])
    config = _read_config(said["config"])
    return Site(
        name=config.get("ClusterName", ""),
        version=config.get("SLURM_VERSION", ""),
        topology=topology,
        keeps_accounts=said["keeps_accounts"],
    )


def _ask_site(environment: Mapping[str, str]) -> str:
    """Returns as JSON what ``_read_site`` reads; a site may have no topology configured."""
    config = ask_slurm(_CONFIG, environment)
    network = try_ask_slurm(("scontrol", "show", "topology"), environment)
    keeps_accounts = SlurmScheduler(environment).has_accounts()
    return json.dumps({"config": config, "topology": network, "keeps_accounts": keeps_accounts})


def cluster_name(environment: Mapping[str, str]) -> str:
    """Returns the name of the cluster that this machine belongs to; empty if unknown."""
    if inside := environment.get("SLURM_CLUSTER_NAME"):
        return inside
    return _read_config(try_ask_slurm(_CONFIG, environment, _PATIENCE_S)).get("ClusterName", "")


def explain_silence(environment: Mapping[str, str]) -> str:
    """Explains which of Slurm's daemons doesn't answer, and what follows; empty if all do."""
    if not try_ask_slurm(_CONFIG, environment, _PATIENCE_S):
        return "slurmctld does not answer ('scontrol ping'): it takes no jobs now"
    silent = explain_silent_accounts(environment)
    return silent and f"{silent} ('sacct'): node-hours are taken from the jobs' own times"


def explain_silent_accounts(environment: Mapping[str, str]) -> str:
    """Explains why slurmdbd doesn't answer; empty if it does, or if there is no accounting."""
    try:
        SlurmScheduler(environment, timeout_s=_PATIENCE_S).account(["1"], time.time())
    except MissingComponent:
        return ""
    except SlurmFault as fault:
        if fault.error is SlurmError.ACCOUNTING_OFF:
            return ""
        # A timeout of sacct is slurmdbd's, too: sacct asks no other daemon.
        if fault.error in (SlurmError.ACCOUNTING_DOWN, SlurmError.CONTROLLER_DOWN):
            return "slurmdbd does not answer"
        return f"slurmdbd gives no answer: {fault.error.value}"
    return ""


def describe_slurm(environment: Mapping[str, str], host: str) -> SeenSlurm | None:
    """Describes Slurm as seen from ``host``; ``None`` if there is none or it doesn't answer."""
    config = try_ask_slurm(_CONFIG, environment, _PATIENCE_S)
    if not config:
        return None
    question = ("sinfo", "--noheader", f"--format={_PARTITION_FORMAT}")
    listed = try_ask_slurm(question, environment, _PATIENCE_S)
    kinds = try_ask_slurm(("srun", "--mpi=list"), environment, _PATIENCE_S)
    return _read_slurm(config, listed, kinds, host)


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
        # A node list that can't be read counts as one without this host.
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
    """Reads the output of ``sinfo``; a partition is described by its most frequent nodes."""
    found: dict[str, list[SeenPartition]] = {}
    for fields in _records(listed):
        partition = _read_partition(fields)
        found.setdefault(partition.name, []).append(partition)
    return tuple(
        replace(max(shapes, key=lambda shape: shape.nodes), nodes=sum(s.nodes for s in shapes))
        for shapes in found.values()
    )


def _records(listed: str) -> Iterable[list[str]]:
    found = read_records(listed)
    return (fields for fields in found if len(fields) == len(_COLUMNS) and fields[0])


def _read_partition(fields: list[str]) -> SeenPartition:
    name, longest, job, sharing, nodes, sockets, cores, memory, resources, _ = fields
    return SeenPartition(
        name=name.rstrip("*"),
        is_default=name.endswith("*"),
        nodes=read_count(nodes),
        # "1-64", "2-infinite", or one number if all jobs must have that size.
        most_nodes=read_count(job.rpartition("-")[2]) or None,
        longest=read_span(longest),
        whole_nodes=sharing == "EXCLUSIVE",
        sockets=read_count(sockets),
        cores=read_count(sockets) * read_count(cores),
        memory=read_count(memory) * 2**20,
        gpus=sum(map(int, _GPU_COUNT.findall(resources))),
    )
