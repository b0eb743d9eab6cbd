"""The section ``pbs`` of a campaign file, and the script that comes of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from commtune.campaign.loading import load_campaign, parse_campaign
from commtune.errors import CampaignError
from commtune.model import JobScheduler
from commtune.slurm_templates.job_request import job_for
from commtune.slurm_templates.launch_command import launch_words
from commtune.slurm_templates.rendering import Step, render_allocation, render_block

CAMPAIGN = """\
campaign: 1
name: night
space: mpich-host-allreduce
mpi: wheel:mpich
workload: {nodes: 2, ranks: 8}
"""


def _script(text: str, folder: Path) -> str:
    spec = parse_campaign(CAMPAIGN + text, folder)
    assert spec.job_request is not None
    assert spec.job_request.scheduler is JobScheduler.PBS
    job = job_for(
        spec.system, spec.job_request, name="commtune-night", time_s=90.2, output="/o/job.out"
    )
    words = launch_words(
        spec.system, spec.job_request, ("program",), {"mpich"}, "/mpi/bin/mpiexec"
    )
    step = Step(words, f"{folder}/0.out", f"{folder}/0.exit", {"A": "b c"}, time_limit_s=60)
    return render_block(job, (step,), folder)


def _directives(script: str) -> list[str]:
    return [line for line in script.splitlines() if line.startswith("#PBS")]


def test_the_site_decides_what_is_left_out(tmp_path: Path) -> None:
    script = _script("pbs: {}\n", tmp_path)
    assert _directives(script) == [
        "#PBS -N commtune-night",
        "#PBS -l select=2:ncpus=4:mpiprocs=4",
        "#PBS -l place=scatter:excl",
        "#PBS -l walltime=91",
        "#PBS -j oe",
        "#PBS -k doe",
        "#PBS -o /o/job.out",
        "#PBS -S /bin/bash",
        "#PBS -r n",
    ]
    assert "'/mpi/bin/mpiexec' -n 8 -ppn 4 program" in script
    assert "SLURM" not in script and "srun" not in script and "squeue" not in script
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_what_is_asked_for_is_in_the_script(tmp_path: Path) -> None:
    script = _script(
        "pbs: {account: mine, queue: prod, chunk: 'ncpus=64:ngpus=4', place: scatter, "
        "resources: ['filesystems=home:eagle'], launcher_options: [--depth=2], "
        "modules: [mpi/1]}\n",
        tmp_path,
    )
    found = _directives(script)
    assert "#PBS -l select=2:ncpus=64:ngpus=4:mpiprocs=4" in found
    assert "#PBS -l place=scatter" in found
    assert "#PBS -l filesystems=home:eagle" in found
    assert "#PBS -A mine" in found and "#PBS -q prod" in found
    assert "-ppn 4 --depth=2 program" in script
    assert "module load 'mpi/1'" in script


@pytest.mark.parametrize("before_s", [0, 4])
def test_an_allocations_script_warns_its_controller_since_pbs_does_not(
    tmp_path: Path, before_s: int
) -> None:
    text = f"pbs: {{time: 33s, before: sleep {before_s}}}\n"
    spec = parse_campaign(CAMPAIGN + text, tmp_path)
    assert spec.job_request is not None and spec.job_request.time_s == 33
    job = job_for(None, spec.job_request, name="x", time_s=33, output="/o/job.out", warn_s=30)
    controller = ("bash", "-c", "trap 'exit 7' USR1; while :; do sleep 0.1; done")
    script = render_allocation(job, controller)
    assert "#SBATCH" not in script and "SLURM" not in script
    assert "#PBS -l walltime=33" in _directives(script)
    file = tmp_path / "script.sh"
    file.write_text(script)
    done = subprocess.run(["bash", str(file)], stdout=subprocess.DEVNULL, check=False)
    assert done.returncode == 7


@pytest.mark.parametrize("name", ["aurora", "polaris"])
def test_a_described_system_supplies_its_queue(tmp_path: Path, name: str) -> None:
    text = f"system: {name}\npbs: {{account: mine}}\n"
    assert "#PBS -q debug-scaling" in _directives(_script(text, tmp_path))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pbs: {}\nslurm: {}\n", "a campaign has either 'slurm' or 'pbs'"),
        ("pbs: {partition: a}\n", "partition"),
        ("pbs: {chunk: 'ncpus=4 -q other'}\n", "a blank"),
        ("pbs: {resources: ['a=b c']}\n", "a blank"),
        ("pbs: {chunk: '2:ncpus=4'}\n", "'2:ncpus=4' is not a list of resources"),
        ("pbs: {chunk: 'ncpus=4+1:ncpus=8'}\n", "is not a list of resources"),
        ("pbs: {chunk: 'ncpus=4:mpiprocs=2'}\n", "'mpiprocs' follows from the workload's"),
        ("pbs: {resources: [home]}\n", "'home' is not a resource"),
        ("pbs: {resources: ['walltime=600']}\n", "use 'block_time'"),
        ("system: lumi\npbs: {account: a}\n", "jobs of lumi are run by Slurm, not by PBS"),
        ("system: aurora\nslurm: {}\n", "write 'pbs' in the place of 'slurm'"),
        ("pbs: {container_command: [a]}\n", "a container command without a container"),
        (
            "pbs: {}\naggressor: {pattern: alltoall, nodes: 2}\n",
            "can't begin on a node by its number",
        ),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "night.yaml").write_text(CAMPAIGN + text)
    with pytest.raises(CampaignError) as caught:
        load_campaign(tmp_path / "night.yaml")
    assert said in str(caught.value) + caught.value.hint


def test_a_variable_of_pbs_cannot_be_set(tmp_path: Path) -> None:
    spec = parse_campaign(CAMPAIGN + "pbs: {}\n", tmp_path)
    assert spec.job_request is not None
    job = job_for(
        None, spec.job_request, name="a", time_s=60, output="o", environment={"PBS_NODEFILE": "x"}
    )
    with pytest.raises(Exception, match="belongs to PBS"):
        render_block(job, (), tmp_path)
