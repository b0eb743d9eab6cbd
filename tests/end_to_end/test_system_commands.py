"""``commtune systems detect`` and ``new``, as typed."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from command_line import CommandLine
from slurm_cluster import Cluster

from commtune.systems.loading import list_systems, load_system
from commtune.systems.schema import System


@pytest.fixture
def here(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


@pytest.fixture
def on_slurm(tmp_path: Path, shared_slurm: Cluster) -> CommandLine:
    """On a machine that is no node of the cluster."""
    return CommandLine(tmp_path, {"SLURM_CONF": shared_slurm.environment["SLURM_CONF"]})


def marked() -> tuple[System, str, str]:
    """A shipped description that is known by a variable, with its name and value."""
    for name in list_systems():
        system = load_system(name)
        known = system.recognized
        if known and known.environment and not system.retired:
            return system, *next(iter(known.environment.items()))
    pytest.fail("no shipped description is known by a variable")


def test_this_machine_is_described_and_recognized(here: CommandLine) -> None:
    made = here("systems", "new", "mine")
    assert (made.code, made.err) == (0, "")
    assert "wrote mine.yaml" in made.out
    here.succeed("systems", "validate", "mine.yaml")
    system = load_system(here.folder / "mine.yaml")
    assert system.node.cores <= (os.cpu_count() or 1)
    text = (here.folder / "mine.yaml").read_text()
    known = "recognized: {environment: {MINE: here}, source: seen}\nsources:"
    (here.folder / "mine.yaml").write_text(text.replace("sources:", known, 1))
    other = here("systems", "detect", "./mine.yaml")
    assert other.code == 4
    assert "not recognized" in other.out
    assert "under 'recognized' in ./mine.yaml" in other.out
    told = CommandLine(here.folder, {"MINE": "here"})("systems", "detect", "./mine.yaml")
    assert told.code == 0, told
    assert "this is mine (./mine.yaml), by the variable MINE=here" in told.out


def test_nothing_is_overwritten(here: CommandLine) -> None:
    file = here.write("mine", "mine.yaml")
    said = here("systems", "new", "mine")
    assert (said.code, file.read_text()) == (2, "mine")
    assert "exists already" in said.err
    here.succeed("systems", "new", "mine", "-o", "other.yaml")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("a b",), "can't be called 'a b'"),
        (("lumi",), "comes with commtune"),
        (("mine", "-o", "mine.txt"), "must end in .yaml"),
        (("mine", "-o", "nowhere/mine.yaml"), "No such file or directory"),
        (("mine", "--partition", "gpu"), "no Slurm lists partitions here"),
    ],
)
def test_bad_input_is_told(here: CommandLine, arguments: tuple[str, ...], words: str) -> None:
    empty = here.write("", "slurm.conf")
    nowhere = CommandLine(here.folder, {"SLURM_CONF": str(empty)})
    said = nowhere("systems", "new", *arguments)
    assert said.code == 2
    assert words in said.err and "Traceback" not in said.err
    assert list(here.folder.glob("*.yaml")) == []


@pytest.mark.parametrize("name", ["./nowhere.yaml", "nobody"])
def test_a_description_that_is_not_there(here: CommandLine, name: str) -> None:
    said = here("systems", "detect", name)
    assert said.code == 2
    assert "Traceback" not in said.err


def test_a_shipped_system_is_recognized(here: CommandLine) -> None:
    system, variable, value = marked()
    there = CommandLine(here.folder, {variable: value})
    said = there("systems", "detect", "--json")
    assert said.code == 0
    found = json.loads(said.out)
    assert found["recognized"] == [system.name]
    assert found["systems"][0]["by"] == [f"the variable {variable}={value}"]
    assert f"this is {system.name}" in there("systems", "detect").out


def test_json_of_an_unknown_machine(here: CommandLine) -> None:
    said = here("systems", "detect", "--json")
    assert said.code == 4
    assert json.loads(said.out)["recognized"] == []


def test_the_doctor_sees_which_daemon_is_down(slurm: Cluster, tmp_path: Path) -> None:
    line = CommandLine(tmp_path, {"SLURM_CONF": slurm.impatient["SLURM_CONF"]})

    def said() -> str:
        (found,) = re.findall(r"^slurm +(.*)$", line("doctor").out, re.MULTILINE)
        return " ".join(found.split())

    assert re.fullmatch(r"ok Slurm [\d.]+", said())
    slurm.stop_accounting()
    assert "slurmdbd does not answer ('sacct')" in said()
    slurm.stop_controller()
    assert "slurmctld does not answer ('scontrol ping')" in said()


def test_a_cluster_is_described(on_slurm: CommandLine) -> None:
    made = on_slurm.succeed("systems", "new", "testbed", "--partition", "closed")
    assert "whether compute nodes are like" in made.out
    system = load_system(on_slurm.folder / "testbed.yaml")
    assert system.recognized and system.recognized.cluster == ["test"]
    assert system.slurm
    assert (system.slurm.partition, system.slurm.account) == ("closed", "required")
    assert system.slurm.partitions["main"].longest == 3600
    assert system.launcher.command == "srun"
    found = on_slurm("systems", "detect", "testbed.yaml")
    assert found.code == 0
    assert "this is testbed (testbed.yaml), by Slurm's cluster name test" in found.out
    wrong = on_slurm("systems", "new", "other", "--partition", "mian")
    assert (wrong.code, "main" in wrong.err) == (2, True)


def test_a_compute_node_is_described(on_slurm: CommandLine, shared_slurm: Cluster) -> None:
    words = " ".join((*on_slurm.program, "systems", "new", "node"))
    command = f"cd {on_slurm.folder} && {words} && {words.replace('new node', 'detect node.yaml')}"
    job = shared_slurm.submit(
        f"export PYTHONPATH={on_slurm.environment()['PYTHONPATH']}; {command}", "--nodelist=n1"
    )
    shared_slurm.until(job, "COMPLETED")
    printed = shared_slurm.output(job)
    assert "whether compute nodes" not in printed
    assert "this is node (node.yaml), by Slurm's cluster name test" in printed
    system = load_system(on_slurm.folder / "node.yaml")
    assert "NodeName" not in system.sources["seen"]
    assert system.node.numa_nodes


def campaign(named: str = "") -> str:
    return f"""\
campaign: 1
name: small
space: mpich-host-allreduce
mpi: wheel:mpich
{named}
workload: {{nodes: 2, ranks: 2, sizes: [8]}}
slurm: {{mpi: pmi2, account: a}}
"""


def test_a_campaign_that_names_no_system_gets_a_hint(
    on_slurm: CommandLine, executable: Path
) -> None:
    assert executable
    system, variable, value = marked()
    there = CommandLine(on_slurm.folder, {**on_slurm.extra, variable: value})
    there.write(campaign())
    said = there.succeed("submit", "--dry-run", "campaign.yaml")
    assert f"this is {system.name} (the variable {variable}={value})" in said.err
    assert "note: this is" not in said.out
    assert "note: this is" not in on_slurm("submit", "--dry-run", "campaign.yaml").err
    there.write(campaign("system: leonardo"))
    assert "note: this is" not in there("submit", "--dry-run", "campaign.yaml").err
