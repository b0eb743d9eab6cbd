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
    """The GPUs of this node, and the links between them."""

    vendor: str
    model: str  # the driver's name: ``NVIDIA H200``, or ``gfx90a`` for AMD
    count: int
    memory: int | None = None  # of one GPU
    numa: tuple[int, ...] = ()  # the NUMA node nearest to each GPU, by the GPU's index
    fabric: Fabric | None = None
    asked: tuple[str, ...] = ()  # the commands and folders that were read
    visible: int | None = None  # number of GPUs that this job may use, if that is fewer


@dataclass(frozen=True)
class SeenPort:
    """A network port that is up."""

    name: str
    model: str  # the adapter's trade name if that is known, else its driver's name
    bandwidth: float | None
    rdma: bool = False
    network: str = ""  # ``InfiniBand NDR``, ``Ethernet``, ``Slingshot``


@dataclass(frozen=True)
class SeenPartition:
    """A partition as ``sinfo`` lists it, with the properties of most of its nodes."""

    name: str
    is_default: bool = False
    nodes: int = 0
    #: most_nodes, longest: limits of a job; ``None`` without a limit.
    most_nodes: int | None = None
    longest: float | None = None
    whole_nodes: bool | None = None  # whether jobs get whole nodes by default
    sockets: int = 0
    cores: int = 0  # per node
    memory: int = 0
    gpus: int = 0  # per node, from its generic resources


@dataclass(frozen=True)
class SeenSlurm:
    """Slurm's configuration."""

    cluster: str
    version: str
    partitions: tuple[SeenPartition, ...] = ()
    is_node: bool = False  # whether this machine is one of its nodes, not a login node
    enforces_accounts: bool = False  # whether jobs without a valid account are refused
    asks_gpus: str = "none"  # the option for GPUs: ``gpus-per-node``, ``gres`` or ``none``
    #: mpi_default, mpi_kinds: default and values of ``srun --mpi``.
    mpi_default: str = ""
    mpi_kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Clues:
    """What identifies a machine: full host name, Slurm's cluster name, environment variables."""

    host: str = ""
    cluster: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class SeenMachine:
    """Detected properties of this machine."""

    clues: Clues
    processor: str
    sockets: int
    cores: int
    numa_nodes: int  # number of NUMA nodes with processors
    memory: int  # the kernel's total, slightly less than is installed
    virtual: str = ""  # description of the virtual machine; empty on bare metal
    gpus: SeenGpus | None = None
    ports: tuple[SeenPort, ...] = ()
    slurm: SeenSlurm | None = None
    scheduler: str = ""  # a scheduler other than Slurm: ``pbs``, ``lsf``, ``flux``
    mpi: tuple[str, str] | None = None  # library and version of the MPI on PATH

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
