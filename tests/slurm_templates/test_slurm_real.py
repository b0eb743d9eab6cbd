"""The rendered scripts on a real Slurm: what sbatch reads, and what arrives in the ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hostile_values import NASTY, expected
from slurm_cluster import Cluster
from slurm_scripts import shown, submitted

from commtune.slurm_templates.job_request import JobRequest, job_for
from commtune.slurm_templates.launch_command import launch_words
from commtune.slurm_templates.quoting import _DIRECTIVE
from commtune.slurm_templates.rendering import Job, Step, render_allocation, render_block
from commtune.systems.loading import load_system


def test_sbatch_reads_what_was_meant(cluster: Cluster) -> None:
    job = Job(
        "commtune-7:a@b", 2, 1, 90, str(cluster.folder / "job.out"), partition="main",
        comment="id:7/3", exclusive=True, warn_s=30,
    )  # fmt: skip
    found = shown(cluster, submitted(cluster, render_allocation(job, ("true",))))
    assert found["JobName"] == "commtune-7:a@b"
    assert found["Comment"] == "id:7/3"
    assert found["TimeLimit"] == "00:02:00"
    assert found["Requeue"] == "0"
    assert found["OverSubscribe"] == "NO"
    assert found["NumNodes"] in ("2", "2-2")


@pytest.mark.parametrize("option", ["name", "comment"])
def test_every_sign_that_is_let_through_arrives(cluster: Cluster, option: str) -> None:
    signs = "".join(c for c in map(chr, range(32, 127)) if _DIRECTIVE.match(c))
    job = replace(Job("x", 1, 1, 60, str(cluster.folder / "job.out")), **{option: signs})  # type: ignore[arg-type]  # text
    found = shown(cluster, submitted(cluster, render_allocation(job, ("true",))))
    assert found["JobName" if option == "name" else "Comment"] == signs


def test_nasty_values_reach_every_rank_and_the_login_shell_does_not(cluster: Cluster) -> None:
    folder = cluster.folder / "it's a $(touch RAN) folder"
    folder.mkdir()
    asked = {f"NASTY_{i}": value for i, value in enumerate(NASTY)}
    words = ("srun", "--nodes=2", "--ntasks-per-node=1", "--export=ALL", "sh", "-c",
             'exec env -0 >"$0.$SLURM_PROCID"', str(folder / "rank"))  # fmt: skip
    step = Step(words, str(folder / "out"), str(folder / "exit"), asked, time_limit_s=100)
    job = Job("nasty", 2, 1, 120, str(cluster.folder / "job.out"))
    number = submitted(
        cluster, render_block(job, (step,), str(folder)), LEAKED="from the login shell"
    )
    cluster.until(number, "COMPLETED")
    said = (folder / "out").read_text(errors="replace") + (cluster.folder / "job.out").read_text()
    assert (folder / "exit").read_text().split()[0] == "0", said
    for rank in ("rank.0", "rank.1"):
        entries = (folder / rank).read_bytes().split(b"\0")[:-1]
        found = {name: value for name, _, value in (e.partition(b"=") for e in entries)}
        assert {k: v for k, v in found.items() if k.startswith(b"NASTY_")} == expected(asked)
        assert b"LEAKED" not in found
        assert found[b"SLURM_PROCID"] == rank[-1].encode()
    assert not list(cluster.folder.rglob("RAN"))


def test_each_rank_is_bound_on_a_real_step(cluster: Cluster, tmp_path: Path) -> None:
    here = load_system("lumi")  # its cores are bound for 8 ranks a node only
    wish = JobRequest(account="none", ranks_per_node=2)
    output = str(cluster.folder / "job.out")
    # This cluster has no GPUs and one partition.
    job = job_for(here, wish, name="bound", time_s=120, output=output)
    job = replace(job, account="", partition="main", gpus_per_node=0)
    words = launch_words(here, wish, ("sh", "-c", "echo $SLURM_LOCALID $ROCR_VISIBLE_DEVICES"))
    tmp_path.chmod(0o755)
    step = Step(words, str(tmp_path / "out"), str(tmp_path / "exit"), time_limit_s=100)
    cluster.until(submitted(cluster, render_block(job, (step,), str(tmp_path))), "COMPLETED")
    assert sorted((tmp_path / "out").read_text().splitlines()) == ["0 0", "1 1"]


def test_a_controller_in_an_allocation_ends_the_job_with_its_status(cluster: Cluster) -> None:
    output = cluster.folder / "allocation.out"
    job = Job("controller", 1, 1, 60, str(output), environment={"A": "$(touch RAN)"})
    names = "NCCL_|SLURM_CPU_BIND=|SLURM_MPI_TYPE=|SLURM_LABELIO"
    says = f'echo "$A"; env | grep -E "^({names})" || true'
    words = ("sh", "-c", f"{says}; srun --export=ALL sh -c '{says}'; exit 7")
    number = submitted(
        cluster, render_allocation(job, words), NCCL_ALGO="Ring", SLURM_CPU_BIND="junk",
        SLURM_MPI_TYPE="junk", SLURM_LABELIO="1", SLURM_EXPORT_ENV="NONE",
    )  # fmt: skip
    cluster.until(number, "FAILED")
    # srun tells its tasks which binding it chose itself.
    lines = [line for line in output.read_text().splitlines() if "SLURM_CPU_BIND=" not in line]
    assert lines == ["$(touch RAN)"] * 2
    assert "junk" not in output.read_text()
    assert shown(cluster, number)["ExitCode"] == "7:0"
    assert not list(cluster.folder.rglob("RAN"))
