"""The script for each shipped system where Slurm runs jobs: as it was, and as Slurm takes it.

No machine of these is here. A controller that knows nodes, GPUs and partitions like theirs is: its
nodes are a cloud's, which may be asked for although no slurmd has ever run on them.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from slurm_cluster import Cluster
from waiting import PATIENCE_S, wait_for

from commtune.slurm_templates.job_request import JobRequest, job_for
from commtune.slurm_templates.launch_command import launch_words
from commtune.slurm_templates.rendering import Job, Step, render_block
from commtune.systems.loading import list_systems, load_system
from commtune.systems.schema import System

GOLDEN = Path(__file__).parent / "golden"
#: By system, the libraries that are measured in its script.
LIBRARIES = {
    "alps": {"nccl"},
    "aws-p5": {"nccl"},
    "azure-ndh100v5": {"nccl"},
    "delta": {"nccl"},
    "dgx-a100": {"nccl"},
    "dgx-h100": {"nccl"},
    "dgx-h200": {"nccl"},
    "frontera": {"intel-mpi"},
    "frontier": {"rccl"},
    "gcp-a3mega": {"nccl"},
    "isambard-ai": {"nccl"},
    "jupiter": {"openmpi"},
    "leonardo": {"nccl"},
    "lumi": {"rccl"},
    "marenostrum5": {"nccl"},
    "neuron": {"openmpi", "nccl"},
    "perlmutter": {"cray-mpich"},
    "stampede3": {"intel-mpi"},
    "vista": {"openmpi"},
}
#: The system whose script is kept whole. Of the others, what differs is kept.
FIRST = "dgx-a100"
#: Nodes that each machine has here.
NODES = 3


def asked(system: System) -> tuple[JobRequest, Job]:
    """A job of two nodes with a rank a GPU, as a campaign asks for it."""
    libraries = LIBRARIES[system.name]
    ranks = system.gpus.count if system.gpus else 1
    wish = JobRequest(account="project_1", nodes=2, ranks_per_node=ranks)
    output = "/scratch/me/block.out"
    return wish, job_for(
        system, wish, name="commtune-7-3", time_s=1500, output=output, libraries=libraries
    )


def script(system: System) -> str:
    """The script of a block with one run."""
    wish, job = asked(system)
    words = launch_words(system, wish, ("/home/me/bench",), LIBRARIES[system.name])
    step = Step(words, "0.out", "0.exit", {"NCCL_MIN_NCHANNELS": "8"}, time_limit_s=30)
    return render_block(job, (step,), ".")


def test_every_system_where_slurm_runs_jobs_has_a_script() -> None:
    assert sorted(LIBRARIES) == [name for name in list_systems() if load_system(name).slurm]


def _differences() -> Iterator[str]:
    """Of each system, the lines of its script that differ from those of the first."""
    first = script(load_system(FIRST)).splitlines()
    for name in sorted(set(LIBRARIES) - {FIRST, "lumi", "leonardo"}):
        text = script(load_system(name))
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)
        yield f"=== {name}"
        yield from list(difflib.unified_diff(first, text.splitlines(), lineterm="", n=0))[2:]


def test_scripts_are_as_they_were() -> None:
    # COMMTUNE_WRITE_GOLDEN=1 writes them again; read the difference before you commit it.
    # Those of LUMI and Leonardo, which have more in them, stand beside the templates' tests.
    found = {f"{FIRST}-block.sh": script(load_system(FIRST))}
    found["systems.diff"] = "\n".join(_differences()) + "\n"
    for name, text in found.items():
        if os.environ.get("COMMTUNE_WRITE_GOLDEN"):
            (GOLDEN / name).write_text(text, encoding="ascii")
        assert text == (GOLDEN / name).read_text(encoding="ascii")


def _nodes(system: System) -> str:
    """A machine's nodes, as slurm.conf has them; a controller takes no memory for granted."""
    node = system.node
    line = (
        f"NodeName=m[1-{NODES}] Sockets={node.sockets} "
        f"CoresPerSocket={node.cores // node.sockets} ThreadsPerCore=1 "
        f"RealMemory={node.memory // 2**20} State=CLOUD"
    )
    line += f" Gres=gpu:{system.gpus.count}" if system.gpus else ""
    constraint = system.slurm.constraint if system.slurm else ""
    return line + (f" Feature={constraint}" if constraint else "")


def _partitions(system: System) -> Iterator[str]:
    assert system.slurm
    for name, partition in system.slurm.partitions.items():
        line = f"PartitionName={name} Nodes=ALL State=UP"
        line += f" MaxNodes={partition.most_nodes}" if partition.most_nodes else ""
        line += f" MaxTime={int(partition.longest // 60)}" if partition.longest else ""
        line += "" if partition.named else " Default=YES"
        yield line + (" OverSubscribe=EXCLUSIVE" if partition.whole_nodes else "")


@contextlib.contextmanager
def _controller(cluster: Cluster, system: System) -> Iterator[Mapping[str, str]]:
    """A controller of such a machine, beside that of the tests' cluster, whose key it shares."""
    name = f"like-{system.name}"

    environment = cluster.variant(
        name,
        ClusterName=system.name,
        SlurmctldHost=f"{socket.gethostname().split('.')[0]}(127.0.0.1)",
        SlurmctldPort=cluster.spare_port,
        StateSaveLocation=str(cluster.folder / name / "state"),
        SlurmctldPidFile=str(cluster.folder / name / "pid"),
        SlurmctldLogFile=str(cluster.folder / name / "log"),
        AccountingStorageType="accounting_storage/none",
        AccountingStorageEnforce="",
        SelectTypeParameters="CR_Core_Memory",
        TopologyPlugin="topology/none",
        NodeName="",
        PartitionName="",
    )
    conf = Path(environment["SLURM_CONF"])
    never = "/bin/true"
    more = [
        "GresTypes=gpu", "EnforcePartLimits=ALL", f"SuspendProgram={never}",
        f"ResumeProgram={never}", "SuspendTime=3600", _nodes(system), *_partitions(system),
    ]  # fmt: skip
    conf.write_text(conf.read_text() + "\n".join(more) + "\n")
    (conf.parent / "state").mkdir()
    controller = subprocess.Popen(["slurmctld", "-D", "-i"], env=environment)
    try:

        def answers() -> bool:
            assert controller.poll() is None, _said(conf)
            return not subprocess.run(["scontrol", "ping"], env=environment).returncode

        wait_for(answers, "slurmctld")
        yield environment
    finally:
        controller.kill()  # in order, it would take a second more to save what nobody wants
        controller.wait(PATIENCE_S)


def _said(conf: Path) -> str:
    return (conf.parent / "log").read_text()


def _tested(cluster: Cluster, text: str, environment: Mapping[str, str]) -> str:
    """What sbatch says of a script without submitting it."""
    file = cluster.folder / "tested.sh"
    file.write_text(text, encoding="ascii")
    done = subprocess.run(
        ["sbatch", "--test-only", str(file)], env=environment, capture_output=True, text=True,
        timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", sorted(LIBRARIES))
def test_slurm_would_start_the_script_on_such_a_machine(shared_slurm: Cluster, name: str) -> None:
    system = load_system(name)
    text = script(system)
    with _controller(shared_slurm, system) as environment:
        assert "to start at" in _tested(shared_slurm, text, environment)
        # The same that asks for more than there is: so it is this machine that was asked.
        many = text.replace("--nodes=2", f"--nodes={NODES + 1}", 1)
        assert "to start at" not in _tested(shared_slurm, many, environment)
        if system.slurm and system.slurm.gpus != "none" and system.gpus:
            count = system.gpus.count
            for option in (f"--gres=gpu:{count}", f"--gpus-per-node={count}"):
                text = text.replace(option, option.replace(str(count), str(count + 1)), 1)
            assert "to start at" not in _tested(shared_slurm, text, environment)
