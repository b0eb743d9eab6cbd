"""Steps that can't be started: waited for, and no time of the search."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from memory_scheduler import MemoryScheduler, SrunWithoutSteps

from commtune.cluster.jobs.steps import Steps
from commtune.cluster.local.benchmark import LocalBenchmark
from commtune.cluster.local.launch import Launcher
from commtune.cluster.scheduler import Allocation
from commtune.cluster.slurm.allocation import Srun
from commtune.cluster.slurm.client import SlurmScheduler
from commtune.errors import AllocationOver
from commtune.model import (
    DEFAULT,
    MpiFlavour,
    MpiInstallation,
    Operation,
    Outcome,
    RunRequest,
    Timing,
    Workload,
)
from commtune.tuner.ports import Records

_REFUSED = "srun: error: Unable to create step for job 7: Socket timed out on send/recv operation"


class _Refused:
    """A program that srun doesn't start."""

    def arguments(self, request: RunRequest, records: Path) -> list[str]:
        del request, records
        return ["/bin/sh", "-c", f"echo '{_REFUSED}'; exit 1"]

    def read(self, records: Path, request: RunRequest) -> Records:
        del records, request
        return Records()


@dataclass
class _Night:
    """A clock, and a scheduler that answers again after so many waits."""

    scheduler: MemoryScheduler
    waits: int
    now: float = 1e9
    said: list[str] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.waits -= 1
        self.scheduler.silent = self.waits > 0


def _direct(_ranks: int, program: Sequence[str], _limit_s: float) -> Sequence[str]:
    return program


def _steps(folder: Path, night: _Night, ends_at: float | None = None) -> Steps:
    mpi = MpiInstallation(MpiFlavour.MPICH, "1", folder, folder / "mpicc", folder / "mpiexec")
    launcher = Launcher(_direct, is_local=False, judge=Srun().judge_failure)
    base = {"PATH": "/usr/bin:/bin"}
    inner = LocalBenchmark(mpi, _Refused(), base, (), folder, launcher=launcher)
    return Steps(
        inner,
        Allocation("7", ("n1",), night.now, ends_at),
        "same-node",
        night.scheduler,
        SrunWithoutSteps(),
        say=night.said.append,
        clock=lambda: night.now,
        sleep=night.sleep,
    )


_REQUEST = RunRequest("a", DEFAULT, Workload(Operation.ALLREDUCE, (8,)), Timing())


def test_time_without_a_scheduler_is_no_time_of_the_search(tmp_path: Path) -> None:
    night = _Night(MemoryScheduler(time.time, silent=True), waits=5)
    steps = _steps(tmp_path, night)
    began = night.now
    for _ in range(2):
        assert steps.measure(_REQUEST, 8.0).outcome is Outcome.NEVER_STARTED
    assert night.now - began > 5 * 4, "it waited"
    assert steps.used_s() == pytest.approx(began, abs=4.0)
    assert night.said == ["no answer; waiting for it", "the scheduler in memory answers again"]


def test_a_failed_run_counts_on_nodes_without_commands_of_slurm(tmp_path: Path) -> None:
    steps = _steps(tmp_path, _Night(MemoryScheduler(time.time), waits=0))
    steps.scheduler = SlurmScheduler({"PATH": str(tmp_path)})
    steps.launcher = Srun({"PATH": str(tmp_path)})
    assert steps.measure(_REQUEST, 8.0).outcome is Outcome.NEVER_STARTED


def test_the_wait_ends_with_the_allocation(tmp_path: Path) -> None:
    night = _Night(MemoryScheduler(time.time, silent=True), waits=10**6)
    steps = _steps(tmp_path, night, night.now + 600)
    assert steps.measure(_REQUEST, 8.0).outcome is Outcome.NEVER_STARTED
    with pytest.raises(AllocationOver):
        steps.measure(_REQUEST, 8.0)
