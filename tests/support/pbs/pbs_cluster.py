"""A real OpenPBS of three nodes on this machine, for the tests; needs root and an OpenPBS.

The server, its scheduler and its database are on this host; each node is isolated as those of the
tests' Slurm are (see ``slurm_nodes``). Jobs are an ordinary user's, whom only the cluster knows.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from keepers import KeptCluster, running_keeper
from made_files import write_script
from pbs_config import PBS, USER_NUMBER, environment
from slurm_config import NODES
from small_disks import small_disk
from waiting import wait_for

ROOT = Path(__file__).parents[3]
_SERVER = "pbs_server.bin"


def has_pbs() -> bool:
    """Whether this machine has all that the cluster needs."""
    return os.getuid() == 0 and (PBS / "sbin" / _SERVER).exists()


class Cluster(KeptCluster):
    """The running cluster.

    Attributes:
        environment: what to call PBS's programs in, as the user.
        as_user: words before a command that is the user's, and sees what the cluster sees.
    """

    controller = _SERVER

    def __init__(self, folder: Path, keeper: subprocess.Popen[str]) -> None:
        super().__init__(folder, keeper, folder.with_suffix(".log"))
        self.conf = str(folder / "pbs.conf")
        spaces = f"/proc/{keeper.pid}/ns"
        self.inside = ("nsenter", f"--mount={spaces}/mnt", f"--net={spaces}/net", "--")
        number = str(USER_NUMBER)
        self.as_user = (
            *self.inside, "setpriv", "--reuid", number, "--regid", number, "--clear-groups",
        )  # fmt: skip
        self.environment = {
            "PATH": f"{PBS}/bin:/usr/bin:/bin",
            "HOME": str(folder / "user"),
            "PBS_CONF_FILE": self.conf,
        }

    @property
    def for_root(self) -> dict[str, str]:
        """What to call PBS's programs in from a process of root's: they are the user's all the
        same.
        """
        programs = self.folder / "programs"
        if not programs.exists():
            before = " ".join(self.as_user)
            for program in ("qsub", "qdel", "qselect", "qstat", "pbsnodes"):
                write_script(programs / program, f'exec {before} {PBS}/bin/{program} "$@"')
        return {**self.environment, "PATH": f"{programs}:/usr/bin:/bin"}

    def user_folder(self) -> Path:
        """A new folder that is the user's."""
        folder = Path(tempfile.mkdtemp(dir=self.folder / "user"))
        folder.chmod(0o755)
        shutil.chown(folder, USER_NUMBER, USER_NUMBER)
        return folder

    def call(self, *arguments: str) -> str:
        """What a program prints to the user; it must succeed."""
        return self._call([*self.as_user, *arguments], self.environment)

    def order(self, *arguments: str) -> str:
        """What a program prints to the administrator."""
        return self._call([*self.inside, *arguments], environment(Path(self.conf)))

    def _call(self, arguments: list[str], variables: dict[str, str]) -> str:
        # Each call takes one of 512 reserved ports for a minute: whoever asks in a loop waits.
        time.sleep(0.25)
        done = subprocess.run(
            arguments,
            env=variables,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    def fail_node(self, name: str) -> None:
        """A node dies with all that runs on it."""
        self._order(f"kill {name}")

    def restore_node(self, name: str) -> None:
        """A node that died is back and accepts jobs again."""
        self._order(f"revive {name}")

    def drain_node(self, name: str) -> None:
        """A node gets no more jobs."""
        self.order("pbsnodes", "-o", name)

    def limit_submissions(self, most: int | None) -> None:
        """The most jobs that a user may have waiting and running; ``None`` for no limit."""
        limit = f'set server max_queued = "[u:PBS_GENERIC={most}]"'
        self.order("qmgr", "-c", limit if most else "unset server max_queued")

    def refuse_submissions(self, on: bool = True) -> None:
        """Whether the queue takes no jobs; those there stay."""
        self.order("qmgr", "-c", f"set queue workq enabled={not on}")

    def count_submissions(self) -> int:
        """How many jobs somebody tried to submit."""
        counts = f"cat {self.folder}/server/server_logs/* | grep -c ';Type 1 request'; true"
        return int(self.order("sh", "-c", counts))

    def submit_foreign(self, name: str) -> str:
        """Submits a job of this name that is no campaign's; returns its number."""
        script = self.user_folder() / "foreign"
        script.write_text(f"#PBS -N {name}\n#PBS -l walltime=600\nsleep 600\n")
        return self.call("qsub", "-f", str(script)).partition(".")[0]

    def is_there(self, job: str) -> bool:
        """Whether a job waits or runs."""
        return job in self.call("qselect")

    def hold(self, job: str) -> None:
        """A job doesn't start until somebody releases it."""
        self.call("qhold", job)

    def release(self, job: str) -> None:
        """A job that is held may start."""
        self.call("qrls", job)

    def reach_time_limit(self, job: str) -> None:
        """A running job's time is over."""
        self.order("qalter", "-l", "walltime=1", job)

    def cancel(self, job: str) -> None:
        """Somebody else ends a job."""
        self.order("qdel", job)

    def start_jobs(self, does_start: bool) -> None:
        """Whether jobs that wait are started."""
        self.order("qmgr", "-c", f"set queue workq started={does_start}")

    def tidy(self) -> None:
        """For the next test: all faults are mended, nothing runs or waits, all nodes take jobs."""
        for order in sorted(self._to_mend, reverse=True):
            self._order(order)
        self.limit_submissions(None)
        self.refuse_submissions(False)
        self.start_jobs(True)
        if there := self.order("qselect").split():
            with contextlib.suppress(AssertionError):  # one may have ended
                self.order("qdel", "-W", "force", *there)
        wait_for(lambda: not self.order("qselect").split(), "the jobs to end")
        for node in NODES:
            self.order("pbsnodes", "-r", node)
        wait_for(lambda: self.order("pbsnodes", "-a").count("state = free") == 3, "nodes")


@contextlib.contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A cluster that lives as long as the context."""
    # PBS refuses a home that anybody could replace a folder of, such as one below /tmp.
    folder = Path(tempfile.mkdtemp(prefix="ctpbs", dir="/var/spool"))
    folder.chmod(0o755)
    keeper_file = Path(__file__).parent / "pbs_keeper.py"
    program = [sys.executable, str(keeper_file), str(folder), str(ROOT)]
    log = folder.with_suffix(".log")
    try:
        with (
            small_disk(folder),
            log.open("w") as errors,
            running_keeper(program, errors) as keeper,
        ):
            yield Cluster(folder, keeper)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        log.unlink(missing_ok=True)
