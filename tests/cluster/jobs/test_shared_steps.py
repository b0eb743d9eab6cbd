"""Search runs that share a step of an allocation, on a real Slurm."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from left_over import living
from search_session import OWN_RUNS, VARIABLE, FaultyProgram, SearchSession, is_shared
from serving_bench import build_serving_bench
from slurm_cluster import Cluster
from waiting import wait_for

from commtune.cluster.jobs.steps import Steps, step_launcher
from commtune.cluster.local.benchmark import LocalBenchmark
from commtune.cluster.local.launch import Launcher, base_environment
from commtune.cluster.local.shared_launch import SharedLaunch
from commtune.cluster.scheduler import Allocation
from commtune.cluster.slurm.allocation import Srun
from commtune.cluster.slurm.client import SlurmScheduler
from commtune.kernels.bench import NativeProgram
from commtune.model import MpiInstallation, Outcome, RunResult
from commtune.slurm_templates.job_request import JobRequest
from commtune.slurm_templates.launch_command import launch_words

_NODES = ("n1", "n2")
_STEP = "SLURM_STEP_ID"
_REQUEST = JobRequest(nodes=2, ranks_per_node=1, mpi="pmi2")
#: srun as it is on a large machine: it takes a while to end its ranks.
_SLOW_SRUN = """\
#!/bin/bash
trap 'sleep 1; kill $child' TERM
setsid srun "$@" <&0 & child=$!
wait
wait $child
"""


@dataclass
class _Place:
    """An allocation of two nodes in which a search makes its runs."""

    steps: Steps
    executable: Path
    search: SearchSession = field(init=False)

    def __post_init__(self) -> None:
        self.search = SearchSession(self.steps)

    def start_by(self, request: JobRequest, srun: str = "srun") -> None:
        """From now on this starts the steps."""
        launcher = _launcher(request, self.steps.inner.folder, srun)
        self.steps.inner = replace(self.steps.inner, launcher=launcher)

    def step_numbers(self) -> list[str]:
        """Of the steps that are there."""
        found = self.steps.launcher.steps(self.steps.allocation.number)
        return [step.rpartition(".")[2] for step in found]

    def processes(self) -> dict[int, str]:
        """Those of runs, on any node: all of them are this machine's."""
        return living(str(self.executable))

    def check_nothing_left(self) -> None:
        assert self.processes() == {}
        wait_for(lambda: not self.step_numbers(), "the end of the step")


def _launcher(request: JobRequest, folder: Path, srun: str = "srun") -> Launcher:
    return step_launcher(
        lambda program: [srun, *launch_words(None, request, program)[1:]], Srun(), None, folder
    )


@pytest.fixture
def place(isolated_slurm: Cluster, mpi: MpiInstallation, tmp_path: Path) -> Iterator[_Place]:
    # Processes of other tests that run beside this one have another name.
    executable = Path(shutil.copy(build_serving_bench(mpi), tmp_path))
    folder = tmp_path / "runs"
    names = ",".join(_NODES)
    asked = ("--no-shell", f"--nodelist={names}", "--ntasks-per-node=2", "--time=30")
    number = isolated_slurm.call("salloc", *asked).split()[-1]
    inside = {"SLURM_JOB_ID": number, "SLURM_JOB_NODELIST": names, **isolated_slurm.environment}
    inner = LocalBenchmark(
        mpi=mpi,
        program=FaultyProgram(NativeProgram(executable, (VARIABLE, _STEP))),
        environment={**base_environment(os.environ, mpi), **inside},
        watched=(VARIABLE,),
        folder=folder,
        launcher=_launcher(_REQUEST, folder),
        shared=SharedLaunch(),
    )
    steps = Steps(
        inner,
        Allocation(number, _NODES, 0.0, None),
        "same-switch",
        scheduler=SlurmScheduler(inside),
        launcher=Srun(inside),
    )
    made = _Place(steps, executable)
    yield made
    steps.close()
    made.check_nothing_left()


def _ranks(result: RunResult, name: str) -> list[str]:
    """What each rank saw of a variable."""
    assert result.header is not None
    return [rank["environment"].get(name, "") for rank in result.header["rank_info"]]


@pytest.mark.slow
def test_one_step_serves_runs_on_all_nodes_until_one_hangs(place: _Place) -> None:
    place.search.begin()
    served = set()
    for value in ("65536", "1048576", "", "7"):
        result = place.search.run(value)
        assert result.outcome is Outcome.OK, result.detail
        assert is_shared(result)
        assert result.header is not None
        assert [rank["host"] for rank in result.header["rank_info"]] == list(_NODES)
        assert _ranks(result, VARIABLE) == [value] * 2
        served |= set(_ranks(result, _STEP))
    assert served == {str(OWN_RUNS)}
    assert place.step_numbers() == [str(OWN_RUNS)]
    assert place.processes()
    # A run that hangs takes its step along, on all nodes.
    hung = place.search.run("hang", limit_s=3.0)
    assert hung.outcome is Outcome.TIMED_OUT, hung.detail
    place.check_nothing_left()
    good, another = place.search.run("5"), place.search.run("6")
    assert is_shared(good) and is_shared(another)
    assert _ranks(good, _STEP) == _ranks(another, _STEP) == [str(OWN_RUNS + 1)] * 2


def test_a_launcher_that_takes_a_while_leaves_no_step_to_the_next_run(
    place: _Place, tmp_path: Path
) -> None:
    slow = tmp_path / "slow-srun"
    slow.write_text(_SLOW_SRUN)
    slow.chmod(0o755)
    for _ in range(OWN_RUNS):
        place.search.run()
    place.start_by(_REQUEST, str(slow))
    # As the launch may be to blame for its first run, that is made once more by itself.
    hung = place.search.run("hang", limit_s=5.0)
    assert hung.outcome is Outcome.TIMED_OUT, hung.detail
    assert not is_shared(hung)
    assert is_shared(place.search.run("5"))


def test_ranks_that_read_nothing_dont_hold_up_the_orders(place: _Place) -> None:
    # As runtimes of containers: what stands before a rank keeps its input.
    held = JobRequest(
        nodes=1, ranks_per_node=2, mpi="pmi2", prefix=("sh", "-c", '"$@"; exit $?', "rank")
    )
    place.start_by(held)
    place.search.begin()
    # More than srun and a pipe hold back for one rank: 1.1 MB.
    results = [place.search.run(digit * 100_000) for digit in "123456789012"]
    assert [result.outcome for result in results] == [Outcome.OK] * 12
    assert all(map(is_shared, results))
