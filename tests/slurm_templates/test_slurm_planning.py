"""From a system description to a job and a launch command."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from commtune import process
from commtune.errors import UserError
from commtune.slurm_templates import Job, Wish, job_for, launch
from commtune.systems import System, load_system

LUMI, LEONARDO = load_system("lumi"), load_system("leonardo")
WISH = Wish(nodes=2, ranks_per_node=8, account="project_1")


def planned(
    system: System | None, wish: Wish = WISH, time_s: float = 3600, *libraries: str
) -> Job:
    return job_for(system, wish, name="name", time_s=time_s, output="out", libraries=libraries)


def words_for(
    system: System, ranks: int, *command: str, libraries: tuple[str, ...] = ()
) -> list[str]:
    """How a program is started, with so many ranks a node."""
    return list(launch(system, Wish(ranks_per_node=ranks), command, libraries))


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
        said = process.run(wrapper, environment=environment, timeout_s=20, cwd=tmp_path)
        assert line in said.output.splitlines()
    assert "bash" not in words_for(LEONARDO, 4, "env", libraries=("nccl",))


def test_the_wrapper_passes_arguments_unchanged(tmp_path: Path) -> None:
    nasty = ("a b", "$(touch RAN)", "'", '"', "\n", "-n", "*", "")
    words = words_for(LUMI, 1, "printf", "%s\\0", *nasty)
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
    words = words_for(LUMI.model_copy(update={"binding": binding}), 1, "env")
    environment = {"PATH": os.environ["PATH"], "SLURM_LOCALID": "3"}
    said = process.run(
        words[words.index("bash") :], environment=environment, timeout_s=20, cwd=tmp_path
    )
    assert "ROCR_VISIBLE_DEVICES=$(touch RAN)'3\";a" in said.output.splitlines()
    assert not list(tmp_path.iterdir())
