"""Detected properties of a machine, to recognize it or to draft a description of it.

Sizes are in bytes, bandwidths in bytes per second in one direction, times in seconds. ``None``,
empty texts and empty lists mean unknown, unless stated otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from commtune.systems.nominal.fabric import Fabric


@dataclass(frozen=True)
class SeenGpus:
    """The GPUs of this node, and the links between them.

    Attributes:
        model: the driver's name: ``NVIDIA H200``, or ``gfx90a`` for AMD.
        memory: of one GPU.
        numa: the NUMA node nearest to each GPU, by the GPU's index.
        asked: the commands and folders that were read.
        visible: number of GPUs that this job may use, if that is fewer.
    """

    vendor: str
    model: str
    count: int
    memory: int | None = None
    numa: tuple[int, ...] = ()
    fabric: Fabric | None = None
    asked: tuple[str, ...] = ()
    visible: int | None = None


@dataclass(frozen=True)
class SeenPort:
    """A network port that is up.

    Attributes:
        model: the adapter's trade name if that is known, else its driver's name.
        network: ``InfiniBand NDR``, ``Ethernet``, ``Slingshot``.
    """

    name: str
    model: str
    bandwidth: float | None
    rdma: bool = False
    network: str = ""


@dataclass(frozen=True)
class SeenPartition:
    """A partition as ``sinfo`` lists it, with the properties of most of its nodes.

    Attributes:
        most_nodes, longest: limits of a job; ``None`` without a limit.
        whole_nodes: whether jobs get whole nodes by default.
        cores: per node.
        gpus: per node, from its generic resources.
    """

    name: str
    is_default: bool = False
    nodes: int = 0
    most_nodes: int | None = None
    longest: float | None = None
    whole_nodes: bool | None = None
    sockets: int = 0
    cores: int = 0
    memory: int = 0
    gpus: int = 0


@dataclass(frozen=True)
class SeenSlurm:
    """Slurm's configuration.

    Attributes:
        is_node: whether this machine is one of its nodes, not a login node.
        enforces_accounts: whether jobs without a valid account are refused.
        asks_gpus: the option for GPUs: ``gpus-per-node``, ``gres`` or ``none``.
        mpi_default, mpi_kinds: default and values of ``srun --mpi``.
    """

    cluster: str
    version: str
    partitions: tuple[SeenPartition, ...] = ()
    is_node: bool = False
    enforces_accounts: bool = False
    asks_gpus: str = "none"
    mpi_default: str = ""
    mpi_kinds: tuple[str, ...] = ()

    def partition(self, name: str) -> SeenPartition | None:
        return next((p for p in self.partitions if p.name == name), None)


@dataclass(frozen=True)
class Clues:
    """What identifies a machine: full host name, Slurm's cluster name, environment variables."""

    host: str = ""
    cluster: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class SeenMachine:
    """Detected properties of this machine.

    Attributes:
        numa_nodes: number of NUMA nodes with processors.
        memory: the kernel's total, slightly less than is installed.
        virtual: description of the virtual machine; empty on bare metal.
        scheduler: a scheduler other than Slurm: ``pbs``, ``lsf``, ``flux``.
        mpi: library and version of the MPI on PATH.
    """

    clues: Clues
    processor: str
    sockets: int
    cores: int
    numa_nodes: int
    memory: int
    virtual: str = ""
    gpus: SeenGpus | None = None
    ports: tuple[SeenPort, ...] = ()
    slurm: SeenSlurm | None = None
    scheduler: str = ""
    mpi: tuple[str, str] | None = None

    @property
    def network_ports(self) -> tuple[SeenPort, ...]:
        """The ports that are presumably for messages between nodes: the fastest, or with RDMA."""
        # Slower ones are usually for storage and administration.
        fast = [port for port in self.ports if port.bandwidth] or list(self.ports)
        if not fast:
            return ()
        best = max(fast, key=lambda port: (port.bandwidth or 0, port.rdma))
        kind = (best.model, best.bandwidth, best.rdma)
        return tuple(p for p in self.ports if (p.model, p.bandwidth, p.rdma) == kind)
