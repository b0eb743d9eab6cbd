"""What belongs on a cluster, on a machine without one."""

from __future__ import annotations

import os
from pathlib import Path

import database_values as given
import pytest
from made_files import write_script
from own_process import OwnProcess, refused
from step_program import MODES_SPACE, STEP_CAMPAIGN
from stores import opened_store

from commtune.campaign.loading import load_campaign


@pytest.fixture
def without_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Words of a real one that finds no cluster, at once: it would go on trying for a minute.
    said = "resolve_ctls_from_dns_srv: res_nsearch error: Unknown host"
    write_script(tmp_path / "bin" / "scontrol", f"echo 'scontrol: error: {said}' >&2\nexit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")


@pytest.mark.usefixtures("without_slurm")
def test_a_system_without_its_slurm_is_said_in_words(quick: OwnProcess) -> None:
    quick.write(
        "campaign: 1\nname: wrong\nspace: mpich-host-allreduce\nmpi: wheel:mpich\n"
        "system: frontier\nslurm: {account: a}\n",
        "far.yaml",
    )
    message = refused(quick("tune", "far.yaml"), code=3)
    assert "campaigns on frontier go through Slurm, and Slurm " in message
    assert "start it on a login node of frontier" in message
    assert "leave 'system' and 'slurm' out of the campaign file" in message


def _store_best(quick: OwnProcess, system: str) -> None:
    """Stores a profile of a campaign on Slurm."""
    quick.write(MODES_SPACE, "space.yaml")
    file = quick.write(STEP_CAMPAIGN + system + "slurm: {account: a}\n", "far.yaml")
    spec = load_campaign(file)
    quick.database.parent.mkdir(parents=True)
    record = given.campaign(
        "step",
        what=spec.plan.comparable({"slurm": {}, "mpi": {"flavour": "mpich"}}),
        settings={"slurm": {"file": str(file)}, "mpi": spec.mpi},
    )
    best = given.profile("best", points=(given.point(1024, "all"),))
    with opened_store(quick.database) as store:
        store.save_profiles(store.open_campaign(record).id, [best])


@pytest.mark.usefixtures("without_slurm")
@pytest.mark.parametrize("command", [("verify",), ("compare", "default")])
def test_what_was_measured_on_a_system_is_measured_again_there_only(
    quick: OwnProcess, command: tuple[str, ...]
) -> None:
    _store_best(quick, "system: frontier\n")
    message = refused(quick(*command, "step/best"), code=3)
    assert "campaigns on frontier go through Slurm, and Slurm " in message
    assert "start it on a login node of frontier" in message
    # Without its system, the file would be another campaign's.
    assert "out of the campaign file" not in message


def test_what_was_measured_on_slurm_is_measured_again_there_only(
    quick: OwnProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(quick.folder))  # which has no scontrol
    _store_best(quick, "")
    assert refused(quick("verify", "step/best"), code=3) == (
        "commtune: campaign step goes through Slurm, and Slurm is not on this machine\n"
        "  start it on a login node\n"
    )


@pytest.mark.parametrize("scheduler", ["slurm", "pbs"])
def test_a_script_is_shown_without_a_scheduler(
    quick: OwnProcess, monkeypatch: pytest.MonkeyPatch, scheduler: str
) -> None:
    monkeypatch.setenv("PATH", str(quick.folder))  # which has no scontrol and no qstat
    quick.write(MODES_SPACE, "space.yaml")
    quick.write(STEP_CAMPAIGN + f"{scheduler}: {{account: a}}\n", "far.yaml")
    for block in ((), ("--block",)):
        said = quick("submit", "--dry-run", *block, "far.yaml")
        assert (said.code, said.out.partition("\n")[0]) == (0, "#!/bin/bash"), said.err
        assert "note: kinds of nodes and topology are not checked: " in said.err
    assert "there is no " in refused(quick("submit", "far.yaml"), code=3)
