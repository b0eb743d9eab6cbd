"""A real Slurm of three nodes on this machine, for the tests; needs root and Debian's packages.

All daemons run below a small process of their own that adopts what they leave behind: below the
tests' process, jobs would be taken for strays of the programs that commtune starts, and be ended.

    python tests/slurm_cluster.py    starts one, prints its environment, ends it at Ctrl-D
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

NODES = ("n1", "n2", "n3")
_PROGRAMS = ("slurmctld", "slurmd", "squeue", "munged", "slurmdbd", "mariadbd", "sacctmgr")
_SUBREAPER = 36


def has_slurm() -> bool:
    """Whether this machine has all that the cluster needs."""
    return os.getuid() == 0 and all(shutil.which(program) for program in _PROGRAMS)


class Cluster:
    """The running cluster.

    Attributes:
        environment: what to call Slurm's programs in.
    """

    def __init__(self, folder: Path, ports: list[int]) -> None:
        self.folder = folder
        self.ports = ports
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/root"),
            "SLURM_CONF": str(folder / "etc" / "slurm.conf"),
        }

    def call(self, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
        """What a program prints, standard output and error together; it must succeed."""
        done = subprocess.run(
            arguments,
            env={**self.environment, **(environment or {})},
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout}"
        return done.stdout

    def submit(self, command: str, *options: str) -> str:
        """Submits a batch job that writes to a file out-ID in the folder; returns its id."""
        output = f"--output={self.folder}/out-%j"
        return self.call("sbatch", "--parsable", output, *options, f"--wrap={command}").strip()

    def until(self, job: str, word: str, column: str = "%T") -> None:
        """Waits until squeue says so of the job: its state, or another column."""
        deadline = time.monotonic() + 60
        question = ("squeue", "--noheader", "--states=all", f"--format={column}", f"--jobs={job}")
        while word not in (seen := self.call(*question)).split():
            assert time.monotonic() < deadline, f"job {job} is {seen!r}, not {word}"
            time.sleep(0.05)

    def variant(self, name: str, **changes: str) -> dict[str, str]:
        """An environment with another slurm.conf: these lines differ; an empty value drops one."""
        folder = self.folder / name
        shutil.copytree(self.folder / "etc", folder)
        lines = []
        for line in (folder / "slurm.conf").read_text().splitlines():
            key = line.partition("=")[0]
            if key not in changes:
                lines.append(line)
            elif changes[key]:
                lines.append(f"{key}={changes[key]}")
        (folder / "slurm.conf").write_text("\n".join(lines) + "\n")
        return {**self.environment, "SLURM_CONF": str(folder / "slurm.conf")}


@contextlib.contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A cluster that lives as long as the context."""
    # A short path: names of sockets are at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="ctslurm", dir="/tmp"))
    folder.chmod(0o755)
    cluster = Cluster(folder, _free_ports(3 + len(NODES)))
    _configure(cluster)
    with (folder / "daemons.log").open("wb") as log:
        keeper = subprocess.Popen(
            [sys.executable, __file__, "--keep", str(folder), *map(str, cluster.ports)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _wait_for(keeper, folder)
        yield cluster
    finally:
        assert keeper.stdin
        keeper.stdin.close()
        try:
            keeper.wait(30)
        finally:
            keeper.kill()
            shutil.rmtree(folder, ignore_errors=True)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _wait_for(keeper: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + 60
    while not (folder / "ready").exists():
        log = (folder / "daemons.log").read_text(errors="replace")
        assert keeper.poll() is None, f"the cluster did not start: {log}"
        assert time.monotonic() < deadline, f"the cluster did not start in 60 s: {log}"
        time.sleep(0.05)


def _configure(cluster: Cluster) -> None:
    folder, host = cluster.folder, socket.gethostname().split(".")[0]
    controller, database, _, *nodes = cluster.ports
    for name in ("etc", "log", "run", "state", "spool", "db"):
        (folder / name).mkdir()
    for node in NODES:
        (folder / "spool" / node).mkdir()
    (folder / "etc" / "munge.key").write_bytes(os.urandom(128))
    (folder / "etc" / "munge.key").chmod(0o600)
    lines = [
        "ClusterName=test",
        f"SlurmctldHost={host}(127.0.0.1)",
        f"SlurmctldPort={controller}",
        "SlurmUser=root",
        "SlurmdUser=root",
        f"AuthInfo=socket={folder}/run/munge.sock",
        f"StateSaveLocation={folder}/state",
        f"SlurmdSpoolDir={folder}/spool/%n",
        f"TmpFS={folder}/spool/%n",
        f"SlurmctldPidFile={folder}/run/slurmctld.pid",
        f"SlurmdPidFile={folder}/run/slurmd.%n.pid",
        f"SlurmctldLogFile={folder}/log/slurmctld.log",
        f"SlurmdLogFile={folder}/log/slurmd.%n.log",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "JobAcctGatherType=jobacct_gather/linux",
        "MpiDefault=none",
        "MailProg=/bin/true",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core",
        "SlurmdParameters=config_overrides",
        # A job starts at once, not after the three seconds of the default.
        "SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1",
        "ReturnToService=2",
        "KillWait=1",
        "MessageTimeout=5",
        "TCPTimeout=1",
        "TopologyPlugin=topology/tree",
        "AccountingStorageType=accounting_storage/slurmdbd",
        "AccountingStorageHost=127.0.0.1",
        f"AccountingStoragePort={database}",
        f"AccountingStoragePass={folder}/run/munge.sock",
        *(
            f"NodeName={node} NodeAddr=127.0.0.1 NodeHostname={host} Port={port} CPUs=2"
            for node, port in zip(NODES, nodes, strict=True)
        ),
        "PartitionName=main Nodes=ALL Default=YES MaxTime=60 DefaultTime=5 State=UP",
        "PartitionName=closed Nodes=ALL MaxTime=60 State=DOWN",
    ]
    (folder / "etc" / "slurm.conf").write_text("\n".join(lines) + "\n")
    (folder / "etc" / "topology.conf").write_text(
        "SwitchName=leaf1 Nodes=n[1-2]\nSwitchName=leaf2 Nodes=n3\n"
        "SwitchName=top Switches=leaf[1-2]\n"
    )
    # Without it, slurmd of 22.05 looks for a cgroup version 2 that it may use.
    (folder / "etc" / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    accounts = [
        "AuthType=auth/munge",
        f"AuthInfo=socket={folder}/run/munge.sock",
        f"DbdHost={host}",
        "DbdAddr=127.0.0.1",
        f"DbdPort={database}",
        "SlurmUser=root",
        "StorageType=accounting_storage/mysql",
        "StorageHost=localhost",
        "StorageUser=root",
        "StorageLoc=accounts",
        f"PidFile={folder}/run/slurmdbd.pid",
        f"LogFile={folder}/log/slurmdbd.log",
    ]
    (folder / "etc" / "slurmdbd.conf").write_text("\n".join(accounts) + "\n")
    (folder / "etc" / "slurmdbd.conf").chmod(0o600)


class _Keeper:
    """Starts the daemons in their order, and ends all of them and what they started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "SLURM_CONF": str(folder / "etc" / "slurm.conf"),
            "MYSQL_UNIX_PORT": str(folder / "run" / "db.sock"),
        }

    def start(self, *arguments: str) -> None:
        subprocess.Popen(
            arguments, env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL
        )

    def call(self, *arguments: str) -> str:
        return subprocess.check_output(
            arguments, env=self.environment, cwd=self.folder, text=True, timeout=60
        )

    def until(self, *arguments: str, holds: str = "") -> None:
        deadline = time.monotonic() + 30
        while True:
            done = subprocess.run(
                arguments, env=self.environment, capture_output=True, text=True, timeout=30
            )
            if done.returncode == 0 and holds in done.stdout:
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"{arguments}: {done.stdout}{done.stderr}")
            time.sleep(0.1)

    def start_all(self) -> None:
        run, data = self.folder / "run", self.folder / "db"
        self.start(
            *("munged", "--foreground", f"--key-file={self.folder}/etc/munge.key"),
            *(f"--socket={run}/munge.sock", f"--pid-file={run}/munged.pid"),
            *(f"--log-file={self.folder}/log/munged.log", f"--seed-file={run}/munged.seed"),
        )
        self.call(
            *("mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={data}"),
            *("--auth-root-authentication-method=normal", "--skip-test-db"),
        )
        self.start(
            *("mariadbd", "--no-defaults", "--user=root", f"--datadir={data}"),
            *(f"--socket={run}/db.sock", f"--pid-file={run}/db.pid", "--skip-networking"),
            *("--innodb-flush-log-at-trx-commit=0", "--innodb-lock-wait-timeout=900"),
            *("--innodb-buffer-pool-size=64M", "--skip-log-bin"),
        )
        self.until("munge", "-S", f"{run}/munge.sock", "-n")
        self.until("mariadb-admin", "--no-defaults", f"--socket={run}/db.sock", "ping")
        self.start("slurmdbd", "-D")
        self.until("sacctmgr", "--noheader", "list", "cluster")
        self.call("sacctmgr", "--immediate", "add", "cluster", "test")
        self.start("slurmctld", "-D", "-c")
        self.until("scontrol", "ping", holds="UP")
        for node in NODES:
            self.start("slurmd", "-D", "-N", node)
        self.until(
            "sinfo", "--noheader", "--format=%T %D", "-p", "main", holds=f"idle {len(NODES)}"
        )

    def end_all(self) -> None:
        with contextlib.suppress(subprocess.SubprocessError):
            self.call("scancel", "--full", "--user=root")
        time.sleep(0.2)
        for number in (signal.SIGTERM, signal.SIGKILL):
            found = psutil.Process().children(recursive=True)
            for process in found:
                with contextlib.suppress(psutil.Error):
                    process.send_signal(number)
            psutil.wait_procs(found, timeout=3)


def _keep(folder: Path) -> None:
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    keeper = _Keeper(folder)
    try:
        keeper.start_all()
        (folder / "ready").touch()
        sys.stdin.read()
    finally:
        keeper.end_all()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--keep"]:
        _keep(Path(sys.argv[2]))
    else:
        with running_cluster() as made:
            print(f"export SLURM_CONF={made.environment['SLURM_CONF']}", flush=True)
            sys.stdin.read()
