"""Campaigns are bound to the libraries below MPI whose variables they search: a real MPICH on UCX.

Its UCX is 1.20.1. Other versions are given, as if another UCX had been loaded then.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import CommandLine, Said
from components import require_component
from mpi_fixture import session_mpi
from rule_campaigns import stated
from stores import opened_store

from commtune.model import content_key
from commtune.wiring.job_handover import _GIVEN_VARIABLE

_SPACE = """\
space: 1
name: below
version: 1
summary: UCX below MPICH.
library: mpich
versions: ">=4"
facts: [ucx]
parameters:
  - {name: UCX_RNDV_THRESH, values: [4KiB]}
"""
_CAMPAIGN = """\
campaign: 1
name: small
space: ./below.yaml
mpi: wheel:mpich
workload: {sizes: [8]}
timing: {max_samples: 10, time_cap: 2ms}
budget: {search: 100ms, trials: 0}
run_time_limit: 60s
"""
_PROFILE = stated("allreduce", 8, 8, {"UCX_RNDV_THRESH": "4096"})


@pytest.fixture(scope="module")
def made(executable: Path, tmp_path_factory: pytest.TempPathFactory) -> CommandLine:  # noqa: ARG001  # built before
    """A campaign that was measured on UCX 1.20.0, with a profile."""
    mpi = session_mpi()
    require_component("MPICH's wheel", mpi is not None and mpi.origin == "wheel:mpich")
    line = CommandLine(tmp_path_factory.mktemp("versions"), extra={_GIVEN_VARIABLE: "ucx=1.20.0"})
    line.write(_SPACE, "below.yaml")
    line.write(_CAMPAIGN)
    line.succeed("tune", "campaign.yaml")
    with opened_store(line.database) as store:
        (campaign_id,) = line.query("SELECT id FROM campaigns")[0]
        store.save_profiles(campaign_id, [replace(_PROFILE, name="said", ranks=2, guards=())])
    return line


@pytest.fixture
def commtune(made: CommandLine, tmp_path: Path) -> CommandLine:
    """The same in a folder of the test's own, with what MPICH really loads."""
    shutil.copytree(made.folder, tmp_path, dirs_exist_ok=True)
    return CommandLine(tmp_path)


def forget_libraries(line: CommandLine) -> None:
    """Makes the campaign one that was stored before libraries were a part of a stack."""
    with closing(sqlite3.connect(line.database)) as connection, connection:
        ((text,),) = connection.execute("SELECT description FROM stacks").fetchall()
        bare = {name: value for name, value in json.loads(text).items() if name != "libraries"}
        values = (content_key(bare), json.dumps(bare))
        connection.execute("UPDATE stacks SET fingerprint = ?, description = ?", values)
        connection.execute("UPDATE campaigns SET space = json_remove(space, '$.cut_to')")


def verify(line: CommandLine) -> tuple[list[str], str]:
    """What changed since the profile was measured, and where today's runs are kept."""
    said: Said = line("verify", "small/said", "--time", "100ms", "--json")
    assert said.out, said.err
    found = json.loads(said.out)
    return found["changes"], found["campaign"]


def test_the_stack_says_which_ucx_it_was(commtune: CommandLine) -> None:
    ((text, description),) = commtune.query("SELECT text, description FROM stacks")
    assert text.startswith("MPICH ") and text.endswith(", UCX 1.20.0")
    assert json.loads(description)["libraries"] == {"ucx": "1.20.0"}


def test_on_another_ucx_it_does_not_go_on(commtune: CommandLine) -> None:
    said = commtune("tune", "campaign.yaml")
    assert said.code != 0
    assert 'stack.libraries.ucx: "1.20.0" -> "1.20.1"' in said.err
    assert len(commtune.query("SELECT * FROM campaigns")) == 1
    as_before = replace(commtune, extra={_GIVEN_VARIABLE: "ucx=1.20.0"})
    as_before.succeed("tune", "campaign.yaml")


def test_verify_says_that_it_is_another_ucx(commtune: CommandLine) -> None:
    changes, stored_as = verify(commtune)
    assert changes == ['libraries.ucx: "1.20.0" -> "1.20.1"']
    assert stored_as.startswith("verify-small-said-")
    as_before = replace(commtune, extra={_GIVEN_VARIABLE: "ucx=1.20.0"})
    assert verify(as_before) == ([], "small")


def test_campaigns_stored_without_versions_go_on_and_are_verified(commtune: CommandLine) -> None:
    forget_libraries(commtune)
    assert verify(commtune) == ([], "small")
    commtune.succeed("tune", "campaign.yaml")
    ((description,),) = commtune.query("SELECT description FROM stacks")
    assert "libraries" not in json.loads(description)
