"""Nodes on one machine: with a network, a host name and processes of their own where that may be.

Each isolated node has namespaces of its own: network, host name, shared memory, processes and
mounts. So an MPI takes it for another machine, and its death takes along all that runs there.

    this host  cts7 ──── switch ──┬── n1  198.18.7.1
               198.18.7.254       ├── n2  198.18.7.2
                                  └── n3  198.18.7.3

The switch has a namespace too: rules that this host has for its own network don't reach it, and
all of the network is gone when its process ends, however it ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol

import psutil
from slurm_config import Place
from waiting import PATIENCE_S

SWITCH = "switch"
SUBREAPER = 36
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)

#: Waits for what never comes, until the keeper is gone; bash collects processes meanwhile.
_FOREVER = "read -r"
#: The first process of a node: it keeps the namespaces there.
_FIRST_PROCESS = f"""
set -e
hostname "$1"
mount -t tmpfs -o mode=1777 shm /dev/shm
mount --bind "$2/etc/hosts" /etc/hosts
ip link set lo up
: >"$2/run/$1.up"
{_FOREVER}
"""


class NotPermitted(Exception):
    """Namespaces or networks can't be made here."""


class Nodes(Protocol):
    """What the keeper needs of the machines that slurmd runs on."""

    def make(self, names: Sequence[str]) -> None:
        """Makes these nodes; nothing runs on them yet."""

    def launch(self, name: str, daemon: Sequence[str], environment: Mapping[str, str]) -> None:
        """Starts a daemon on a node."""

    def kill(self, name: str) -> None:
        """Ends all that runs on a node, at once."""


def becomes(option: int, value: int) -> None:
    """Sets an option of this process that it keeps when it becomes another program."""
    _LIBC.prctl(option, value, 0, 0, 0)


def ends_with_us() -> None:
    """Called between fork and exec: the kernel kills the program when its starter is gone."""
    becomes(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _holds_orphans() -> None:
    ends_with_us()
    becomes(SUBREAPER, 1)


class PlainNodes:
    """All nodes are this host. What a slurmd leaves behind stays below a process of its node."""

    def __init__(self, log: IO[bytes]) -> None:
        self._log = log
        self._holders: dict[str, subprocess.Popen[bytes]] = {}

    def make(self, names: Sequence[str]) -> None:
        """There is nothing to make."""

    def launch(self, name: str, daemon: Sequence[str], environment: Mapping[str, str]) -> None:
        """Starts a daemon below the node's process."""
        self._holders[name] = subprocess.Popen(
            ["bash", "-c", f'"$@" </dev/null & {_FOREVER}', "node", *daemon],
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            preexec_fn=_holds_orphans,
        )

    def kill(self, name: str) -> None:
        """Ends all that is below the node's process, then that."""
        if holder := self._holders.pop(name, None):
            while found := psutil.Process(holder.pid).children(recursive=True):
                for process in found:
                    with contextlib.suppress(psutil.Error):
                        process.kill()
                psutil.wait_procs(found, timeout=3)
            holder.kill()
            holder.wait()


class IsolatedNodes:
    """Nodes with namespaces of their own, joined by a switch."""

    def __init__(self, place: Place, log: IO[bytes]) -> None:
        self.place = place
        self._log = log
        self._holders: dict[str, subprocess.Popen[bytes]] = {}

    def make(self, names: Sequence[str]) -> None:
        """Makes nodes; also the switch, if it isn't there yet.

        Raises:
            NotPermitted: this user may not, here.
        """
        new = [name for name in (SWITCH, *names) if name not in self._holders]
        for name in new:
            (self.place.folder / "run" / f"{name}.up").unlink(missing_ok=True)
            self._holders[name] = self._hold(name)
        for name in new:
            self._wait_for(name)
        if SWITCH in new:
            self._make_switch()
        for name in names:
            self._connect(name)

    def launch(self, name: str, daemon: Sequence[str], environment: Mapping[str, str]) -> None:
        """Starts a daemon inside of the node."""
        entering = [*self._entering(name), "--uts", "--ipc", "--mount", "--pid", "--"]
        subprocess.Popen(
            [*entering, *daemon],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            preexec_fn=ends_with_us,
        )

    def kill(self, name: str) -> None:
        """Ends the first process of the node, and so all of them."""
        if name in self._holders:
            os.kill(self._first(name), signal.SIGKILL)
            self._holders.pop(name).wait()

    def _hold(self, name: str) -> subprocess.Popen[bytes]:
        kinds = ("--net", "--uts", "--ipc", "--mount", "--pid", "--mount-proc")
        first = ("bash", "-c", _FIRST_PROCESS, "node", name, str(self.place.folder))
        return subprocess.Popen(
            ["unshare", *kinds, "--fork", "--kill-child", *first],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            preexec_fn=ends_with_us,
        )

    def _wait_for(self, name: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not (self.place.folder / "run" / f"{name}.up").exists():
            if self._holders[name].poll() is not None or time.monotonic() > deadline:
                raise NotPermitted(f"can't make the namespaces of {name}")
            time.sleep(0.005)

    def _make_switch(self) -> None:
        outside = f"cts{self.place.number}"
        # The label makes it the address of an alias: so UCX, as in MPICH, finds none of the
        # interface itself and passes it over. MPI_Init fails where an interface that it uses goes
        # meanwhile, and this one goes with the cluster.
        address = f"addr add {self.place.head}/24 dev {outside} label {outside}:0"
        self._ip(
            [f"link add {outside} type veth peer name head netns {self._first(SWITCH)}"],
            [address, f"link set {outside} up"],
        )
        self._ip(
            ["link add bridge type bridge forward_delay 0", "link set bridge up"],
            ["link set head master bridge up"],
            where=SWITCH,
        )

    def _connect(self, name: str) -> None:
        ends = f"{name} netns {self._first(SWITCH)}", f"eth0 netns {self._first(name)}"
        # The end of a node that died may still be there for a moment.
        self._ip([f"link del {name}"], where=SWITCH, must=False)
        self._ip([f"link add {ends[0]} type veth peer name {ends[1]}"])
        self._ip([f"link set {name} master bridge up"], where=SWITCH)
        # A node that is back has the card that it had: others remember its address.
        card = f"link set eth0 address {self.place.card(name)}"
        address = f"addr add {self.place.address(name)}/24 dev eth0"
        self._ip([card, address, "link set eth0 up"], where=name)

    def _ip(self, *commands: Sequence[str], where: str = "", must: bool = True) -> None:
        prefix = [*self._entering(where), "--"] if where else []
        text = "".join(f"{line}\n" for lines in commands for line in lines)
        done = subprocess.run(
            [*prefix, "ip", "-batch", "-"],
            input=text,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_S,
            check=False,
        )
        if done.returncode and must:
            raise NotPermitted(f"ip {text!r}: {done.stdout.strip()}")

    def _entering(self, name: str) -> list[str]:
        return ["nsenter", f"--target={self._first(name)}", "--net"]

    def _first(self, name: str) -> int:
        holder = self._holders[name].pid
        return int(Path(f"/proc/{holder}/task/{holder}/children").read_text())


def type_on_nodes(folder: Path, command: str) -> None:
    """Types a command on all isolated nodes of the cluster in a folder, as root."""
    firsts = [
        process.pid
        for process in psutil.process_iter(["name", "cmdline"])
        # A process that is just over has no command line any more.
        if process.info["name"] == "bash"
        and (words := process.info["cmdline"] or [])[-3:-2] == ["node"]
        and words[-2] != SWITCH
        and words[-1] == str(folder)
    ]
    assert firsts, f"no isolated nodes in {folder}"
    for first in firsts:
        entered = ["nsenter", f"--target={first}", "--mount", "--pid", "--", "sh", "-c", command]
        done = subprocess.run(
            entered, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout.decode()}"


def private_network() -> None:
    """Gives this process, and those it starts, a network of their own: no port of it is taken."""
    new_network = 0x40000000
    assert not _LIBC.unshare(new_network), "no network of one's own can be made here"
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def private_memory(folder: Path) -> bool:
    """Puts a file system in memory at a folder, seen only by this process and those it starts.

    It is gone when the last of them is. Returns whether that could be done.
    """
    new_mounts, private, recursive = 0x20000, 1 << 18, 16384
    if _LIBC.unshare(new_mounts):
        return False
    if _LIBC.mount(b"none", b"/", None, private | recursive, None):
        return False
    return not _LIBC.mount(b"ram", str(folder).encode(), b"tmpfs", 0, b"mode=700")
