"""The process that the daemons of the tests' PBS run below; see ``pbs_cluster``.

It adopts what they leave behind. How it takes orders: see ``daemons``.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "slurm"))

from daemons import Daemons, answer
from pbs_config import (
    DATABASE_PROGRAMS,
    PBS,
    USER,
    USER_NUMBER,
    environment,
    write_files,
    write_node,
)
from slurm_config import NODES, Place
from slurm_nodes import (
    SUBREAPER,
    IsolatedNodes,
    becomes,
    private_memory,
    private_network,
)


class Keeper(Daemons):
    """Those of PBS, in their order."""

    def __init__(self, place: Place, nodes: IsolatedNodes, log: IO[bytes]) -> None:
        super().__init__(place, nodes, log, environment(place.folder / "pbs.conf"))

    def start_all(self) -> None:
        """Starts everything, and tells the server of its nodes and queue."""
        self.nodes.make(NODES)  # the database listens on an address of their network
        self._call(f"{PBS}/libexec/pbs_db_utility", "install_db")
        self._start("pbs_comm", "-N")
        self._start("pbs_server.bin", "-t", "create")
        self._until("qstat", "-B", holds="Active")
        self._start("pbs_sched", "-N")
        for name in NODES:
            self._launch(name)
        for order in (
            *(f"create node {name}" for name in NODES),
            "create queue workq queue_type=execution",
            "set queue workq enabled=true, started=true",
            "set server default_queue=workq, scheduling=true, job_history_enable=true",
            # All of it is much longer by default: these are tests.
            "set server scheduler_iteration=1, node_fail_requeue=3",
            # Jobs may submit jobs: users are the same on all hosts.
            "set server flatuid=true",
            *(f"set node {name} resources_available.ncpus=2" for name in NODES),
        ):
            self._call("qmgr", "-c", order)
        for name in NODES:
            self._until("pbsnodes", name, holds="state = free")

    def start(self, daemon: str) -> None:
        """Starts the server again, with all that it knew."""
        self._start(daemon)
        self._until("qstat", "-B", holds="Active")

    def stop(self, daemon: str) -> None:
        """Ends the server in order; jobs that run go on."""
        self._call("qterm", "-t", "quick")
        psutil.wait_procs(self._named(daemon), timeout=60)

    def pause(self, daemon: str) -> None:
        self._signal(daemon, signal.SIGSTOP)

    def resume(self, daemon: str) -> None:
        self._signal(daemon, signal.SIGCONT)

    def revive(self, node: str) -> None:
        self.nodes.make([node])
        self._launch(node)
        self._until("pbsnodes", node, holds="state = free")

    def _signal(self, daemon: str, number: signal.Signals) -> None:
        for process in self._named(daemon):
            process.send_signal(number)

    def _named(self, daemon: str) -> list[psutil.Process]:
        psutil.wait_procs(living := self._living(), timeout=0)  # collects those that ended
        return [process for process in living if process.is_running() and process.name() == daemon]

    def _launch(self, node: str) -> None:
        conf = write_node(self.place, node)
        self.nodes.launch(node, ["pbs_mom", "-N"], environment(conf))


def _bind(what: Path, where: Path) -> None:
    if what.is_dir():
        where.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "--bind", what.resolve(), where], check=True)


def _make_place(folder: Path, repository: Path) -> Place:
    """The cluster's files, and what its ordinary user needs, where that user can read it."""
    private_network()  # PBS's daemons always listen on the same ports
    place = Place(folder, 0, isolated=True)
    home = folder / "server"
    home.mkdir()
    assert private_memory(home), "no file systems of one's own can be mounted here"
    home.chmod(0o755)
    write_files(place)
    _bind(Path(sys.base_prefix), folder / "python")
    _bind(repository, folder / "repository")
    _bind(Path(psutil.__file__).parents[1], folder / "packages")
    for mpi in (repository / ".mpi").iterdir():
        if mpi.is_dir():
            _bind(mpi, folder / "mpi" / mpi.name)
    for name in ("hosts", "passwd", "group"):
        _bind(folder / "etc" / name, Path("/etc") / name)
    # Debian's PostgreSQL puts its socket there, by a name that is always the same.
    (folder / "sockets").mkdir()
    (folder / "sockets").chmod(0o1777)
    _bind(folder / "sockets", Path("/run/postgresql"))
    shutil.chown(folder / "user", USER_NUMBER, USER_NUMBER)
    return place


def main() -> None:
    """Keeps a cluster in the folder that is named first, for the repository named second."""
    folder, repository = Path(sys.argv[1]), Path(sys.argv[2])
    becomes(SUBREAPER, 1)
    os.environ["PATH"] = f"{DATABASE_PROGRAMS}:{os.environ['PATH']}"
    with folder.with_suffix(".log").open("ab") as log:
        place = _make_place(folder, repository)
        keeper = Keeper(place, IsolatedNodes(place, log), log)
        try:
            keeper.start_all()
            answer(user=USER)
            keeper.serve()
        finally:
            keeper.end_all()


if __name__ == "__main__":
    main()
