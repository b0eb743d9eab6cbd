"""``commtune systems reference-settings``; and such settings in ``compare`` and a campaign."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import CommandLine
from step_program import LAUNCHED, ONE_RANK, write_one_rank

from commtune.systems.reference_settings import all_reference_settings

EAGER = "alcf-aurora-mpich-eager"
WORKLOAD = ("--mpi", "wheel:mpich", "--sizes", "8", "--time", "100ms")


@pytest.fixture
def here(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


def test_all_are_listed(here: CommandLine) -> None:
    said = here("systems", "reference-settings")
    assert (said.code, said.err) == (0, "")
    assert all(name in said.out for name in all_reference_settings())
    found = json.loads(here("systems", "reference-settings", "--json").out)
    assert [one["name"] for one in found] == list(all_reference_settings())


def test_those_of_a_system_in_full(here: CommandLine) -> None:
    said = here("systems", "reference-settings", "alps")
    assert said.code == 0
    assert "cscs-alps-uenv-nccl: " in said.out
    assert "NCCL_NET=AWS Libfabric" in said.out
    assert "can't be tried as it stands" in said.out
    assert "lumi" not in said.out
    found = json.loads(here("systems", "reference-settings", "alps", "--json").out)
    assert {"alps"} == {system for one in found for system in one["systems"]}
    assert found[0]["environment"] and found[0]["source"].startswith("repository")


def test_a_system_without_any_and_one_that_nobody_knows(here: CommandLine) -> None:
    none = here("systems", "reference-settings", "neuron")
    assert (none.code, none.out) == (0, "no reference settings are known for neuron\n")
    wrong = here("systems", "reference-settings", "polari")
    assert wrong.code == 2
    assert "nearest: polaris" in wrong.err


def test_one_by_its_name(here: CommandLine) -> None:
    said = here("systems", "reference-settings", "aws-p5")  # for no system that has a name
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("aws-p5: ")
    assert "    on p5, p5e, p6-b300 and later instances, for nccl\n" in said.out
    assert "can't be tried as it stands: " in said.out
    assert here("systems", "reference-settings", "reference:aws-p5").out == said.out
    wrong = here("systems", "reference-settings", "aws-p4")
    assert (wrong.code, wrong.out) == (2, "")
    assert "nearest: aws-p4d" in wrong.err


def test_what_to_know_of_baselines_is_said_before_they_are_compared(
    commtune: CommandLine,
) -> None:
    sides = ("reference:olcf-frontier-rccl", f"reference:{EAGER}")
    said = commtune.succeed("compare", *sides, *WORKLOAD, "--json")
    found = json.loads(said.out)
    notes = [line for line in said.err.splitlines() if line.startswith("note: ")]
    assert all(note.startswith(f"note: {sides[0]} is ") for note in notes), notes
    assert found["b"]["written"] == f"reference:{EAGER}"
    assert found["b"]["configuration"] == {"MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD": "1000000"}
    assert found["blocks"] > 0
    assert "measured without NCCL_NET_PLUGIN, which is yours to set" in said.err
    assert "meant for this launch: srun --network=disable_rdzv_get" in said.err
    assert "is for rccl, and these runs use mpich" in said.err


def test_a_baseline_that_is_not_there(here: CommandLine) -> None:
    said = here("compare", "default", "reference:alcf-aurora-mpich-eagre")
    assert said.code == 2
    assert f"nearest: {EAGER}" in said.err
    assert "Traceback" not in said.err


def test_a_campaign_tries_them_first_and_keeps_what_it_did(here: CommandLine) -> None:
    declared = (
        f"reference_settings: [{EAGER}, alcf-aurora-mpich-ipc]\nextend:\n"
        "  - {name: MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD, kind: integer, values: [1000]}\n"
    )
    write_one_rank(here, campaign=LAUNCHED.replace("trials: 3", "trials: 2") + declared)
    said = here.succeed("tune", "campaign.yaml", "--json")
    assert f"reference:{EAGER} is tried first, as it stands" in said.err
    brought = "MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD=1000000, MPIR_CVAR_CH4_IPC_GPU_ENGINE_TYPE="
    assert f"note: for its reference settings, the search also has {brought}" in said.err
    again = here("tune", "campaign.yaml", "--json")  # the same question: it just goes on
    assert again.code == 0, again.err
    ((settings,),) = here.query("SELECT settings FROM campaigns")
    kept = json.loads(settings)["reference_settings"]
    assert [one["name"] for one in kept] == [EAGER, "alcf-aurora-mpich-ipc"]
    assert kept[0]["tried"] == {"MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD": "1000000"}
    ((environment, origin),) = here.query(
        "SELECT c.environment, t.origin FROM trials t JOIN configurations c "
        "ON c.id = t.configuration_id WHERE t.number = 1"
    )
    assert json.loads(environment) == kept[0]["tried"]
    assert origin == "user"


def test_the_campaigns_of_a_finding_are_written(commtune: CommandLine) -> None:
    said = commtune.succeed("findings", "reproduce", "no-sdma", "-o", "sdma", "--account", "p1")
    assert said.out == (
        "wrote sdma/no-sdma-lumi.yaml; on lumi: commtune submit sdma/no-sdma-lumi.yaml\n"
    )
    file = "sdma/no-sdma-lumi.yaml"
    assert "first:\n- {HSA_ENABLE_SDMA: '0'}\n" in (commtune.folder / file).read_text()
    commtune.succeed("spaces", "validate", file)
    again = commtune("findings", "reproduce", "no-sdma", "-o", "sdma")
    assert (again.code, again.err.splitlines()[0]) == (2, f"commtune: {file} exists already")
    said = commtune("findings", "reproduce", "affinity-alltoall")
    assert "--system alps" in said.err
    said = commtune("findings", "reproduce", "affinty-alltoall")
    assert "nearest: affinity-alltoall" in said.err
    said = commtune("findings", "reproduce", "mpi-middle-sizes")
    parts = said.out.split("---\n")
    assert ["backend: mpi-device" in parts[0], "backend: xccl" in parts[1]] == [True, True]
    said = commtune("findings", "reproduce", "mpi-middle-sizes", "-o", "middle")
    assert said.out.count("put your project for YOUR_PROJECT, then on leonardo: ") == 2


def test_a_campaign_without_trials_measures_the_default(here: CommandLine) -> None:
    write_one_rank(here, campaign=ONE_RANK.replace("trials: 3", "trials: 0"))
    said = here.succeed("tune", "campaign.yaml")
    assert "Times of the default alone: nothing was searched" in said.out
    assert "commtune results small\n" in said.out
    assert " 1 B " in said.out and "slowest run" in said.out
    ((runs, others),) = here.query(
        "SELECT count(*), count(DISTINCT trial_id) FROM runs WHERE phase = 'search'"
    )
    assert runs >= 10 and others == 1
