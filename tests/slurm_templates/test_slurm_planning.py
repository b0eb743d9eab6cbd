"""From a system description to a job and a launch command."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from commtune import process
from commtune.errors import UserError
from commtune.slurm_templates import Request, job_for, launch
from commtune.systems import load_system

LUMI, LEONARDO = load_system("lumi"), load_system("leonardo")
REQUEST = Request("name", 2, 8, 3600, "out", account="project_1")


def test_what_the_description_says_is_asked_for() -> None:
    job = job_for(LUMI, replace(REQUEST, libraries=frozenset({"cray-mpich"})))
    assert (job.partition, job.gpus_per_node, job.gres, job.exclusive) == (
        "standard-g", 8, "", True,
    )  # fmt: skip
    assert job.environment == {"MPICH_GPU_SUPPORT_ENABLED": "1"}
    job = job_for(LEONARDO, REQUEST)
    assert (job.gres, job.gpus_per_node, job.memory) == ("gpu:4", 0, "0")
    assert job.modules == ()


def test_what_is_meant_for_other_libraries_is_left_out() -> None:
    assert job_for(LUMI, replace(REQUEST, libraries=frozenset({"rccl"}))).environment == {}
    job = job_for(LEONARDO, replace(REQUEST, libraries=frozenset({"nccl"})))
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
        job_for(LUMI, replace(REQUEST, **changed))  # type: ignore[arg-type]  # fields by name
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_many_nodes_on_leonardo_need_another_quality_of_service() -> None:
    with pytest.raises(UserError) as caught:
        job_for(LEONARDO, replace(REQUEST, nodes=128))
    assert caught.value.hint == "would do: boost_usr_prod with boost_qos_bprod"
    job_for(LEONARDO, replace(REQUEST, nodes=128, qos="boost_qos_bprod"))
    with pytest.raises(UserError, match="at least 65"):
        job_for(LEONARDO, replace(REQUEST, nodes=64, qos="boost_qos_bprod"))


def test_cores_are_bound_only_for_the_number_of_ranks_that_the_binding_is_for() -> None:
    assert "--cpu-bind=map_cpu:49,57,17,25,1,9,33,41" in launch(LUMI, 2, 8, ("program",))
    assert not [w for w in launch(LUMI, 2, 4, ("program",)) if "--cpu-bind" in w]


def test_another_launcher_is_refused() -> None:
    other = LUMI.launcher.model_copy(update={"command": "mpirun"})
    with pytest.raises(UserError, match="started by mpirun"):
        launch(LUMI.model_copy(update={"launcher": other}), 1, 1, ("program",))


def test_each_rank_gets_its_own_gpu_and_port(tmp_path: Path) -> None:
    for system, libraries, line in (
        (LUMI, (), "ROCR_VISIBLE_DEVICES=3"),
        (LEONARDO, ("ucx",), "UCX_NET_DEVICES=mlx5_3:1"),
    ):
        words = launch(system, 1, 1, ("env",), libraries)
        # What srun starts in every rank, without srun, which sets the number of the rank.
        wrapper = words[words.index("bash") :]
        environment = {"PATH": os.environ["PATH"], "SLURM_LOCALID": "3"}
        said = process.run(wrapper, environment=environment, timeout_s=20, cwd=tmp_path)
        assert line in said.output.splitlines()
    assert "bash" not in launch(LEONARDO, 1, 4, ("env",), ("nccl",))


def test_the_wrapper_passes_arguments_unchanged(tmp_path: Path) -> None:
    nasty = ("a b", "$(touch RAN)", "'", '"', "\n", "-n", "*", "")
    words = launch(LUMI, 1, 1, ("printf", "%s\\0", *nasty))
    said = process.run(
        words[words.index("bash") :], environment={"PATH": os.environ["PATH"]}, timeout_s=20,
        cwd=tmp_path, whole_output=True,
    )  # fmt: skip
    assert said.output.split("\0")[:-1] == list(nasty)
    assert not list(tmp_path.iterdir())


def test_the_value_of_a_binding_never_runs(tmp_path: Path) -> None:
    assert LUMI.binding
    bad = LUMI.binding.per_rank[0].model_copy(update={"value": "$(touch RAN)'{local_rank}\";a"})
    binding = LUMI.binding.model_copy(update={"per_rank": [bad]})
    words = launch(LUMI.model_copy(update={"binding": binding}), 1, 1, ("env",))
    environment = {"PATH": os.environ["PATH"], "SLURM_LOCALID": "3"}
    said = process.run(
        words[words.index("bash") :], environment=environment, timeout_s=20, cwd=tmp_path
    )
    assert "ROCR_VISIBLE_DEVICES=$(touch RAN)'3\";a" in said.output.splitlines()
    assert not list(tmp_path.iterdir())
