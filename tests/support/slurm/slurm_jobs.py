"""Jobs that end, or wait, in every way that a small real Slurm can bring about.

Each job's name says what it is for; the tables say what it must be seen as.
"""

from __future__ import annotations

from slurm_cluster import Cluster

from commtune.cluster.job_states import JobState

SLEEP = "exec sleep 600"

#: By job name, our state: of live jobs and of jobs that ended.
LIVING = {
    "running": JobState.RUNNING,
    "suspended": JobState.SUSPENDED,
    "held": JobState.NEVER_STARTED,
    "waits-for-failed": JobState.NEVER_STARTED,
    "partition-down": JobState.PENDING,
    "waits-for-running": JobState.PENDING,
    "begins-later": JobState.PENDING,
    "put-back": JobState.PENDING,
    "put-back-and-held": JobState.NEVER_STARTED,
}
ENDED = {
    "completed": JobState.COMPLETED,
    "failed": JobState.FAILED,
    "killed": JobState.FAILED,
    "cancelled": JobState.CANCELLED,
    "cancelled-before": JobState.CANCELLED,
    "timed-out": JobState.TIMED_OUT,
    "node-failure": JobState.NODE_FAILURE,
    "array": JobState.FAILED,
    "heterogeneous": JobState.FAILED,
}


def make_jobs(cluster: Cluster, *, patient: bool = False) -> dict[str, str]:
    """Submits all of them and waits until each is where it belongs; returns ids by name.

    Node n3 is down afterwards.

    Args:
        patient: also the one that reaches its time limit, for which Slurm looks twice a minute.
    """
    jobs: dict[str, str] = {}

    def submit(name: str, command: str, *options: str) -> str:
        jobs[name] = cluster.submit(command, f"--job-name={name}", "--no-requeue", *options)
        return jobs[name]

    one = ("--nodes=1", "--ntasks=1", "--nodelist=n1")
    submit("node-failure", SLEEP, "--nodes=1", "--ntasks=1", "--nodelist=n3")
    submit("completed", "srun -n2 true", "--nodes=2")
    failed = submit("failed", "exit 3", *one)
    submit("killed", "kill -SEGV $$", *one)
    submit("array", "exit $((SLURM_ARRAY_TASK_ID - 1))", "--array=1-2")
    submit("heterogeneous", "srun true; exit 1", "-n1", ":", "-n1")
    submit("held", "true", "--hold")
    submit("partition-down", "true", "--partition=closed")
    submit("begins-later", "true", "--begin=now+1hour")
    submit("waits-for-failed", "true", f"--dependency=afterok:{failed}")
    for name in ("completed", "failed", "killed"):
        cluster.until(jobs[name], ENDED[name].upper())
    for name in ("array", "heterogeneous"):
        cluster.until(jobs[name], "FAILED")
    submit("cancelled", SLEEP, *one)
    if patient:
        submit("timed-out", SLEEP, *one)
    _end(cluster, jobs)
    _put_back(cluster, jobs)
    _leave(cluster, jobs)
    cluster.call("scancel", submit("cancelled-before", "true", "--begin=now+1hour"))
    return jobs


def _end(cluster: Cluster, jobs: dict[str, str]) -> None:
    living = [name for name in ("node-failure", "cancelled", "timed-out") if name in jobs]
    for name in living:
        cluster.until(jobs[name], "RUNNING")
    if "timed-out" in jobs:  # quicker than a time limit, whose least is a minute
        cluster.call("scontrol", "update", f"jobid={jobs['timed-out']}", "EndTime=now")
    cluster.call("scontrol", "update", "nodename=n3", "state=down", "reason=test")
    cluster.call("scancel", jobs["cancelled"])
    for name, word in zip(living, ("NODE_FAIL", "CANCELLED", "TIMEOUT"), strict=False):
        cluster.until(jobs[name], word)


def _put_back(cluster: Cluster, jobs: dict[str, str]) -> None:
    for name, how in (("put-back-and-held", "requeuehold"), ("put-back", "requeue")):
        jobs[name] = cluster.submit(
            SLEEP, f"--job-name={name}", "--requeue", "--nodes=1", "--ntasks=1"
        )
        cluster.until(jobs[name], "RUNNING")
        cluster.call("scontrol", how, jobs[name])
        cluster.until(jobs[name], "PENDING")
    # At once: Slurm starts it again within seconds.
    cluster.call("scontrol", "update", f"jobid={jobs['put-back']}", "StartTime=now+1hour")


def _leave(cluster: Cluster, jobs: dict[str, str]) -> None:
    for name in ("running", "suspended"):
        jobs[name] = cluster.submit(SLEEP, f"--job-name={name}", "--nodes=1", "--ntasks=1")
        cluster.until(jobs[name], "RUNNING")
    cluster.call("scontrol", "suspend", jobs["suspended"])
    jobs["waits-for-running"] = cluster.submit(
        "true", "--job-name=waits-for-running", f"--dependency=afterany:{jobs['running']}"
    )
    cluster.until(jobs["waits-for-failed"], "DependencyNeverSatisfied", "%r")
