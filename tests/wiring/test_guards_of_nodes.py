"""What only the nodes of a job set to keep hardware safe binds runs, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from commtune.campaign.loading import CampaignSpec, parse_campaign
from commtune.errors import CampaignError
from commtune.model import MpiFlavour, MpiInstallation
from commtune.wiring.benchmark_setup import prepare_benchmark
from commtune.wiring.job_handover import _SET_VARIABLE
from commtune.wiring.space_fitting import _fit_to_environment

_GUARD = "NCCL_NVLS_ENABLE"


def pinning(value: str, folder: Path) -> CampaignSpec:
    """A campaign with the guard among its pins."""
    return parse_campaign(
        "campaign: 1\nname: x\nspace: mpich-host\n"
        f"extend: [{{name: {_GUARD}, kind: integer, values: [0, 2]}}]\n"
        f"pin: {{{_GUARD}: {value}}}\n",
        folder,
    )


def test_a_pin_does_not_replace_what_a_node_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(_SET_VARIABLE, "")  # nothing was set where the job was submitted
    monkeypatch.setenv(_GUARD, "0")
    with pytest.raises(CampaignError, match=f"{_GUARD}=0 is set .* the campaign pins it to 2"):
        _fit_to_environment(pinning("2", tmp_path))
    assert _fit_to_environment(pinning("0", tmp_path)).remarks == ()  # and nothing is cut by it
    monkeypatch.delenv(_GUARD)
    assert _fit_to_environment(pinning("2", tmp_path)).plan.space.pinned == {_GUARD: "2"}


def test_nor_does_the_pin_of_a_stored_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mpi = MpiInstallation(
        MpiFlavour.MPICH, "5.0.2", tmp_path, tmp_path / "mpicxx", tmp_path / "mpiexec"
    )
    plan = parse_campaign(
        "campaign: 1\nname: x\nspace: mpich-host\n"
        "benchmark: {command: [sh, osu.sh], output: osu}\n",
        tmp_path,
    ).plan
    monkeypatch.setenv(_GUARD, "0")
    with pytest.raises(CampaignError, match="pins it to 2"):
        prepare_benchmark(mpi, {_GUARD: "2"}, (), plan.workload, tmp_path)
    benchmark = prepare_benchmark(mpi, {_GUARD: "0"}, (), plan.workload, tmp_path)
    assert benchmark.environment[_GUARD] == "0"
