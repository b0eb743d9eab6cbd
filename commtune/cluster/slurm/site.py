"""What Slurm says of the site: the cluster's name, its network, whether it keeps accounts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from commtune.cluster.slurm.accounting import Accounting
from commtune.cluster.slurm.placement import Topology, read_topology
from commtune.cluster.slurm.queries import SlurmFault, ask_slurm
from commtune.errors import EnvironmentFault, MissingComponent

_TIMEOUT_S = 60.0
#: Where an answer is nice to have, and a person waits.
_ANSWER_S = 5.0


@dataclass(frozen=True)
class Site:
    """A cluster, as its own Slurm describes it.

    Attributes:
        name: the cluster's, as Slurm calls it.
        version: Slurm's.
        topology: where nodes stand; empty where the site didn't describe it.
        accounting: ``None`` where the site keeps no accounts.
    """

    name: str
    version: str
    topology: Topology
    accounting: Accounting | None


def describe_site(environment: Mapping[str, str]) -> Site:
    """Asks Slurm.

    Raises:
        MissingComponent: there is no Slurm here.
        SlurmFault: it gives no answer.
    """
    try:
        said = ask_slurm(["scontrol", "show", "config"], environment, _TIMEOUT_S)
    except MissingComponent as error:
        raise MissingComponent(
            "the campaign file asks for Slurm, and there is no Slurm here (no scontrol)",
            hint="start it on a login node; or take 'slurm:' out to measure on this machine",
        ) from error
    found = dict(re.findall(r"^(\w+)\s+= (.*?)\s*$", said, re.MULTILINE))
    accounting = Accounting(environment)
    return Site(
        name=found.get("ClusterName", ""),
        version=found.get("SLURM_VERSION", ""),
        topology=_topology(environment),
        accounting=accounting if accounting.is_kept() else None,
    )


def cluster_name(environment: Mapping[str, str]) -> str:
    """The name of the cluster that this machine belongs to; empty where nobody says."""
    if inside := environment.get("SLURM_CLUSTER_NAME"):
        return inside
    try:
        said = ask_slurm(["scontrol", "show", "config"], environment, _ANSWER_S)
    except (SlurmFault, EnvironmentFault):
        return ""
    found = re.search(r"^ClusterName\s+= (.*?)\s*$", said, re.MULTILINE)
    return found[1] if found else ""


def _topology(environment: Mapping[str, str]) -> Topology:
    try:
        return read_topology(ask_slurm(["scontrol", "show", "topology"], environment, _TIMEOUT_S))
    except (SlurmFault, EnvironmentFault):
        return Topology({})
