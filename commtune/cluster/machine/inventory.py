"""Inspects this machine for `commtune systems detect` and `new`."""

from __future__ import annotations

import re
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from commtune.cluster.machine.description import describe_machine, list_ethernet, parse_rate
from commtune.cluster.machine.gpus import inspect_gpus, run_quietly
from commtune.cluster.mpi.discovery import find_mpi
from commtune.cluster.slurm.site import describe_slurm
from commtune.errors import CommtuneError
from commtune.paths import read_quietly
from commtune.systems.detection.recognition import adapter_name
from commtune.systems.detection.seen import Clues, SeenMachine, SeenPort

#: Programs by which other schedulers are recognized.
_SCHEDULERS = {"pbs": "qsub", "lsf": "bsub", "flux": "flux"}


def collect_clues(environment: Mapping[str, str], cluster: str) -> Clues:
    """Returns what may identify this machine; ``cluster`` is its name in Slurm, if any."""
    return Clues(_host(), cluster or environment.get("SLURM_CLUSTER_NAME", ""), environment)


def _host() -> str:
    """Returns the host name, with its domain unless the resolver's answer is another name."""
    name, whole = socket.gethostname(), socket.getfqdn()
    return whole if whole.startswith(f"{name}.") else name


def inspect_machine(
    environment: Mapping[str, str],
    root: Path = Path("/"),
    ask: Callable[[Sequence[str]], str] | None = None,
) -> SeenMachine:
    """Inspects hardware, network ports, scheduler and MPI.

    Args:
        environment: our variables, also for Slurm's commands.
        root: another one reads a recorded tree, without scheduler and MPI.
        ask: runs nvidia-smi.
    """
    here = root == Path("/")
    machine = describe_machine(root)
    host = socket.gethostname()
    slurm = describe_slurm(environment, host) if here else None
    clues = collect_clues(environment, slurm.cluster if slurm else "") if here else Clues()
    others = (kind for kind, program in _SCHEDULERS.items() if shutil.which(program))
    return SeenMachine(
        clues=clues,
        processor=machine.cpu_model,
        sockets=machine.sockets,
        cores=machine.cores_physical,
        numa_nodes=_numa_nodes(root) or machine.numa_nodes,
        memory=machine.memory_bytes,
        virtual=machine.virtualization,
        gpus=inspect_gpus(machine.gpus, root, ask or (run_quietly if here else lambda _: "")),
        ports=(*_rdma(root), *_ethernet(root)),
        slurm=slurm,
        scheduler=next(others, "") if here and slurm is None else "",
        mpi=_mpi() if here else None,
    )


def _mpi() -> tuple[str, str] | None:
    """Returns library and version of the MPI on PATH; our wheels don't belong to the system."""
    try:
        found = find_mpi("path")
    except CommtuneError:
        return None
    return found.flavour.library, found.version


def _numa_nodes(root: Path) -> int:
    """Counts NUMA nodes with processors; others are memory of GPUs, or memory alone."""
    nodes = (root / "sys/devices/system/node").glob("node[0-9]*/cpulist")
    return sum(1 for node in nodes if read_quietly(node).strip())


def _rdma(root: Path) -> Iterator[SeenPort]:
    for device in sorted((root / "sys/class/infiniband").glob("*"), key=_in_order):
        states = {port: read_quietly(port / "state") for port in sorted(device.glob("ports/*"))}
        ports = [port for port, state in states.items() if not state or "ACTIVE" in state]
        model = adapter_name(read_quietly(device / "hca_type").strip() or device.name)
        for port in ports:
            name = device.name if len(ports) == 1 else f"{device.name}:{port.name}"
            rate = read_quietly(port / "rate")
            speed = parse_rate(rate)
            yield SeenPort(name, model, _bandwidth(speed), rdma=True, network=_network(port, rate))


def _bandwidth(speed_mbit: int | None) -> float | None:
    """Converts megabits per second to bytes per second."""
    return None if speed_mbit is None else speed_mbit * 1e6 / 8


def _network(port: Path, rate: str) -> str:
    """Returns ``InfiniBand NDR`` for ``400 Gb/sec (4X NDR)``, or the link layer (``Ethernet``)."""
    layer = read_quietly(port / "link_layer").strip() or "InfiniBand"
    kind = re.search(r"\(\d+X (\w+)\)", rate)
    return f"InfiniBand {kind[1]}" if layer == "InfiniBand" and kind else layer


def _ethernet(root: Path) -> Iterator[SeenPort]:
    """Yields hardware interfaces that are up."""
    for device, driver, speed in sorted(list_ethernet(root), key=lambda one: _in_order(one[0])):
        if read_quietly(device / "operstate").strip() == "down":
            continue
        model = adapter_name(driver)
        network = "Slingshot 11" if "Slingshot" in model else "Ethernet"
        yield SeenPort(device.name, model, _bandwidth(speed), network=network)


def _in_order(path: Path) -> list[str | int]:
    """Returns a sort key with which mlx5_10 comes after mlx5_9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name)]
