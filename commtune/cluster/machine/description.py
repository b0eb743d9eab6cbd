"""Describes this machine: hardware, kernel and drivers, a part of a system's fingerprint.

Reads /proc and /sys below a root folder, so that recorded trees can be read as well.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commtune import process
from commtune.cluster.machine.gpus import Gpu, list_gpus
from commtune.model import content_key
from commtune.paths import exists, read_quietly

_GIB = 2**30


@dataclass(frozen=True)
class Machine:
    """A node, as the operating system describes it."""

    architecture: str
    cpu_model: str
    cores_usable: int  # logical processors that this process may run on
    #: cores_total, cores_physical: logical processors and cores of the whole node.
    cores_total: int
    cores_physical: int
    sockets: int
    numa_nodes: int
    memory_bytes: int  # by the kernel, a little less than is installed
    kernel: str
    os_name: str
    #: CPU quota of a container, in processors; ``None`` for no limit.
    cpu_quota: float | None = None
    #: Description of the virtual machine; empty on bare metal.
    virtualization: str = ""
    gpus: tuple[Gpu, ...] = ()
    #: Kind, model, and megabits per second of each hardware network device.
    nics: tuple[str, ...] = ()
    slurm: str = ""  # version of the Slurm client commands; empty where there are none

    def shape(self) -> dict[str, Any]:
        """Returns the hardware that nodes of one kind share, without names and addresses."""
        return {
            "architecture": self.architecture,
            "cpu_model": self.cpu_model,
            "cores_usable": self.cores_usable,
            "cores_total": self.cores_total,
            "cores_physical": self.cores_physical,
            "cpu_quota": self.cpu_quota,
            "sockets": self.sockets,
            "numa_nodes": self.numa_nodes,
            "memory_gib": _coarse_gib(self.memory_bytes),
            "virtual": bool(self.virtualization),
            "gpus": sorted(gpu.model for gpu in self.gpus),
            "nics": sorted(self.nics),
        }

    def stack(self) -> dict[str, Any]:
        """Returns the software below MPI and NCCL that can change results."""
        return {
            "kernel": self.kernel,
            "os": self.os_name,
            "gpu_drivers": sorted({gpu.driver for gpu in self.gpus}),
        }

    def fingerprint(self) -> str:
        """Returns a hash of shape and stack, equal for nodes of the same kind and installation."""
        return content_key({"shape": self.shape(), "stack": self.stack()})


def describe_machine(root: Path = Path("/")) -> Machine:
    """Describes this machine, or with another root that of a recorded tree."""
    cpuinfo = read_quietly(root / "proc/cpuinfo")
    total, physical, sockets = _topology(root / "sys/devices/system/cpu")
    usable = len(os.sched_getaffinity(0)) if root == Path("/") else total
    return Machine(
        architecture=platform.machine(),
        cpu_model=_parse_cpu_model(cpuinfo),
        cores_usable=usable,
        cores_total=total or usable,
        cores_physical=physical or usable,
        sockets=sockets or 1,
        numa_nodes=len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or 1,
        memory_bytes=_parse_memory(read_quietly(root / "proc/meminfo")),
        kernel=read_quietly(root / "proc/sys/kernel/osrelease").strip(),
        os_name=_parse_os_name(read_quietly(root / "etc/os-release")),
        cpu_quota=_parse_quota(read_quietly(root / "sys/fs/cgroup/cpu.max")),
        virtualization=_virtualization(root, cpuinfo),
        gpus=list_gpus(root),
        nics=(*_rdma(root), *(f"ethernet {by} {speed}" for _, by, speed in list_ethernet(root))),
        slurm=_slurm() if root == Path("/") else "",
    )


def _parse_cpu_model(cpuinfo: str) -> str:
    """Reads the processor's name from /proc/cpuinfo, which has only numbers on Arm."""
    fields = _fields(cpuinfo)
    if name := fields.get("model name") or fields.get("cpu"):
        return re.sub(r"\s+", " ", name)
    if "CPU part" in fields:
        return f"Arm implementer {fields.get('CPU implementer')} part {fields['CPU part']}"
    return "unknown"


def _parse_memory(meminfo: str) -> int:
    """Reads MemTotal from /proc/meminfo, in bytes; 0 if it is missing."""
    match = re.search(r"^MemTotal:\s+(\d+) kB", meminfo, re.MULTILINE)
    return int(match[1]) * 1024 if match else 0


def _parse_os_name(os_release: str) -> str:
    """Reads ID and version from /etc/os-release: ``debian 12``."""
    pairs = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    words = (pairs.get(name, "").strip("\"'") for name in ("ID", "VERSION_ID"))
    return " ".join(word for word in words if word) or "unknown"


def _parse_quota(cpu_max: str) -> float | None:
    """Reads a CPU quota in processors from cgroup v2's cpu.max: ``150000 100000`` is 1.5."""
    quota, _, period = cpu_max.strip().partition(" ")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def _parse_slurm_version(text: str) -> str:
    """Reads the version from ``sbatch --version``: ``slurm-wlm 22.05.8`` (Debian's)."""
    match = re.search(r"^slurm\S*\s+(\d\S*)", text, re.MULTILINE)
    return match[1] if match else ""


def _coarse_gib(memory_bytes: int) -> int:
    """Rounds memory to GiB within about an eighth, as equal nodes differ by some megabytes."""
    gib = memory_bytes / _GIB
    step = 1 << max(0, int(gib).bit_length() - 4)
    return round(gib / step) * step


def _topology(folder: Path) -> tuple[int, int, int]:
    cores = [
        (read_quietly(cpu / "physical_package_id").strip(), read_quietly(cpu / "core_id").strip())
        for cpu in folder.glob("cpu[0-9]*/topology")
    ]
    return len(cores), len(set(cores)), len({package for package, _ in cores})


def _virtualization(root: Path, cpuinfo: str) -> str:
    dmi = root / "sys/class/dmi/id"
    names = [read_quietly(dmi / name).strip() for name in ("sys_vendor", "product_name")]
    if "hypervisor" in _fields(cpuinfo).get("flags", "").split():
        return " ".join(["virtual machine", *(name for name in names if name)])
    xen = read_quietly(root / "sys/hypervisor/type").strip()
    return f"virtual machine {xen}" if xen else ""


def _rdma(root: Path) -> Iterator[str]:
    """Describes RDMA devices, also RoCE and the like, by the adapters' types (``MT4129``)."""
    for device in sorted((root / "sys/class/infiniband").glob("*")):
        rates = [parse_rate(read_quietly(file)) for file in device.glob("ports/*/rate")]
        model = read_quietly(device / "hca_type").strip() or device.name.rstrip("0123456789")
        yield f"infiniband {model} {max((r for r in rates if r), default=None)}"


def parse_rate(text: str) -> int | None:
    """Reads a port's rate, ``400 Gb/sec (4X NDR)``, in megabits per second."""
    match = re.match(r"\s*([\d.]+) Gb/sec", text)
    return int(float(match[1]) * 1000) if match else None


def list_ethernet(root: Path) -> Iterator[tuple[Path, str, int | None]]:
    """Yields the folder, the driver and the megabits per second of each hardware interface.

    The speed is ``None`` if unknown, as for virtual devices.
    """
    for device in sorted((root / "sys/class/net").glob("*")):
        # Bridges, tunnels and the loopback have no device; type 1 is Ethernet.
        if exists(device / "device") and read_quietly(device / "type").strip() == "1":
            speed = read_quietly(device / "speed").strip()
            driver = (device / "device/driver").resolve().name
            yield device, driver, int(speed) if speed.isdigit() and int(speed) > 0 else None


def _slurm() -> str:
    sbatch = shutil.which("sbatch")
    if not sbatch:
        return ""
    done = process.run_process([sbatch, "--version"], environment=os.environ, timeout_s=10.0)
    return _parse_slurm_version(done.output) or "unknown version"


def _fields(text: str) -> Mapping[str, str]:
    """Returns the first value of each name in lines of ``name : value``."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip(), value.strip())
    return found
