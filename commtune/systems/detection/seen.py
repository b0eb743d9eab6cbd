"""What a machine shows of itself: gathered elsewhere, held against descriptions, written as one.

Sizes are bytes, bandwidths bytes per second in one direction, times seconds. ``None``, an empty
text and an empty list all mean that it could not be seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from commtune.systems.nominal.fabric import Fabric


@dataclass(frozen=True)
class SeenGpus:
    """The GPUs of this node, and the links between them.

    Attributes:
        model: as the driver names it: ``NVIDIA H200``, or ``gfx90a`` for AMD.
        memory: of one GPU.
        numa: the NUMA node nearest to each, by index.
        asked: the commands and folders that this is from.
        visible: how many of them this job may use, where that is known to be fewer.
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
        model: the adapter, by its trade name where that is known.
        network: ``InfiniBand NDR``, ``Ethernet``, ``Slingshot``; empty where nobody says.
    """

    name: str
    model: str
    bandwidth: float | None
    rdma: bool = False
    network: str = ""


@dataclass(frozen=True)
class SeenPartition:
    """A partition as ``sinfo`` lists it, with the shape of most of its nodes.

    Attributes:
        most_nodes, longest: limits of a job; ``None`` where there is none.
        whole_nodes: whether jobs get whole nodes without asking.
        cores: of all processors of a node together.
        gpus: a node, as its generic resources name them.
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
    """Slurm, as it answers here.

    Attributes:
        is_node: whether this machine is one of its nodes, not a login node.
        enforces_accounts: whether jobs without a known account are refused.
        asks_gpus: how GPUs are asked for: ``gpus-per-node``, ``gres`` or ``none``.
        mpi_default, mpi_kinds: of ``srun --mpi``.
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
    """By what a machine may be recognized: whole host name, Slurm's cluster name, variables."""

    host: str = ""
    cluster: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class SeenMachine:
    """What this machine shows.

    Attributes:
        numa_nodes: those with processors.
        memory: as the kernel counts it, a little less than what is built in.
        virtual: what is known of the virtual machine; empty on bare metal.
        scheduler: what else than Slurm runs jobs here: ``pbs``, ``lsf``, ``flux``.
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
        """Those that messages between nodes take, as far as can be told: the fastest ones."""
        # RDMA devices come before others; slower ones are for storage and administration.
        fast = [port for port in self.ports if port.bandwidth] or list(self.ports)
        if not fast:
            return ()
        best = max(fast, key=lambda port: (port.bandwidth or 0, port.rdma))
        kind = (best.model, best.bandwidth, best.rdma)
        return tuple(p for p in self.ports if (p.model, p.bandwidth, p.rdma) == kind)
