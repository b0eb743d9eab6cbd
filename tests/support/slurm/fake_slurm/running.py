"""Running the scripts of jobs for real: inside of sbatch, or beside it by a process of its own."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fake_slurm.placing import compact
from fake_slurm.state import Store, current, now_in, stays

if TYPE_CHECKING:
    from fake_slurm.state import Json


def run_now(store: Store, job: Json) -> None:
    """Runs a job's script to its end and notes how it ended; it took no time by the clock."""
    child = _start(job)
    _note_end(store, job["number"], child.wait(), move_end=False)


def _start(job: Json) -> subprocess.Popen[bytes]:
    folder = Path(job["folder"])
    name = job["output"].replace("%j", str(job["number"])).replace("%x", job["name"])
    with (folder / name).open("ab") as output:
        return subprocess.Popen(
            [*job["program"], job["script"]],
            env=_environment(job),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _environment(job: Json) -> dict[str, str]:
    nodes = job["attempts"][0].get("nodes", [])
    return {
        **os.environ,
        "SLURM_JOB_ID": str(job["number"]),
        "SLURM_JOBID": str(job["number"]),
        "SLURM_JOB_NAME": job["name"],
        "SLURM_JOB_NODELIST": compact(nodes),
        "SLURM_JOB_NUM_NODES": str(len(nodes)),
        "SLURM_NNODES": str(len(nodes)),
        "SLURM_NTASKS": str(job["tasks"]),
        "SLURM_SUBMIT_DIR": job["folder"],
        "SLURMD_NODENAME": nodes[0] if nodes else "",
    }


def _note_end(store: Store, number: int, status: int, *, move_end: bool) -> None:
    with store.changing() as state:
        job = state["jobs"][str(number)]
        one = current(job, now_in(state))
        if status and "word" not in one:
            one.update(word="FAILED", code=max(status, 0), signal=max(-status, 0))
        if move_end:
            one["ended"] = now_in(state)


def keep_running(store: Store) -> None:
    """Runs the scripts that sbatch puts down, until our standard input ends.

    A job whose state is over before its script is, is killed with all that it started.
    """
    children: dict[int, subprocess.Popen[bytes]] = {}
    while not select.select([sys.stdin], [], [], 0.02)[0]:
        _step(store, children)
    for child in children.values():
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _step(store: Store, children: dict[int, subprocess.Popen[bytes]]) -> None:
    waiting = [int(file.name) for file in Path(store.folder, "to-run").iterdir()]
    if not waiting and not children:
        return
    with store.reading() as state:
        now = now_in(state)
        standing = {n: stays(state["jobs"][str(n)], now)[-1] for n in (*waiting, *children)}
        jobs = {number: state["jobs"][str(number)] for number in waiting}
    for number in waiting:
        if standing[number].word != "PENDING":
            Path(store.folder, "to-run", str(number)).unlink()
        if standing[number].word == "RUNNING":
            children[number] = _start(jobs[number])
    for number, child in list(children.items()):
        status = child.poll()
        if status is None and standing[number].word == "RUNNING":
            continue
        if status is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        elif standing[number].word == "RUNNING":
            _note_end(store, number, status, move_end=True)
        del children[number]
