"""Reading what a machine is: recorded trees of /proc and /sys, and this machine."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from made_files import write_file

from commtune.cluster.machine.description import (
    Machine,
    _coarse_gib,
    _parse_cpu_model,
    _parse_memory,
    _parse_os_name,
    _parse_quota,
    _parse_slurm_version,
    describe_machine,
    parse_rate,
)
from commtune.cluster.machine.doctor import _describe_load
from commtune.cluster.machine.gpus import Gpu, _parse_kfd_node, _parse_nvidia_driver

# Recorded on a virtual machine with an NVIDIA H200 (driver 580, Linux 6.18).
H200_INFORMATION = """\
Model: \t\t NVIDIA H200
IRQ:   \t\t 41
GPU UUID: \t GPU-00000000-0000-0000-0000-000000000000
Video BIOS: \t 96.00.a5.00.1a
Bus Type: \t PCIe
Bus Location: \t 0000:00:06.0
GPU Excluded:\t No
"""
NVIDIA_VERSION = """\
NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (nixbld@)  
GCC version:  gcc version 15.3.0 (GCC) 
"""  # noqa: W291  # the blanks at the ends of lines are the driver's
CPUINFO = """\
processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R)   Processor
flags\t\t: fpu vme de hypervisor lahf_lm
processor\t: 1
model name\t: another
"""
ARM_CPUINFO = """\
processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd evtstrm
CPU implementer\t: 0x41
CPU part\t: 0xd0c
"""
KFD_GPU = """\
cpu_cores_count 0
simd_count 440
gfx_target_version 90010
vendor_id 4098
"""
KFD_CPU = "cpu_cores_count 64\nsimd_count 0\ngfx_target_version 0\n"


def test_processor_names() -> None:
    assert _parse_cpu_model(CPUINFO) == "Intel(R) Xeon(R) Processor"
    assert _parse_cpu_model(ARM_CPUINFO) == "Arm implementer 0x41 part 0xd0c"
    assert _parse_cpu_model("") == "unknown"


def test_memory_is_bytes() -> None:
    assert _parse_memory("MemTotal:       24684092 kB\nMemFree: 1 kB\n") == 24684092 * 1024
    assert _parse_memory("") == 0


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("max 100000\n", None), ("150000 100000\n", 1.5), ("", None), ("garbage", None)],
)
def test_a_containers_limit(text: str, wanted: float | None) -> None:
    assert _parse_quota(text) == wanted


def test_os_names() -> None:
    assert _parse_os_name('PRETTY_NAME="Debian"\nID=debian\nVERSION_ID="12"\n') == "debian 12"
    assert _parse_os_name("") == "unknown"


def test_the_nvidia_driver() -> None:
    assert _parse_nvidia_driver(NVIDIA_VERSION) == "580.159.04"
    assert _parse_nvidia_driver("") == "unknown"


@pytest.mark.parametrize(
    ("target", "wanted"), [(90010, "gfx90a"), (90402, "gfx942"), (110000, "gfx1100")]
)
def test_amd_gpus_by_their_target(target: int, wanted: str) -> None:
    assert _parse_kfd_node(KFD_GPU.replace("90010", str(target))) == wanted
    assert _parse_kfd_node(KFD_CPU) == ""


def test_a_ports_rate() -> None:
    assert parse_rate("400 Gb/sec (4X NDR)\n") == 400_000
    assert parse_rate("2.5 Gb/sec (1X SDR)\n") == 2_500
    assert parse_rate("") is None


def test_slurms_version() -> None:
    assert _parse_slurm_version("slurm-wlm 22.05.8\n") == "22.05.8"
    assert _parse_slurm_version("slurm 23.11.4\n") == "23.11.4"
    assert _parse_slurm_version("sbatch: error: DNS SRV lookup failed\n") == ""


def test_load_warns_when_ranks_would_share_cores() -> None:
    assert _describe_load("0.23 0.28 0.14 1/87 10607\n", cores=2) == ""
    assert _describe_load("", cores=1) == ""
    assert _describe_load("9.00 1.00 0.50 7/500 1\n", cores=8) == ""
    busy = _describe_load("1.00 1.00 0.50 2/500 1\n", cores=2)
    assert busy.startswith("1 other threads want to run on 2 cores (load average 1.00): ")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two sockets of two cores with two threads, an NVIDIA and an AMD GPU, three networks."""
    write_file(tmp_path / "proc/cpuinfo", CPUINFO)
    write_file(tmp_path / "proc/meminfo", "MemTotal: 131981020 kB\n")
    write_file(tmp_path / "proc/sys/kernel/osrelease", "6.1.0-18-amd64\n")
    write_file(tmp_path / "etc/os-release", "ID=debian\nVERSION_ID=12\n")
    for cpu in range(8):
        place = f"sys/devices/system/cpu/cpu{cpu}/topology"
        write_file(tmp_path / f"{place}/physical_package_id", f"{cpu // 2 % 2}\n")
        write_file(tmp_path / f"{place}/core_id", f"{cpu % 2}\n")
    for node in range(2):
        write_file(tmp_path / f"sys/devices/system/node/node{node}/cpulist", "0-1\n")
    write_file(tmp_path / "proc/driver/nvidia/version", NVIDIA_VERSION)
    write_file(tmp_path / "proc/driver/nvidia/gpus/0000:00:06.0/information", H200_INFORMATION)
    write_file(tmp_path / "sys/class/kfd/kfd/topology/nodes/0/properties", KFD_CPU)
    write_file(tmp_path / "sys/class/kfd/kfd/topology/nodes/1/properties", KFD_GPU)
    write_file(tmp_path / "sys/class/infiniband/mlx5_0/hca_type", "MT4129\n")
    write_file(tmp_path / "sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n")
    write_file(tmp_path / "sys/class/net/eth0/speed", "25000\n")
    write_file(tmp_path / "sys/class/net/eth0/type", "1\n")
    write_file(tmp_path / "drivers/mlx5_core/x", "")
    (tmp_path / "sys/class/net/eth0/device").mkdir()
    (tmp_path / "sys/class/net/eth0/device/driver").symlink_to(tmp_path / "drivers/mlx5_core")
    write_file(tmp_path / "sys/class/net/lo/type", "772\n")
    write_file(tmp_path / "sys/class/net/docker0/type", "1\n")
    return tmp_path


def test_a_whole_node_is_described(tree: Path) -> None:
    machine = describe_machine(tree)
    assert (machine.cores_total, machine.cores_physical, machine.sockets) == (8, 4, 2)
    assert machine.numa_nodes == 2
    assert machine.kernel == "6.1.0-18-amd64"
    assert machine.virtualization == "virtual machine"
    assert machine.gpus == (
        Gpu("nvidia", "NVIDIA H200", "580.159.04"),
        Gpu("amd", "gfx90a", "in-kernel"),
    )
    assert machine.nics == (
        "infiniband MT4129 400000",
        "ethernet mlx5_core 25000",
    )


def test_an_empty_tree_is_described_without_guesses(tmp_path: Path) -> None:
    machine = describe_machine(tmp_path)
    assert (machine.cpu_model, machine.gpus, machine.nics) == ("unknown", (), ())


@pytest.fixture
def machine(tree: Path) -> Machine:
    return describe_machine(tree)


def test_the_fingerprint_is_the_same_on_another_node_of_the_kind(machine: Machine) -> None:
    reordered = machine.nics[::-1]
    other = replace(machine, nics=reordered, memory_bytes=machine.memory_bytes - 3 * 2**20)
    assert other.fingerprint() == machine.fingerprint()


@pytest.mark.parametrize(
    "change",
    [
        {"cpu_model": "another"}, {"cores_usable": 4}, {"numa_nodes": 1}, {"gpus": ()},
        {"nics": ()}, {"memory_bytes": 2**36}, {"kernel": "6.2"}, {"os_name": "debian 13"},
        {"cpu_quota": 1.5},
    ],
)  # fmt: skip
def test_the_fingerprint_changes_with_shape_and_stack(
    machine: Machine, change: dict[str, object]
) -> None:
    assert replace(machine, **change).fingerprint() != machine.fingerprint()  # type: ignore[arg-type]  # names vary


def test_the_kernel_is_stack_not_shape(machine: Machine) -> None:
    other = replace(machine, kernel="6.2")
    assert other.shape() == machine.shape()
    assert other.stack() != machine.stack()


def test_memory_is_coarse() -> None:
    assert _coarse_gib(25276510208) == 24
    assert _coarse_gib(131981020 * 1024) == 128
    assert _coarse_gib(3 * 2**30) == 3


def test_this_machine() -> None:
    machine = describe_machine()
    assert machine.cores_usable == len(os.sched_getaffinity(0))
    assert machine.cores_total >= machine.cores_usable
    assert machine.kernel == os.uname().release
    assert machine.memory_bytes > 2**28
    assert describe_machine().fingerprint() == machine.fingerprint()
