"""Counts what slurmctld and slurmdbd are asked by campaigns of one user.

    .venv/bin/python benchmarks/slurm/count_requests.py

Needs root, as ``make slurm-demo`` does, and MPICH in ``.mpi``. Prints what one campaign asks from
its start to its end, as jobs and in an allocation; what ten ask to be submitted, while they wait
behind 5,000 queued jobs, and while their jobs run. Nodes that register are left out. A squeue is a
JOB_INFO; sacct asks slurmdbd.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
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
#: So long campaigns take what another one was told of the site, and somewhat longer.
_SITE_KEPT_S = 125
_CAMPAIGN = """\
campaign: 1
name: campaign{number}
space: mpich-host-allreduce
mpi: wheel:mpich
workload: {{nodes: 2, ranks: 2, sizes: [8]}}
timing: {{max_samples: 10, time_cap: 2ms}}
budget: {{search: {search}, ablation: 10ms, confirmation: 1s}}
first: [{{MPIR_CVAR_DEVICE_COLLECTIVES: none}}]
narrow: {{MPIR_CVAR_DEVICE_COLLECTIVES: [none]}}
slurm: {{mpi: pmi2}}
"""


def main() -> None:
    """Starts a cluster, and counts: of one campaign, then of ten that wait, then run."""
    with running_cluster() as cluster, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = _reset(cluster)
        with _started(cluster, folder, 0, "100ms") as alone:
            alone.wait()
        print(f"one campaign, {_work(folder)}: {_count(cluster, before)}", flush=True)
        _count_allocation(cluster, folder)
        blocker = cluster.submit("sleep 3000", "--nodes=3", "--exclusive", "--time=60")
        arrays = [cluster.submit("true", "--array=1-1000") for _ in range(_ARRAYS)]
        before = _reset(cluster)
        for number in range(_CAMPAIGNS + 2, 2 * _CAMPAIGNS + 2):
            with _started(cluster, folder, number, "10min", "submit") as submitting:
                submitting.wait()
        print(f"commtune submit of {_CAMPAIGNS}: {_count(cluster, before)}", flush=True)
        cluster.call("scancel", *_allocations(cluster))
        time.sleep(_SITE_KEPT_S)
        before, began = _reset(cluster), time.monotonic()
        with _waiting_campaigns(cluster, folder):
            time.sleep(max(0.0, began + 60 - time.monotonic()))
            print(f"{_CAMPAIGNS} begin, in a minute: {_count(cluster, before)}", flush=True)
            _count_minutes(cluster, "waiting")
            cluster.call("scancel", blocker, *arrays)
            _count_minutes(cluster, "running")
        print(f"in all, {_work(folder)}")


def _count_allocation(cluster: Cluster, folder: Path) -> None:
    before = _reset(cluster)
    with _started(cluster, folder, _CAMPAIGNS + 1, "100ms", "submit") as submitting:
        submitting.wait()
    name = f"campaign{_CAMPAIGNS + 1}"
    while not _ask(folder, f"SELECT * FROM campaigns WHERE name = '{name}' AND finished"):
        time.sleep(1)
    time.sleep(3)
    print(f"one more by submit, {_work(folder)}: {_count(cluster, before)}", flush=True)


def _allocations(cluster: Cluster) -> list[str]:
    """Numbers of jobs of campaigns."""
    names = cluster.call("squeue", "--noheader", "--format=%i %j").splitlines()
    return [name.split()[0] for name in names if "commtune-campaign" in name]


def _count_minutes(cluster: Cluster, what: str) -> None:
    for minute in range(1, _MINUTES + 1):
        before = _reset(cluster)
        time.sleep(60)
        print(f"{what}, minute {minute}: {_count(cluster, before)}", flush=True)


def _reset(cluster: Cluster) -> int:
    """Slurm counts from here on; returns how many questions of sacct slurmdbd had so far."""
    cluster.call("sdiag", "-r")
    return cluster.count_account_requests()


def _count(cluster: Cluster, before: int) -> str:
    asked, accounts = cluster.requests(), cluster.count_account_requests() - before
    return f"{asked.total()} requests, {accounts} of sacct: {dict(asked)}"


def _work(folder: Path) -> str:
    """How many jobs and runs there were so far."""
    (jobs,), (runs,) = (_ask(folder, f"SELECT count(*) FROM {t}")[0] for t in ("jobs", "runs"))
    return f"{jobs} jobs, {runs} runs"


def _ask(folder: Path, question: str) -> list[tuple[object, ...]]:
    with contextlib.closing(sqlite3.connect(folder / "data/commtune/commtune.db")) as database:
        return database.execute(question).fetchall()


def _started(
    cluster: Cluster, folder: Path, number: int, search: str, command: str = "tune"
) -> subprocess.Popen[bytes]:
    """A campaign from a login node."""
    environment = {
        **os.environ,
        **cluster.environment,
        "XDG_DATA_HOME": str(folder / "data"),
        "XDG_CACHE_HOME": str(_ROOT / "build" / "end-to-end-cache"),
        "COMMTUNE_MPI_PATH": str(_ROOT / ".mpi"),
    }
    file = folder / f"{number}.yaml"
    file.write_text(_CAMPAIGN.format(number=number, search=search))
    words = [sys.executable, "-m", "commtune.cli", command, str(file)]
    silent = subprocess.DEVNULL
    return subprocess.Popen(words, env=environment, stdout=silent, stderr=silent)


@contextlib.contextmanager
def _waiting_campaigns(cluster: Cluster, folder: Path) -> Iterator[None]:
    """Campaigns from a login node that each have a job in the queue; ended afterwards."""
    children: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(1, _CAMPAIGNS + 1):
            children.append(_started(cluster, folder, number, "10min"))
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
