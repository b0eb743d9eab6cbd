"""Nothing is started on another machine to ask for versions: a login node has too few cores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_files import write_script

from commtune.campaign.loading import parse_campaign
from commtune.cluster.machine.description import describe_machine
from commtune.db.codec import to_json_value
from commtune.db.records import CampaignDescription, StackRecord, SystemRecord
from commtune.model import MpiFlavour, MpiInstallation, Operation, Workload
from commtune.wiring import library_versions
from commtune.wiring.job_handover import _GIVEN_VARIABLE
from commtune.wiring.library_versions import with_versions


def test_versions_are_asked_on_the_campaigns_machine_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tmp_path / "asked"
    wrapper = write_script(tmp_path / "mpicxx", f"touch {asked}\nexit 1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(_GIVEN_VARIABLE, raising=False)
    mpi = MpiInstallation(MpiFlavour.OPENMPI, "5.0.11", tmp_path, wrapper, tmp_path / "mpiexec")
    libraries = {"ucx": "1.20.1"}
    here = to_json_value(describe_machine().shape())
    what = {"machine": here, "workload": Workload(Operation.ALLREDUCE, (8,), 2).plain()}
    stored = CampaignDescription(
        1, "x", what, {}, {}, 0, simulated=False, created=0.0, finished=None,
        system=SystemRecord("s", "s"), stack=StackRecord("k", "k", {"libraries": libraries}),
    )  # fmt: skip
    larger = {**what, "machine": {**here, "cores_total": 4096}}
    assert library_versions.versions_again(replace(stored, what=larger), mpi) == libraries
    assert not asked.exists()
    assert library_versions.versions_again(stored, mpi) == libraries  # nobody answers
    assert asked.exists()
    (note,) = with_versions(
        parse_campaign("campaign: 1\nname: x\nspace: ucx\n", tmp_path), mpi
    ).remarks
    why = f"{wrapper} --version fails"
    assert (
        note
        == f"note: ucx: the version is not known ({why}), so nothing is left out because of it"
    )
