"""Counts what slurmctld is asked while ten campaigns of a user wait behind 5,000 queued jobs.

    .venv/bin/python benchmarks/slurm/count_requests.py

Needs root, as ``make slurm-demo`` does, and MPICH in ``.mpi``. Prints a line when all campaigns
have submitted a job, then one a minute: requests of each kind, without those of daemons.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(_ROOT / "tests/support/slurm"))

from slurm_cluster import Cluster, running_cluster  # noqa: E402

_CAMPAIGNS = 10
_ARRAYS = 5  # of 1,000 jobs each
_MINUTES = 3
_CAMPAIGN = """\
campaign: 1
name: waits{number}
space: mpich-host-allreduce
mpi: wheel:mpich
workload: {{nodes: 2, ranks: 2, sizes: [8]}}
budget: {{search: 1min, ablation: 1s, confirmation: 1s}}
slurm: {{mpi: pmi2}}
"""
#: Of daemons, and of sdiag.
_NOT_OURS = {"MESSAGE_NODE_REGISTRATION_STATUS", "REQUEST_STATS_INFO"}


def main() -> None:
    """Starts a cluster, fills its queue, and counts."""
    with running_cluster() as cluster, tempfile.TemporaryDirectory() as folder:
        cluster.submit("sleep 3000", "--nodes=3", "--exclusive", "--time=60")
        for _ in range(_ARRAYS):
            cluster.submit("true", "--array=1-1000")
        cluster.call("sdiag", "-r")
        with _waiting_campaigns(cluster, Path(folder)):
            print(f"to submit {_CAMPAIGNS} campaigns: {_count(cluster)}", flush=True)
            for minute in range(1, _MINUTES + 1):
                cluster.call("sdiag", "-r")
                time.sleep(60)
                print(f"minute {minute}: {_count(cluster)}", flush=True)


def _count(cluster: Cluster) -> str:
    kinds = cluster.call("sdiag").split("by message type")[1].split("Remote Procedure")[0]
    counted = re.findall(r"^\s*(\w+)\s+\(\s*\d+\) count:(\d+)", kinds, re.MULTILINE)
    ours = {kind: int(count) for kind, count in counted if kind not in _NOT_OURS}
    return f"{sum(ours.values())} requests: {ours}"


@contextlib.contextmanager
def _waiting_campaigns(cluster: Cluster, folder: Path) -> Iterator[None]:
    """Campaigns from a login node that each have a job in the queue; ended afterwards."""
    environment = {
        **os.environ,
        **cluster.environment,
        "XDG_DATA_HOME": str(folder / "data"),
        "XDG_CACHE_HOME": str(_ROOT / "build" / "end-to-end-cache"),
        "COMMTUNE_MPI_PATH": str(_ROOT / ".mpi"),
    }
    children: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(_CAMPAIGNS):
            file = folder / f"{number}.yaml"
            file.write_text(_CAMPAIGN.format(number=number))
            words = [sys.executable, "-m", "commtune.cli", "tune", str(file)]
            children.append(subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL))
        # By sdiag, which is not counted.
        while cluster.count_requests("SUBMIT_BATCH_JOB") < _CAMPAIGNS:
            assert all(child.poll() is None for child in children), "a campaign has ended"
            time.sleep(1)
        yield
    finally:
        for child in children:
            child.terminate()
            child.wait(60)


if __name__ == "__main__":
    main()
