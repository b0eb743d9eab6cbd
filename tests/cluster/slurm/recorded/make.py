"""Records what a real Slurm prints for the tests; as root, with tests/ on PYTHONPATH.

PYTHONPATH=.:tests python tests/cluster/slurm/recorded/make.py
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from slurm_cluster import Cluster, running_cluster
from slurm_jobs import make_jobs

from commtune.cluster.slurm import client, command_output
from commtune.cluster.slurm.faults import SlurmError

HERE = Path(__file__).parent


def record(name: str, arguments: list[str], environment: dict[str, str], folder: Path) -> None:
    """Writes what a program prints into a file, without the folder's name."""
    done = subprocess.run(
        arguments,
        env=client._asking_environment(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    (HERE / f"{name}.txt").write_text(done.stdout.replace(str(folder), "/cluster"))


def record_troubles(cluster: Cluster, squeue: list[str], sacct: list[str]) -> None:
    """Messages of programs whose slurm.conf is not the cluster's, or that ask for nonsense."""
    absent = [*squeue, "--jobs=999999"]
    unknown = [*squeue, "--no-such-option"]
    for trouble, arguments, changes in (
        (SlurmError.NO_SUCH_JOB, absent, {}),
        (SlurmError.NOT_UNDERSTOOD, unknown, {}),
        (SlurmError.CONTROLLER_DOWN, squeue, {"SlurmctldPort": "1"}),
        (SlurmError.AUTHENTICATION, squeue, {"AuthInfo": "socket=/nowhere"}),
        (SlurmError.ACCOUNTING_OFF, sacct, {"AccountingStorageType": "accounting_storage/none"}),
        (SlurmError.ACCOUNTING_DOWN, sacct, {"AccountingStoragePort": "1"}),
    ):
        environment = cluster.variant(trouble.name, **changes)
        record(trouble.name, arguments, environment, cluster.folder)


def main() -> None:
    """Makes the jobs and records everything."""
    squeue = ["squeue", "--noheader", "--all", "--states=all", "--user=0"]
    squeue += [f"--format={command_output.QUEUE_FORMAT}"]
    sacct = ["sacct", "--allocations", "--duplicates", "--noheader", "--parsable2"]
    sacct += [
        f"--delimiter={command_output.FIELD}",
        f"--format={','.join(command_output.ACCOUNT_FIELDS)}",
    ]
    sacct += ["--starttime=now-1hour"]
    with running_cluster() as cluster:
        jobs = make_jobs(cluster, patient=True)
        sacct.append(f"--jobs={','.join(jobs.values())}")
        time.sleep(10)  # for the accounts to catch up
        record("squeue", squeue, cluster.environment, cluster.folder)
        record("sacct", sacct, cluster.environment, cluster.folder)
        record_troubles(cluster, squeue, sacct)


if __name__ == "__main__":
    main()
