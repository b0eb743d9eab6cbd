"""One suite of laws over every benchmark port (see ``tuner.ports.Benchmark``).

Programs are shell scripts: no benchmark is built. Steps run on this machine in the place of srun.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from left_over import wait_until_gone, wait_until_living
from memory_scheduler import MemoryScheduler, SrunWithoutSteps
from recorded_grids import ONE, SIZES, TWO, small_grid
from synthetic import SyntheticBenchmark, VirtualClock
from waiting import PATIENCE_S

from commtune.cluster.jobs.steps import Steps, step_launcher
from commtune.cluster.local.benchmark import LocalBenchmark
from commtune.cluster.local.launch import Launcher
from commtune.cluster.scheduler import Allocation
from commtune.errors import EnvironmentFault
from commtune.model import (
    DEFAULT,
    Configuration,
    Measurement,
    MpiFlavour,
    MpiInstallation,
    Operation,
    Outcome,
    RunRequest,
    Timing,
    Workload,
)
from commtune.replay.benchmark import ReplayBenchmark
from commtune.tuner.ports import Benchmark, Records

WORKLOAD = Workload(Operation.ALLREDUCE, SIZES)
#: ``recover`` ends all processes of this name, also those of other tests.
RUN_ID = f"run-{os.getpid()}"
#: Runs under ``ONE`` take longer than this, seconds; those under ``TWO`` crash.
SHORT_S = 0.2
#: Its processes have the run's identifier in their command lines.
_SCRIPT = """
case "$A" in
    1) sh -c 'sleep 600; :' "$0" & wait ;;
    2) kill -SEGV $$ ;;
    *) echo > "$1" ;;
esac
"""
_MEASURED = Measurement(8, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1.0, 1.0)
_COMPLETE = Records(
    {"rank_info": [{"rank": 0, "environment": {}}], "oversubscribed": False},
    tuple(replace(_MEASURED, bytes=size) for size in SIZES),
    {"status": "ok", "elapsed_s": 1.0},
)


class _Script:
    """A program whose record file is complete once it is there."""

    def arguments(self, request: RunRequest, records: Path) -> list[str]:
        return ["/bin/sh", "-c", _SCRIPT, request.run_id, str(records)]

    def read(self, records: Path, request: RunRequest) -> Records:
        del request
        return _COMPLETE if records.exists() else Records()


def _local(folder: Path, launcher: Launcher) -> LocalBenchmark:
    mpi = MpiInstallation(MpiFlavour.MPICH, "1", folder, folder / "mpicc", folder / "mpiexec")
    base = {"PATH": "/usr/bin:/bin"}
    return LocalBenchmark(mpi, _Script(), base, (), folder / "runs", launcher=launcher)


def _direct(_ranks: int, program: Sequence[str], _limit_s: float) -> Sequence[str]:
    return program


def _steps(folder: Path) -> Steps:
    launcher = step_launcher(lambda program: program, SrunWithoutSteps(), None, folder / "runs")
    allocation = Allocation("7", ("n1",), time.time(), None)
    scheduler = MemoryScheduler(time.time)
    return Steps(_local(folder, launcher), allocation, "same-node", scheduler, SrunWithoutSteps())


def _made_up() -> SyntheticBenchmark:
    ends = {("A", "1"): Outcome.TIMED_OUT, ("A", "2"): Outcome.CRASHED}
    return SyntheticBenchmark(lambda *_: 1e-6, VirtualClock(), outcomes=ends)


@dataclass(frozen=True)
class Case:
    """A benchmark; ``folder`` has its record files, if it starts processes that write them."""

    benchmark: Benchmark
    folder: Path | None = None


@pytest.fixture(params=["local", "steps", "replay", "synthetic"])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    if request.param == "replay":
        # In one round, the only run of the last configuration is the one that crashed.
        return Case(ReplayBenchmark(small_grid(rounds=1)))
    if request.param == "synthetic":
        return Case(_made_up())
    is_local = request.param == "local"
    made = _local(tmp_path, Launcher(_direct)) if is_local else _steps(tmp_path)
    return Case(made, tmp_path / "runs")


#: For laws of those that start processes.
starting = pytest.mark.parametrize("case", ["local", "steps"], indirect=True)


def asked(run_id: str, configuration: Configuration = DEFAULT) -> RunRequest:
    return RunRequest(run_id, configuration, WORKLOAD, Timing())


@pytest.mark.parametrize(
    ("configuration", "limit_s", "outcome"),
    [
        (DEFAULT, PATIENCE_S, Outcome.OK),
        (ONE, SHORT_S, Outcome.TIMED_OUT),
        (TWO, PATIENCE_S, Outcome.CRASHED),
    ],
    ids=["good", "too long", "crash"],
)
def test_every_end_of_a_run_is_a_result(
    case: Case, configuration: Configuration, limit_s: float, outcome: Outcome
) -> None:
    result = case.benchmark.measure(asked(RUN_ID, configuration), limit_s)
    assert (result.run_id, result.outcome) == (RUN_ID, outcome)
    sizes = [one.bytes for one in result.measurements]
    assert sizes == list(SIZES) if outcome is Outcome.OK else sizes != list(SIZES)


def test_no_process_of_a_run_is_left(case: Case, tmp_path: Path) -> None:
    run_id = f"left-{tmp_path.name}-{os.getpid()}"
    assert case.benchmark.measure(asked(run_id, ONE), SHORT_S).outcome is Outcome.TIMED_OUT
    assert wait_until_gone(run_id) == {}


@starting
def test_no_process_is_left_of_a_run_that_is_interrupted(case: Case, tmp_path: Path) -> None:
    run_id = f"interrupted-{tmp_path.name}-{os.getpid()}"

    def interrupt() -> None:
        wait_until_living(run_id, 2)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        case.benchmark.measure(asked(run_id, ONE), PATIENCE_S)
    thread.join()
    assert wait_until_gone(run_id) == {}


def test_a_run_that_wrote_no_footer_is_not_recovered(case: Case) -> None:
    assert case.benchmark.recover(asked("never")) is None


@starting
def test_a_run_that_nobody_read_is_recovered(case: Case) -> None:
    assert case.folder is not None
    case.folder.mkdir()
    (case.folder / f"{RUN_ID}.jsonl").touch()
    result = case.benchmark.recover(asked(RUN_ID))
    assert result is not None
    assert (result.run_id, result.outcome) == (RUN_ID, Outcome.OK)
    assert [one.bytes for one in result.measurements] == list(SIZES)


def test_only_what_measures_this_machine_is_not_simulated(case: Case) -> None:
    assert case.benchmark.simulated is (case.folder is None)


def test_where_nothing_can_be_told_a_trace_is_none(case: Case) -> None:
    assert case.benchmark.trace(asked(RUN_ID), PATIENCE_S) is None


@starting
def test_a_fault_of_the_surroundings_is_raised(case: Case) -> None:
    assert case.folder is not None
    case.folder.write_text("no folder")
    with pytest.raises(EnvironmentFault):
        case.benchmark.measure(asked(RUN_ID), PATIENCE_S)
