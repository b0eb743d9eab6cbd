"""The tests' Slurm for a person who wants to try commtune on it; run by ``make slurm-demo``."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from pathlib import Path

from slurm_cluster import NODES, Cluster, has_slurm, missing_packages, running_cluster
from slurm_config import CPUS

PROJECT = Path(__file__).parents[3]


def main() -> int:
    """Starts a cluster, says how to reach it, and ends it at Ctrl-C.

    With the argument ``check``, it only looks for what that needs.
    """
    if not has_slurm():
        print(_lacking(), file=sys.stderr)
        return 1
    if sys.argv[1:] == ["check"]:
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    started = time.monotonic()
    try:
        with running_cluster() as cluster:
            print(_instructions(cluster, time.monotonic() - started), flush=True)
            while True:
                signal.pause()
    except KeyboardInterrupt:
        print("The cluster has ended.")
    return 0


def _lacking() -> str:
    packages = " ".join(missing_packages())
    if not packages:
        return "slurm-demo: only root can start Slurm's daemons"
    install = f"apt-get install -y --no-install-recommends {packages}"
    return f"slurm-demo: this system lacks programs; as root run: {install}"


def _instructions(cluster: Cluster, seconds: float) -> str:
    nodes = f"{len(NODES)} nodes of {CPUS} CPUs: {', '.join(NODES)}"
    plain = "" if cluster.isolated else f"\nMPI does not cross nodes here: {cluster.why_plain}."
    return f"""Slurm is up after {seconds:.1f} s, {nodes}.{plain}
In another terminal type:

    . {_write_environment(cluster)}
    sinfo
    srun --nodes=2 hostname
    commtune doctor

Ctrl-C here ends it; its files are in {cluster.folder} until then."""


def _write_environment(cluster: Cluster) -> Path:
    variables = {
        "SLURM_CONF": cluster.environment["SLURM_CONF"],
        "COMMTUNE_MPI_PATH": os.environ.get("COMMTUNE_MPI_PATH", str(PROJECT / ".mpi")),
        # Open MPI starts no ranks as root unless told twice.
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    lines = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    lines.append(f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH")
    file = cluster.folder / "env.sh"
    file.write_text("\n".join(lines) + "\n")
    return file


if __name__ == "__main__":
    sys.exit(main())
