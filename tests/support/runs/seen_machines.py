"""Machines as they would show themselves, for tests of recognizing and describing."""

from __future__ import annotations

from dataclasses import replace

from commtune.systems.detection.seen import (
    Clues,
    SeenGpus,
    SeenMachine,
    SeenPartition,
    SeenPort,
    SeenSlurm,
)
from commtune.systems.nominal.fabric import Fabric, Link

GIB = 2**30


def hdr_ports(count: int, gbits: float = 100) -> tuple[SeenPort, ...]:
    return tuple(
        SeenPort(f"mlx5_{i}", "ConnectX-6", gbits * 1e9 / 8, rdma=True, network="InfiniBand HDR")
        for i in range(count)
    )


#: All pairs of four GPUs by four NVLinks of 25 GB/s each.
A100_LINKS = Fabric(
    origin="test",
    gpus=4,
    links=tuple(Link(a, b, 4, 25e9) for a in range(4) for b in range(a + 1, 4)),
)

#: A node like Leonardo's, of which Slurm says what it may.
A100_NODE = SeenMachine(
    clues=Clues("lrdn0001.leonardo.local"),
    processor="Intel(R) Xeon(R) Platinum 8358 CPU @ 2.60GHz",
    sockets=1,
    cores=32,
    numa_nodes=2,
    memory=503 * GIB,
    gpus=SeenGpus(
        "nvidia", "NVIDIA A100-SXM-64GB", 4, 65536 * 2**20, (0, 0, 1, 1), A100_LINKS,
        ("nvidia-smi topo -m",),
    ),
    ports=(*hdr_ports(4), SeenPort("eth0", "igb", 1e9 / 8, network="Ethernet")),
    slurm=SeenSlurm(
        "leonardo",
        "23.11.10",
        (
            SeenPartition("lrd_all_serial", True, 4, None, 4 * 3600.0, False, 1, 32, 500 * GIB),
            SeenPartition("boost_usr_prod", False, 3456, 64, 86400.0, False, 1, 32, 482 * GIB, 4),
        ),
        is_node=True,
        enforces_accounts=True,
        asks_gpus="gpus-per-node",
        mpi_default="pmix",
        mpi_kinds=("none", "pmi2", "pmix"),
    ),
    mpi=("openmpi", "4.1.6"),
)  # fmt: skip

#: A login node of the same machine.
LOGIN_NODE = replace(
    A100_NODE,
    clues=Clues("login01"),
    gpus=None,
    cores=64,
    ports=hdr_ports(1),
    slurm=replace(A100_NODE.slurm, is_node=False) if A100_NODE.slurm else None,
)
