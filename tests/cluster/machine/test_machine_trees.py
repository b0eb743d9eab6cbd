"""All that a machine shows: recorded trees, and this machine."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest
from made_files import write_file

from commtune.cluster.machine.inventory import collect_clues, inspect_machine
from commtune.documents.yaml_document import parse_document
from commtune.systems.drafting.description import draft_description
from commtune.systems.loading import build_system

QUERY = "NVIDIA H200, 143771, 00000000:00:06.0\nNVIDIA H200, 143771, 00000000:00:07.0\n"
TOPOLOGY = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-31\nGPU1\tNV18\t X \t0-31\n"


def nvidia_smi(arguments: Sequence[str]) -> str:
    if "topo" in arguments:
        return TOPOLOGY
    if "--status" in arguments:
        lines = [f"GPU {gpu}: NVIDIA H200 (UUID: GPU-0)\n" + 18 * "\t Link 1: 26.562 GB/s\n"
                 for gpu in range(2)]  # fmt: skip
        return "".join(lines)
    return "" if "nvlink" in arguments else QUERY


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Two sockets of two cores, a third NUMA node without processors, two H200, five networks."""
    write_file(tmp_path / "proc/cpuinfo", "model name\t: Some Processor\n")
    write_file(tmp_path / "proc/meminfo", "MemTotal: 131981020 kB\n")
    for cpu in range(4):
        place = f"sys/devices/system/cpu/cpu{cpu}/topology"
        write_file(tmp_path / f"{place}/physical_package_id", f"{cpu // 2}\n")
        write_file(tmp_path / f"{place}/core_id", f"{cpu % 2}\n")
    for number, cpus in enumerate(("0-1\n", "2-3\n", "\n")):
        write_file(tmp_path / f"sys/devices/system/node/node{number}/cpulist", cpus)
    for number, near in ((6, 0), (7, 1)):
        write_file(tmp_path / f"proc/driver/nvidia/gpus/0000:00:0{number}.0/information",
              "Model: \t\t NVIDIA H200\n")  # fmt: skip
        write_file(tmp_path / f"sys/bus/pci/devices/0000:00:0{number}.0/numa_node", f"{near}\n")
    for number in (2, 10):
        port = f"sys/class/infiniband/mlx5_{number}/ports/1"
        write_file(tmp_path / f"sys/class/infiniband/mlx5_{number}/hca_type", "MT4129\n")
        write_file(tmp_path / f"{port}/rate", "400 Gb/sec (4X NDR)\n")
        write_file(tmp_path / f"{port}/state", "4: ACTIVE\n")
        write_file(tmp_path / f"{port}/link_layer", "InfiniBand\n")
    storage = "sys/class/infiniband/mlx5_3"
    write_file(tmp_path / f"{storage}/hca_type", "MT4125\n")
    for number, state in ((1, "4: ACTIVE"), (2, "1: DOWN")):
        write_file(tmp_path / f"{storage}/ports/{number}/rate", "100 Gb/sec (4X EDR)\n")
        write_file(tmp_path / f"{storage}/ports/{number}/state", f"{state}\n")
        write_file(tmp_path / f"{storage}/ports/{number}/link_layer", "Ethernet\n")
    for name, speed, state in (("eth0", "25000", "up"), ("eth1", "-1", "down")):
        write_file(tmp_path / f"sys/class/net/{name}/speed", f"{speed}\n")
        write_file(tmp_path / f"sys/class/net/{name}/type", "1\n")
        write_file(tmp_path / f"sys/class/net/{name}/operstate", f"{state}\n")
        (tmp_path / f"sys/class/net/{name}/device").mkdir()
    write_file(tmp_path / "sys/class/net/lo/type", "772\n")
    return tmp_path


def test_a_recorded_node(node: Path) -> None:
    seen = inspect_machine({}, node, nvidia_smi)
    assert (seen.sockets, seen.cores, seen.numa_nodes) == (2, 4, 2)
    assert seen.memory == 131981020 * 1024
    assert seen.gpus and seen.gpus.fabric
    assert (seen.gpus.count, seen.gpus.numa) == (2, (0, 1))
    assert seen.gpus.fabric.injection(0) == 450e9
    assert [(p.name, p.model, p.bandwidth, p.network) for p in seen.ports] == [
        ("mlx5_2", "ConnectX-7", 50e9, "InfiniBand NDR"),
        ("mlx5_3", "ConnectX-6 Dx", 12.5e9, "Ethernet"),
        ("mlx5_10", "ConnectX-7", 50e9, "InfiniBand NDR"),
        ("eth0", "driver", 3.125e9, "Ethernet"),
    ]
    assert [port.name for port in seen.network_ports] == ["mlx5_2", "mlx5_10"]
    # Of a recorded node, nothing of this machine is told.
    assert (seen.slurm, seen.mpi, seen.clues.host) == (None, None, "")


def test_a_recorded_node_is_described(node: Path) -> None:
    page = draft_description("recorded", inspect_machine({}, node, nvidia_smi), date(2026, 11, 22))
    system = build_system(parse_document(page.text))
    assert system.network.fabric == "InfiniBand NDR"
    assert [link.pairs for link in system.links] == ["all"]
    assert "1 x ConnectX-6 Dx, 100 Gb/s" in page.text


def test_an_empty_tree_is_described_too(tmp_path: Path) -> None:
    seen = inspect_machine({}, tmp_path)
    assert (seen.processor, seen.gpus, seen.ports) == ("unknown", None, ())
    build_system(parse_document(draft_description("empty", seen, date(2026, 11, 22)).text))


def test_slingshot(tmp_path: Path) -> None:
    for number in range(4):
        device = f"sys/class/net/hsn{number}"
        write_file(tmp_path / f"{device}/speed", "200000\n")
        write_file(tmp_path / f"{device}/type", "1\n")
        write_file(tmp_path / "drivers/cxi_ss1/x", "")
        (tmp_path / f"{device}/device").mkdir()
        (tmp_path / f"{device}/device/driver").symlink_to(tmp_path / "drivers/cxi_ss1")
    ports = inspect_machine({}, tmp_path).network_ports
    assert [port.name for port in ports] == ["hsn0", "hsn1", "hsn2", "hsn3"]
    assert (ports[0].model, ports[0].bandwidth) == ("HPE Slingshot 11", 25e9)
    assert ports[0].network == "Slingshot 11"


def test_this_machine() -> None:
    seen = inspect_machine(os.environ)
    assert seen.cores <= (os.cpu_count() or 1)
    assert seen.memory > 2**28
    assert seen.clues.host.partition(".")[0] == socket.gethostname().partition(".")[0]
    assert seen.clues.environment is os.environ


def test_a_job_knows_its_cluster() -> None:
    assert collect_clues({"SLURM_CLUSTER_NAME": "here"}, "").cluster == "here"
    assert collect_clues({"SLURM_CLUSTER_NAME": "here"}, "there").cluster == "there"
    assert collect_clues({}, "").cluster == ""
