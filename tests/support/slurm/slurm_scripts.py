"""Rendered job scripts on a real Slurm, for the tests."""

from __future__ import annotations

from slurm_cluster import Cluster


def submitted(cluster: Cluster, script: str, **shell: str) -> str:
    """Submits a script from a shell with these variables; returns the job's id."""
    file = cluster.folder / "job.sh"
    file.write_bytes(script.encode("ascii"))
    return cluster.call("sbatch", "--parsable", str(file), environment=shell).strip()


def shown(cluster: Cluster, job: str) -> dict[str, str]:
    """What Slurm says of a job, by its own words."""
    words = cluster.call("scontrol", "-o", "show", "job", job).split()
    return {key: value for key, _, value in (word.partition("=") for word in words)}
