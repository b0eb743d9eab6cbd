"""From a system description to a job and a launch command."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from waiting import PATIENCE_S

from commtune import process
from commtune.errors import UserError
from commtune.slurm_templates.job_request import JobRequest, Placement, job_for
from commtune.slurm_templates.launch_command import launch_words
from commtune.slurm_templates.rendering import Job
from commtune.systems.loading import load_system
from commtune.systems.schema import System

LUMI, LEONARDO = load_system("lumi"), load_system("leonardo")
WISH = JobRequest(nodes=2, ranks_per_node=8, account="project_1")


def planned(
    system: System | None, wish: JobRequest = WISH, time_s: float = 3600, *libraries: str
) -> Job:
    return job_for(system, wish, name="name", time_s=time_s, output="out", libraries=libraries)


def words_for(
    system: System, ranks: int, *command: str, libraries: tuple[str, ...] = ()
) -> list[str]:
    """How a program is started, with so many ranks a node."""
    return list(launch_words(system, JobRequest(ranks_per_node=ranks), command, libraries))


def test_what_the_description_says_is_asked_for() -> None:
    job = planned(LUMI, WISH, 3600, "cray-mpich")
    assert (job.partition, job.gpus_per_node, job.gres, job.exclusive) == (
        "standard-g", 8, "", True,
    )  # fmt: skip
    assert job.environment == {"MPICH_GPU_SUPPORT_ENABLED": "1"}
    job = planned(LEONARDO)
    assert (job.gres, job.gpus_per_node, job.memory) == ("gpu:4", 0, "0")
    assert job.modules == ()


def test_what_is_meant_for_other_libraries_is_left_out() -> None:
    assert planned(LUMI, WISH, 3600, "rccl").environment == {}
    job = planned(LEONARDO, WISH, 3600, "nccl")
    assert job.modules == ("nccl",)


@pytest.mark.parametrize(
    ("changed", "message", "hint"),
    [
        ({"account": ""}, "takes no job without an account", "name the account"),
        ({"partition": "standart-g"}, "no partition 'standart-g'", "standard-g"),
        ({"qos": "fast"}, "no quality of service 'fast'", "none but the default"),
        ({"nodes": 1025}, "standard-g: 1025 nodes, but at most 1024", "fewer nodes"),
        ({"time_s": 200_000}, "200000 s, but at most 172800 s", "small-g"),
        ({"partition": "dev-g", "nodes": 33}, "dev-g: 33 nodes", "would do: standard-g"),
    ],
)
def test_what_the_system_would_refuse_is_refused_before(
    changed: dict[str, object], message: str, hint: str
) -> None:
    with pytest.raises(UserError) as caught:
        time_s = float(changed.pop("time_s", 3600))  # type: ignore[arg-type]  # a number
        planned(LUMI, replace(WISH, **changed), time_s)  # type: ignore[arg-type]  # fields by name
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_many_nodes_on_leonardo_need_another_quality_of_service() -> None:
    with pytest.raises(UserError) as caught:
        planned(LEONARDO, replace(WISH, nodes=128))
    assert caught.value.hint == "would do: boost_usr_prod with boost_qos_bprod"
    planned(LEONARDO, replace(WISH, nodes=128, qos="boost_qos_bprod"))
    with pytest.raises(UserError, match="at least 65"):
        planned(LEONARDO, replace(WISH, nodes=64, qos="boost_qos_bprod"))


def test_cores_are_bound_only_for_the_number_of_ranks_that_the_binding_is_for() -> None:
    assert "--cpu-bind=map_cpu:49,57,17,25,1,9,33,41" in words_for(LUMI, 8, "program")
    assert not [w for w in words_for(LUMI, 4, "program") if "--cpu-bind" in w]


def test_each_rank_gets_its_own_gpu_and_port(tmp_path: Path) -> None:
    for system, libraries, line in (
        (LUMI, (), "ROCR_VISIBLE_DEVICES=3"),
        (LEONARDO, ("ucx",), "UCX_NET_DEVICES=mlx5_3:1"),
    ):
        words = words_for(system, 1, "env", libraries=libraries)
        # What srun starts in every rank, without srun, which sets the number of the rank.
        wrapper = words[words.index("bash") :]
        environment = {"PATH": os.environ["PATH"], "SLURM_LOCALID": "3"}
        said = process.run_process(
            wrapper, environment=environment, timeout_s=PATIENCE_S, cwd=tmp_path
        )
        assert line in said.output.splitlines()
    assert "bash" not in words_for(LEONARDO, 4, "env", libraries=("nccl",))


def test_the_wrapper_passes_arguments_unchanged(tmp_path: Path) -> None:
    nasty = ("a b", "$(touch RAN)", "'", '"', "\n", "-n", "*", "")
    words = words_for(LUMI, 1, "printf", "%s\\0", *nasty)
    said = process.run_process(
        words[words.index("bash") :], environment={"PATH": os.environ["PATH"]},
        timeout_s=PATIENCE_S, cwd=tmp_path, whole_output=True,
    )  # fmt: skip
    assert said.output.split("\0")[:-1] == list(nasty)
    assert not list(tmp_path.iterdir())


def test_the_value_of_a_binding_never_runs(tmp_path: Path) -> None:
    assert LUMI.binding
    bad = LUMI.binding.per_rank[0].model_copy(update={"value": "$(touch RAN)'{local_rank}\";a"})
    binding = LUMI.binding.model_copy(update={"per_rank": [bad]})
    words = words_for(LUMI.model_copy(update={"binding": binding}), 1, "env")
    environment = {"PATH": os.environ["PATH"], "SLURM_LOCALID": "3"}
    said = process.run_process(
        words[words.index("bash") :], environment=environment, timeout_s=PATIENCE_S, cwd=tmp_path
    )
    assert "ROCR_VISIBLE_DEVICES=$(touch RAN)'3\";a" in said.output.splitlines()
    assert not list(tmp_path.iterdir())


def test_without_a_description_the_wish_alone_decides() -> None:
    wish = JobRequest(
        partition="gpu", nodes=3, ranks_per_node=2, gpus_per_node=2, memory="0", modules=("m",),
        exclude=("n9", "n1"), exclusive=True, cpus_per_rank=4,
    )  # fmt: skip
    job = job_for(
        None, wish, name="a", time_s=60, output="o", exclude=["n5", "n9"], environment={"A": "1"}
    )
    expected = Job(
        "a", 3, 2, 60, "o", partition="gpu", gpus_per_node=2, memory="0", modules=("m",),
        exclude="n1,n5,n9", exclusive=True, cpus_per_rank=4, environment={"A": "1"},
    )  # fmt: skip
    assert job == expected
    request = JobRequest(nodes=3, ranks_per_node=2, cpus_per_rank=4)
    assert launch_words(None, request, ("bench",)) == (
        "srun", "--nodes=3", "--ntasks=6", "--ntasks-per-node=2", "--cpus-per-task=4",
        "--kill-on-bad-exit=1", "--export=ALL", "bench",
    )  # fmt: skip


def test_a_wish_overrides_the_description() -> None:
    wish = replace(
        WISH, constraint="c", reservation="r", memory="1G", gres="gpu:mi250:2", exclusive=False,
        network="disable_rdzv_get",
        modules=("mine",), partition="small-g",
    )  # fmt: skip
    job = planned(LUMI, wish)
    assert (job.constraint, job.reservation, job.network, job.memory, job.partition) == (
        "c", "r", "disable_rdzv_get", "1G", "small-g",
    )  # fmt: skip
    assert (job.gres, job.gpus_per_node, job.exclusive, job.modules) == (
        "gpu:mi250:2", 0, False, ("mine",),
    )  # fmt: skip
    words = launch_words(LEONARDO, replace(WISH, ranks_per_node=4, cpu_bind="cores"), ("bench",))
    assert "--cpu-bind=cores" in words and "--cpu-bind=sockets" not in words


def test_before_the_program_come_wrapper_container_and_prefix() -> None:
    wish = JobRequest(
        mpi="pmix", gpu_bind="closest", launcher_options=("--overlap",),
        container="/images/a b.sif", container_command=("apptainer", "exec", "--nv"),
        prefix=("numactl", "-l"),
    )  # fmt: skip
    words = list(launch_words(LUMI, wish, ("bench", "--op", "x")))
    assert words[:8] == [
        "srun", "--nodes=1", "--ntasks=1", "--ntasks-per-node=1", "--mpi=pmix",
        "--gpu-bind=closest", "--kill-on-bad-exit=1", "--export=ALL",
    ]  # fmt: skip
    assert words[8:11] == ["--overlap", "bash", "-c"]
    assert words[12:] == [
        "rank", "apptainer", "exec", "--nv", "/images/a b.sif", "numactl", "-l",
        "bench", "--op", "x",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("library", "options"),
    [("openmpi", ["--map-by", "ppr:2:node"]), ("mpich", ["-ppn", "2"]), ("other", [])],
)
def test_each_launcher_gets_its_own_options(library: str, options: list[str]) -> None:
    wish = JobRequest(nodes=3, ranks_per_node=2, launcher="mpirun")
    words = launch_words(None, wish, ("bench",), (library,), "/opt/bin/mpirun")
    start = ["env", "SLURM_MPI_TYPE=none", "/opt/bin/mpirun", "-n", "6"]
    assert list(words) == [*start, *options, "bench"]


@pytest.mark.parametrize(
    "wish",
    [
        JobRequest(mpi="pmix"),
        JobRequest(cpu_bind="cores"),
        JobRequest(gpu_bind="closest"),
        JobRequest(uenv="prgenv-gnu/25.6:v2"),
    ],
)
def test_what_only_srun_can_do_is_refused_for_others(wish: JobRequest) -> None:
    with pytest.raises(UserError, match="is an option of srun, but mpiexec starts the ranks"):
        launch_words(None, replace(wish, launcher="mpiexec"), ("bench",))


def test_a_launcher_that_takes_nodes_and_ranks_from_the_job() -> None:
    wish = JobRequest(nodes=3, ranks_per_node=2, launcher="ibrun", launcher_options=("-v",))
    words = launch_words(None, wish, ("bench",), ("openmpi",), "/opt/bin/mpirun")
    assert words == ("ibrun", "-v", "bench")
    with pytest.raises(UserError, match="ibrun can't begin on a node by its number"):
        launch_words(None, wish, ("bench",), first_node=1)


def test_options_of_another_launcher_are_left_out() -> None:
    known = LUMI.launcher.model_copy(update={"options": ["--of-srun"], "mpi": "cray_shasta"})
    system = LUMI.model_copy(update={"launcher": known})
    assert {"--of-srun", "--mpi=cray_shasta"} <= set(
        launch_words(system, JobRequest(), ("bench",))
    )
    words = launch_words(system, JobRequest(launcher="mpiexec"), ("bench",))
    assert not {"--of-srun", "--mpi=cray_shasta"} & set(words)


def where_switches_are(what: str) -> System:
    assert LUMI.slurm
    slurm = LUMI.slurm.model_copy(update={"switches": what})
    return LUMI.model_copy(update={"slurm": slurm})


@pytest.mark.parametrize(
    ("placement", "system", "switches"),
    [
        ("any", None, 0),
        ("any", where_switches_are("group"), 0),
        ("same-switch", None, 1),
        ("same-switch", LUMI, 1),
        ("same-switch", where_switches_are("switch"), 1),
        ("same-group", where_switches_are("group"), 1),
    ],
)
def test_placement_is_asked_for_where_slurm_can_give_it(
    placement: Placement, system: System | None, switches: int
) -> None:
    assert planned(system, replace(WISH, placement=placement)).switches == switches


@pytest.mark.parametrize(
    ("placement", "system", "hint"),
    [
        ("same-group", None, "ask for placement: same-switch"),
        ("same-group", LUMI, "`switches: group` under `slurm`"),
        ("same-group", where_switches_are("switch"), "ask for placement: same-switch"),
        ("same-switch", where_switches_are("group"), "ask for placement: same-group"),
    ],
)
def test_a_placement_that_slurm_cannot_give_is_refused(
    placement: Placement, system: System | None, hint: str
) -> None:
    with pytest.raises(UserError) as caught:
        planned(system, replace(WISH, placement=placement))
    assert hint in caught.value.hint
