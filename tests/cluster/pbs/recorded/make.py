"""Records what a real PBS prints: run with the tests' interpreter, as root, where OpenPBS is.

.venv/bin/python tests/cluster/pbs/recorded/make.py
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

_HERE = Path(__file__).parent
_SUPPORT = _HERE.parents[2] / "support"
sys.path[:0] = [str(_SUPPORT / folder) for folder in ("", "slurm", "pbs")]

from pbs_cluster import Cluster, running_cluster  # noqa: E402
from waiting import wait_for  # noqa: E402

_NAME = "commtune-small-0123456789abcdef"
_QUESTION = ("qstat", "-x", "-f", "-F", "dsv", "-D", "\x1f")
_IN_UTC = ("env", "LC_ALL=C", "TZ=UTC0")


def _submit(cluster: Cluster, command: str, *options: str) -> subprocess.CompletedProcess[str]:
    folder = cluster.folder / "user"
    script = folder / "recorded.sh"
    # A shell that waits for its child would pass the end on late.
    script.write_text(f"#!/bin/bash\n{command}\n")
    words = ("-N", _NAME, "-r", "n", "-j", "oe", "-k", "doe", "-S", "/bin/bash")
    output = ("-o", str(folder / "recorded.out"))
    return subprocess.run(
        [*cluster.as_user, *_IN_UTC, "qsub", "-f", *words, *output, *options, str(script)],
        env=cluster.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def _record_jobs(cluster: Cluster) -> None:
    one = ("-l", "select=1:ncpus=1", "-l", "place=scatter:excl", "-l", "walltime=60")
    two = ("-l", "select=2:ncpus=1:mpiprocs=1", "-l", "place=scatter:excl", "-l", "walltime=60")
    numbers = {
        "completed": _submit(cluster, "sleep 2", *two).stdout,
        "failed": _submit(cluster, "exit 7", *one).stdout,
    }
    wait_for(lambda: not cluster.call("qselect").split(), "jobs to end")
    numbers["timed-out"] = _submit(cluster, "exec sleep 60", *one, "-l", "walltime=3").stdout
    numbers["running"] = running = _submit(cluster, "exec sleep 300", *one).stdout
    numbers["held"] = _submit(cluster, "true", *one, "-h").stdout
    after = f"depend=afterany:{running.strip()}"
    numbers["waits-for-another"] = _submit(cluster, "true", *one, "-W", after).stdout
    never = ("-l", "select=1:ncpus=50", "-l", "place=scatter:excl")
    numbers["can-never-run"] = _submit(cluster, "true", *never).stdout
    numbers["deleted"] = deleted = _submit(cluster, "exec sleep 300", *one).stdout
    time.sleep(4)
    cluster.order("qdel", deleted.strip())
    numbers["its-turn"] = _submit(cluster, "true", "-l", "select=3:ncpus=2", *two[2:]).stdout
    numbers["deleted-before-it-ran"] = early = _submit(cluster, "true", *one, "-h").stdout
    cluster.order("qdel", early.strip())
    wait_for(lambda: len(cluster.call("qselect").split()) <= 5, "jobs to end")
    for name, number in numbers.items():
        _write(name, cluster.call(*_IN_UTC, *_QUESTION, number.strip()))
    lost = _submit(cluster, "exec sleep 300", *one).stdout.strip()
    asked = (*_IN_UTC, *_QUESTION, lost)
    wait_for(lambda: "exec_host=" in cluster.call(*asked), "it to run")
    said = cluster.call(*asked)
    node = said.partition("exec_host=")[2].partition("/")[0]
    cluster.fail_node(node)
    wait_for(lambda: "job_state=F" in cluster.call(*asked), "its end")
    _write("lost-its-node", cluster.call(*asked))
    _write("nodes", cluster.call("pbsnodes", "n1", "n2", "n3"))


def _record_refusals(cluster: Cluster) -> None:
    for name, options in {
        "unknown-queue": ("-q", "nowhere"),
        "bad-walltime": ("-l", "walltime=abc"),
        "unknown-resource": ("-l", "select=1:nosuch=1"),
        "bad-place": ("-l", "select=1", "-l", "place=foo"),
        "bad-option": ("-Z", "x"),
    }.items():
        _write(f"qsub/{name}", _submit(cluster, "true", *options).stdout)
    cluster.limit_submissions(1)
    _submit(cluster, "exec sleep 60")
    _write("qsub/full", _submit(cluster, "true").stdout)
    cluster.limit_submissions(None)
    cluster.refuse_submissions()
    _write("qsub/closed", _submit(cluster, "true").stdout)
    cluster.refuse_submissions(False)
    limit = "queue workq resources_max.walltime"
    cluster.order("qmgr", "-c", f"set {limit}=10")
    _write("qsub/too-long", _submit(cluster, "true", "-l", "walltime=60").stdout)
    cluster.order("qmgr", "-c", f"unset {limit}")
    _write("server", cluster.call("qstat", "-B", "-f", "-F", "dsv", "-D", "\x1f"))
    cluster.stop_controller()
    _write("qsub/down", _submit(cluster, "true").stdout)
    cluster.start_controller()


def _write(name: str, said: str) -> None:
    (_HERE / f"{name}.txt").write_text(said)


def main() -> None:
    with running_cluster() as cluster:
        _record_refusals(cluster)
        cluster.tidy()
        _record_jobs(cluster)


if __name__ == "__main__":
    main()
