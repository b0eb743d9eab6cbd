"""A real Slurm of three nodes on this machine, for the tests; needs root and Debian's packages.

Each node is isolated (its own network, host name, processes, shared memory) where this machine
permits that, so that MPI crosses nodes; see ``slurm_nodes``.

All daemons run below a small process of their own that adopts what they leave behind: below the
tests' process, jobs would be taken for strays of the programs that commtune starts, and be ended.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from keepers import KeptCluster, running_keeper
from slurm_config import NODES
from small_disks import small_disk
from waiting import PATIENCE_S, wait_for

__all__ = ["NODES", "Cluster", "has_slurm", "missing_packages", "running_cluster"]

#: What the cluster needs: by Debian package, a program or file of it.
_NEEDED = {
    "slurm-wlm": "slurmctld slurmd",
    "slurm-client": "sbatch squeue sacct sacctmgr",
    "munge": "munged",
    "slurmdbd": "slurmdbd",
    "mariadb-server": "mariadbd mariadb-install-db",
    "iproute2": "ip",
    "util-linux": "unshare nsenter",
}
#: Slurm loads the first by its whole name when a step asks for PMIx.
_NEEDED_FILES = {
    "libpmix-dev": "*/pmix2/lib/libpmix.so",
    "slurm-wlm-mysql-plugin": "*/slurm-wlm/accounting_storage_mysql.so",
}
_NOT_ASKED = {"MESSAGE_NODE_REGISTRATION_STATUS", "REQUEST_STATS_INFO"}
#: Nodes that take jobs, or will when those there have ended; and those that somebody must resume.
_USABLE = {"idle", "mixed", "allocated", "completing"}
_OUT_OF_USE = {"down", "down*", "drained", "drained*", "draining", "draining*"}


def missing_packages() -> list[str]:
    """Debian's packages that must be installed before a cluster can start."""
    lacking = {
        package
        for package, programs in _NEEDED.items()
        if not all(shutil.which(program) for program in programs.split())
    }
    lacking |= {
        package for package, file in _NEEDED_FILES.items() if not any(Path("/usr/lib").glob(file))
    }
    return sorted(lacking)


def has_slurm() -> bool:
    """Whether this machine has all that the cluster needs."""
    return os.getuid() == 0 and not missing_packages()


class Cluster(KeptCluster):
    """The running cluster.

    Attributes:
        environment: what to call Slurm's programs in.
        isolated: whether nodes have networks and processes of their own, so that MPI crosses them.
        why_plain: why they don't.
        spare_port: for a second controller; no other cluster on this machine has it.
    """

    controller = "slurmctld"

    def __init__(self, folder: Path, keeper: subprocess.Popen[str]) -> None:
        super().__init__(folder, keeper, folder / "daemons.log")
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/root"),
            "SLURM_CONF": str(folder / "etc" / "slurm.conf"),
        }
        self._refuses = self._limits = False
        self.isolated = bool(self.started["isolated"])
        self.why_plain = str(self.started["why_plain"])
        self.spare_port = str(self.started["spare_port"])

    def call(self, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
        """What a program prints, standard output and error together; it must succeed."""
        done = self._done(arguments, environment)
        assert done.returncode == 0, f"{arguments}: {done.stdout}"
        return done.stdout

    def _done(
        self, arguments: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            arguments,
            env={**self.environment, **(environment or {})},
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def submit(self, command: str, *options: str) -> str:
        """Submits a batch job that writes to a file out-ID in the folder; returns its id."""
        output = f"--output={self.folder}/out-%j"
        return self.call("sbatch", "--parsable", output, *options, f"--wrap={command}").strip()

    def output(self, job: str) -> str:
        """What a job that was submitted here has written so far."""
        return (self.folder / f"out-{job}").read_text()

    def until(self, job: str, word: str, column: str = "%T") -> None:
        """Waits until squeue says so of the job: its state, or another column."""
        question = ("squeue", "--noheader", "--states=all", f"--format={column}", f"--jobs={job}")
        wait_for(lambda: word in self.call(*question).split(), f"job {job} to be {word}")

    def variant(self, name: str, **changes: str) -> dict[str, str]:
        """An environment with another slurm.conf: these lines differ; an empty value drops one.

        What was made under the name before is taken as it is.
        """
        folder = self.folder / name
        environment = {**self.environment, "SLURM_CONF": str(folder / "slurm.conf")}
        if folder.exists():
            return environment
        shutil.copytree(self.folder / "etc", folder)
        lines = []
        for line in (folder / "slurm.conf").read_text().splitlines():
            key = line.partition("=")[0]
            if key not in changes:
                lines.append(line)
            elif changes[key]:
                lines.append(f"{key}={changes[key]}")
        (folder / "slurm.conf").write_text("\n".join(lines) + "\n")
        return environment

    @property
    def without_accounting(self) -> dict[str, str]:
        """An environment in which this Slurm has no accounting."""
        return self.variant("no-accounts", AccountingStorageType="accounting_storage/none")

    @property
    def impatient(self) -> dict[str, str]:
        """An environment in which programs try for one second, not five, to reach slurmctld."""
        return self.variant("impatient", MessageTimeout="1")

    def start_controller(self) -> None:
        super().start_controller()
        self._until_usable(*NODES)

    def stop_accounting(self) -> None:
        """Ends slurmdbd; slurmctld keeps what it has to say to it."""
        self._order("stop slurmdbd")

    def start_accounting(self) -> None:
        """Starts slurmdbd again."""
        self._order("start slurmdbd")

    def refuse_submissions(self, on: bool = True) -> None:
        """Whether sbatch answers that the partition takes no jobs now; those there stay."""
        state = "drain" if on else "up"
        self._refuses = on
        self.call("scontrol", "update", "partitionname=main", f"state={state}")

    def limit_submissions(self, most: int | None) -> None:
        """The most jobs that a user may have waiting and running; ``None`` for no limit."""
        self._limits = most is not None
        limit = f"MaxSubmitJobsPerUser={-1 if most is None else most}"
        self.call("sacctmgr", "--immediate", "modify", "qos", "normal", "set", limit)

    def count_requests(self, kind: str) -> int:
        """How many requests of a kind slurmctld had, by sdiag's name less REQUEST_."""
        said = re.search(rf"REQUEST_{kind} .*count:(\d+)", self.call("sdiag"))
        return int(said[1]) if said else 0

    def requests(self) -> Counter[str]:
        """What slurmctld was asked so far, by kind; without nodes that register, and sdiag."""
        kinds = self.call("sdiag").split("by message type")[1].split("Remote Procedure")[0]
        counted = re.findall(r"^\s*(\w+)\s+\(\s*\d+\) count:(\d+)", kinds, re.MULTILINE)
        return Counter({kind: int(count) for kind, count in counted if kind not in _NOT_ASKED})

    def mails(self) -> list[str]:
        """The mails that slurmctld sent so far: subject and recipient of each."""
        sent = self.folder / "mails"
        return sent.read_text().splitlines() if sent.exists() else []

    def count_submissions(self) -> int:
        """How many jobs somebody tried to submit."""
        return self.count_requests("SUBMIT_BATCH_JOB")

    def count_account_requests(self) -> int:
        """How many questions about jobs slurmdbd had: of sacct."""
        stats = self.call("sacctmgr", "show", "stats")
        said = re.search(r"DBD_GET_JOBS_COND .*count:(\d+)", stats)
        return int(said[1]) if said else 0

    def reach_time_limit(self, job: str) -> None:
        """A running job's time is over; Slurm itself looks but twice a minute."""
        update = ("scontrol", "update", f"jobid={job}", "EndTime=now")
        # No job ends in the second in which it began: that is an invalid time.

        def is_taken() -> bool:
            done = self._done(update)
            assert done.returncode == 0 or "Invalid time" in done.stdout, done.stdout
            return done.returncode == 0

        wait_for(is_taken, f"job {job} to be over its time")

    def fail_node(self, name: str, *, told: bool = True) -> None:
        """A node dies with all that runs on it.

        Args:
            told: Slurm learns it at once; by itself it takes a minute.
        """
        self._order(f"kill {name}")
        if told:
            # What slurmd had said before may arrive only now, and would end the state "down".
            self.drain_node(name)
            self.call("scontrol", "update", f"nodename={name}", "state=down", "reason=test")

    def drain_node(self, name: str) -> None:
        """A node gets no more jobs."""
        self.call("scontrol", "update", f"nodename={name}", "state=drain", "reason=test")

    def submit_foreign(self, name: str) -> str:
        """Submits a job of this name that is no campaign's; returns its number."""
        return self.submit("exec sleep 600", f"--job-name={name}", "-N1", "-w", "n3")

    def is_there(self, job: str) -> bool:
        """Whether a job waits or runs."""
        return job in self.call("squeue", "--noheader", "--format=%A").split()

    def hold(self, job: str) -> None:
        """A job doesn't start until somebody releases it."""
        self.call("scontrol", "hold", job)

    def release(self, job: str) -> None:
        """A job that is held may start."""
        self.call("scontrol", "release", job)

    def cancel(self, job: str) -> None:
        """Somebody else ends a job."""
        self.call("scancel", job)

    def restore_node(self, name: str) -> None:
        """A node that died is back and accepts jobs again."""
        self._order(f"revive {name}")
        self._until_usable(name)

    def tidy(self) -> None:
        """For the next test: all faults are mended, nothing runs or waits, all nodes take jobs."""
        for order in sorted(self._to_mend):
            self._order(order)
        if self._refuses:
            self.refuse_submissions(False)
        if self._limits:
            self.limit_submissions(None)
        self.call("scancel", "--user=root")
        question = ("squeue", "--noheader", "--format=%i")
        wait_for(lambda: not self.call(*question).split(), "the jobs to end")
        self._until_usable(*NODES)

    def _until_usable(self, *nodes: str) -> None:
        def are_usable() -> bool:
            words = self._words(nodes)
            for node in [node for node, word in words if word in _OUT_OF_USE]:
                done = self._done(("scontrol", "update", f"nodename={node}", "state=resume"))
                # It may have come back by itself meanwhile.
                assert done.returncode == 0 or "Invalid node state" in done.stdout, done.stdout
            return all(word in _USABLE for _, word in words)

        wait_for(are_usable, f"{nodes} to take jobs")

    def _words(self, nodes: Sequence[str]) -> list[tuple[str, str]]:
        """Names of nodes, and Slurm's words for their states."""
        question = ("sinfo", "--noheader", "--Node", f"--nodes={','.join(nodes)}")
        lines = self.call(*question, "--format=%N %T").splitlines()
        return [(name, word) for name, word in map(str.split, lines)]


@contextlib.contextmanager
def running_cluster(*, isolated: bool = True) -> Iterator[Cluster]:
    """A cluster that lives as long as the context.

    Args:
        isolated: nodes are isolated where this machine permits it.
    """
    with contextlib.ExitStack() as made:
        # A short path: names of sockets are at most 107 bytes.
        temporary = tempfile.TemporaryDirectory(
            prefix="ctslurm", dir="/tmp", ignore_cleanup_errors=True
        )
        folder = Path(made.enter_context(temporary))
        folder.chmod(0o755)
        made.enter_context(small_disk(folder))
        log = made.enter_context((folder / "daemons.log").open("wb"))
        program = [sys.executable, str(Path(__file__).parent / "slurm_keeper.py"), str(folder)]
        program += [] if isolated else ["plain"]
        yield Cluster(folder, made.enter_context(running_keeper(program, log)))
