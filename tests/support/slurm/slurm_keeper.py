"""The process that the daemons of the tests' Slurm run below; see ``slurm_cluster``.

It adopts what the daemons leave behind. How it takes orders: see ``daemons``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from daemons import Daemons, answer
from slurm_config import NODES, Place, write_files
from slurm_nodes import (
    SUBREAPER,
    IsolatedNodes,
    Nodes,
    NotPermitted,
    PlainNodes,
    becomes,
    private_memory,
)
from waiting import PATIENCE_S, wait_for


class Keeper(Daemons):
    """Those of Slurm, in their order."""

    def __init__(self, place: Place, nodes: Nodes, log: IO[bytes]) -> None:
        folder = place.folder
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/root"),
            "SLURM_CONF": str(folder / "etc" / "slurm.conf"),
            "MYSQL_UNIX_PORT": str(folder / "run" / "db.sock"),
        }
        super().__init__(place, nodes, log, environment)
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def start_all(self) -> None:
        """Starts everything; where nothing waits for another, side by side."""
        run, data = self.place.folder / "run", self.place.folder / "ram" / "db"
        # A server that starts deletes what servers before it left in its folder for such files.
        temporary = f"--tmpdir={run}"
        install = self._start(
            *("mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={data}"),
            *("--auth-root-authentication-method=normal", "--skip-test-db", temporary),
            "--innodb-log-file-size=8M",
        )
        self._start(
            *("munged", "--foreground", f"--key-file={self.place.folder}/etc/munge.key"),
            *(f"--socket={run}/munge.sock", f"--pid-file={run}/munged.pid"),
            *(f"--log-file={self.place.folder}/log/munged.log", f"--seed-file={run}/munged.seed"),
        )
        self._until("munge", "-S", f"{run}/munge.sock", "-n")
        assert install.wait(PATIENCE_S) == 0, "mariadb-install-db failed"
        self._start(
            *("mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", temporary),
            *(f"--socket={run}/db.sock", f"--pid-file={run}/db.pid", "--skip-networking"),
            *("--innodb-flush-log-at-trx-commit=0", "--innodb-lock-wait-timeout=900"),
            *("--innodb-buffer-pool-size=64M", "--innodb-log-file-size=8M", "--skip-log-bin"),
        )
        self._until("mariadb-admin", "--no-defaults", f"--socket={run}/db.sock", "ping")
        self.start("slurmdbd")
        self._call("sacctmgr", "--immediate", "add", "cluster", "test")
        self.start("slurmctld")
        for node in NODES:
            self._launch(node)
        self._until("sinfo", "--noheader", "--format=%T %D", "-p", "main", holds="idle 3")

    def start(self, daemon: str) -> None:
        """Starts slurmctld or slurmdbd and waits until it answers."""
        fresh = daemon == "slurmctld" and daemon not in self._daemons
        self._daemons[daemon] = self._start(daemon, "-D", *(["-c"] if fresh else []))
        if daemon == "slurmctld":
            self._until("scontrol", "ping", holds="UP")
            if not fresh:
                # By itself, it asks its nodes for a sign of life after three seconds.
                self._call("scontrol", "reconfigure")
        else:
            self._until("sacctmgr", "--noheader", "list", "cluster")

    def stop(self, daemon: str) -> None:
        """Ends a daemon in order; it saves what it knows."""
        self._daemons[daemon].terminate()
        self.resume(daemon)
        self._daemons[daemon].wait(PATIENCE_S)

    def pause(self, daemon: str) -> None:
        self._daemons[daemon].send_signal(signal.SIGSTOP)

    def resume(self, daemon: str) -> None:
        self._daemons[daemon].send_signal(signal.SIGCONT)

    def revive(self, node: str) -> None:
        """A node that died is switched on; whoever wants it to take jobs must say so to Slurm."""
        self.nodes.make([node])
        self._launch(node)
        self._wait_for_slurmd(node)

    def end_all(self) -> None:
        """Ends everything; jobs are told in order only where their nodes are this host."""
        if not self.place.isolated:
            with contextlib.suppress(subprocess.SubprocessError):
                self._call("scancel", "--full", "--user=root")
            time.sleep(0.2)
        super().end_all()

    def _launch(self, node: str) -> None:
        self.nodes.launch(node, ["slurmd", "-D", "-N", node], self.environment)

    def _wait_for_slurmd(self, node: str) -> None:
        # Slurm takes a node for usable as soon as somebody says so, and loses jobs that it sends.
        def answers() -> bool:
            try:
                socket.create_connection(self.place.slurmd(node), timeout=5).close()
            except OSError:
                return False
            return True

        wait_for(answers, f"slurmd of {node}")


@contextlib.contextmanager
def _claimed_number() -> Iterator[int]:
    """A number that no other cluster on this machine has; the kernel frees it when we end."""
    for number in range(200):
        place = Place(Path(), number, isolated=False)
        with socket.socket(socket.AF_UNIX) as claim, contextlib.ExitStack() as stack:
            try:
                claim.bind(f"\0commtune-tests-slurm-{number}")
                for port in place.ports:
                    probe = stack.enter_context(socket.socket())
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("", port))
                    probe.listen()
            except OSError:
                continue
            stack.close()
            yield number
            return
    raise OSError("all 200 numbers for clusters on this machine are taken")


def _make_nodes(place: Place, log: IO[bytes]) -> tuple[Place, Nodes, str]:
    """Isolated nodes where that can be, and if not, why."""
    write_files(place)
    ram = place.folder / "ram"
    private_memory(ram)
    for name in ("db", "state"):
        (ram / name).mkdir()
    if not place.isolated:
        return place, PlainNodes(log), "nobody asked for it"
    isolated = IsolatedNodes(place, log)
    try:
        isolated.make(NODES)
    except (NotPermitted, OSError) as error:
        plain = Place(place.folder, place.number, isolated=False)
        write_files(plain)
        return plain, PlainNodes(log), str(error)
    return place, isolated, ""


def main() -> None:
    """Keeps a cluster in the folder that is named first; isolated unless told ``plain``."""
    folder, isolated = Path(sys.argv[1]), sys.argv[2:] != ["plain"]
    becomes(SUBREAPER, 1)
    with (folder / "daemons.log").open("wb") as log, _claimed_number() as number:
        place, nodes, why_plain = _make_nodes(Place(folder, number, isolated), log)
        keeper = Keeper(place, nodes, log)
        try:
            keeper.start_all()
            spare = place.ports[-1]
            answer(isolated=place.isolated, why_plain=why_plain, spare_port=spare)
            keeper.serve()
        finally:
            keeper.end_all()


if __name__ == "__main__":
    main()
