"""The files that the tests' Slurm is configured by."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

NODES = ("n1", "n2", "n3")
CPUS = 2


@dataclass(frozen=True)
class Place:
    """Where a cluster is on this machine.

    Several clusters at a time differ in all of it. The addresses are of the block that is set
    aside for measuring networks (198.18.0.0/15), so that they are nobody's real ones.

    Attributes:
        number: from 0 to 199.
        isolated: nodes have addresses of their own; else all of them are this host.
    """

    folder: Path
    number: int
    isolated: bool

    @property
    def host(self) -> str:
        """The name of this machine, which must be that of the controller's host."""
        return socket.gethostname().split(".")[0]

    @property
    def head(self) -> str:
        """Address of the controller."""
        return f"198.18.{self.number}.254" if self.isolated else "127.0.0.1"

    def address(self, node: str) -> str:
        """Address of a node."""
        number = NODES.index(node) + 1
        return f"198.18.{self.number}.{number}" if self.isolated else "127.0.0.1"

    def card(self, node: str) -> str:
        """Address of a node's network card."""
        return f"02:00:00:00:{self.number:02x}:{NODES.index(node) + 1:02x}"

    def slurmd(self, node: str) -> tuple[str, int]:
        """Address and port of a node's slurmd."""
        return self.address(node), 6818 if self.isolated else self.ports[2 + NODES.index(node)]

    @property
    def ports(self) -> range:
        """Ports of the controller, of accounting, of the nodes, and of a second controller.

        They are below those that the kernel gives out.
        """
        return range(20_000 + 8 * self.number, 20_000 + 8 * self.number + 3 + len(NODES))

    @property
    def hosts(self) -> str:
        """What /etc/hosts says on the nodes."""
        names = {"127.0.0.1": "localhost", self.head: self.host}
        names |= {self.address(node): node for node in NODES}
        return "".join(f"{address} {name}\n" for address, name in names.items())


def write_files(place: Place) -> None:
    """Makes the cluster's folders and writes its configuration."""
    folder = place.folder
    for name in ("etc", "log", "run", "ram", *(f"spool/{node}" for node in NODES)):
        (folder / name).mkdir(parents=True, exist_ok=True)
    key = folder / "etc" / "munge.key"
    key.touch(0o600)
    key.write_bytes(os.urandom(128))
    (folder / "etc" / "hosts").write_text(place.hosts)
    # What slurmctld would send, one a line: -s, the subject, and to whom.
    (folder / "etc" / "mail").write_text(f'#!/bin/sh\necho "$*" >>{folder}/mails\n')
    (folder / "etc" / "mail").chmod(0o755)
    (folder / "etc" / "slurm.conf").write_text("\n".join(_slurm(place)) + "\n")
    (folder / "etc" / "topology.conf").write_text(
        "SwitchName=leaf1 Nodes=n[1-2]\nSwitchName=leaf2 Nodes=n3\n"
        "SwitchName=top Switches=leaf[1-2]\n"
    )
    # Without it, slurmd of 22.05 looks for a cgroup version 2 that it may use.
    (folder / "etc" / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    (folder / "etc" / "slurmdbd.conf").touch(0o600)
    (folder / "etc" / "slurmdbd.conf").write_text("\n".join(_accounting(place)) + "\n")


def _slurm(place: Place) -> list[str]:
    folder, names = place.folder, ",".join(NODES)
    return [
        "ClusterName=test",
        f"SlurmctldHost={place.host}({place.head})",
        f"SlurmctldPort={place.ports[0]}",
        "SlurmUser=root",
        "SlurmdUser=root",
        # A job that is requeued waits that long, seconds.
        f"AuthInfo=socket={folder}/run/munge.sock,cred_expire=5",
        f"StateSaveLocation={folder}/ram/state",
        f"SlurmdSpoolDir={folder}/spool/%n",
        # Files of a step are named after its number: nodes that share a folder would collide.
        f"TmpFS={folder}/spool/%n",
        f"SlurmctldPidFile={folder}/run/slurmctld.pid",
        f"SlurmdPidFile={folder}/run/slurmd.%n.pid",
        f"SlurmctldLogFile={folder}/log/slurmctld.log",
        f"SlurmdLogFile={folder}/log/slurmd.%n.log",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "JobAcctGatherType=jobacct_gather/linux",
        "MpiDefault=none",
        f"MailProg={folder}/etc/mail",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core",
        "SlurmdParameters=config_overrides",
        # A job starts at once, not after the three seconds of the default.
        "SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1",
        "ReturnToService=2",
        "SlurmdTimeout=30",
        "KillWait=1",
        "MessageTimeout=5",
        "TCPTimeout=1",
        "TopologyPlugin=topology/tree",
        "AccountingStorageType=accounting_storage/slurmdbd",
        f"AccountingStorageHost={place.head}",
        f"AccountingStoragePort={place.ports[1]}",
        f"AccountingStoragePass={folder}/run/munge.sock",
        # As on large machines: accounts and QOS that don't exist are refused, and limits hold.
        "AccountingStorageEnforce=associations,limits,qos",
        *(_node(place, node) for node in NODES),
        # Nobody starts it: it is there to differ.
        f"NodeName=big NodeAddr={place.head} Port=9 CPUs={2 * CPUS} State=DOWN Reason=absent",
        f"PartitionName=main Nodes={names} Default=YES MaxTime=60 DefaultTime=5 State=UP",
        f"PartitionName=closed Nodes={names} MaxTime=60 State=DOWN",
        f"PartitionName=mixed Nodes={names},big MaxTime=60 State=UP",
    ]


def _node(place: Place, node: str) -> str:
    address, port = place.slurmd(node)
    name = node if place.isolated else place.host
    return (
        f"NodeName={node} NodeAddr={address} NodeHostname={name} Port={port} "
        f"CPUs={CPUS} Boards=1 SocketsPerBoard=1 CoresPerSocket={CPUS} ThreadsPerCore=1 "
        f"RealMemory={_memory_mib()}"
    )


def _memory_mib() -> int:
    """What a node says that it has: its share of this machine's memory, in MiB."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return max(256, total // (len(NODES) + 1))


def _accounting(place: Place) -> list[str]:
    folder = place.folder
    return [
        "AuthType=auth/munge",
        f"AuthInfo=socket={folder}/run/munge.sock",
        f"DbdHost={place.host}",
        f"DbdAddr={place.head}",
        f"DbdPort={place.ports[1]}",
        "SlurmUser=root",
        "StorageType=accounting_storage/mysql",
        "StorageHost=localhost",
        "StorageUser=root",
        "StorageLoc=accounts",
        f"PidFile={folder}/run/slurmdbd.pid",
        f"LogFile={folder}/log/slurmdbd.log",
    ]
