"""A user's command in an allocation of Slurm: which program it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_files import write_script
from waiting import PATIENCE_S

from commtune import process
from commtune.campaign.loading import parse_campaign
from commtune.cluster.scheduler import Allocation, Site
from commtune.kernels.adapters.program import CommandProgram
from commtune.model import DEFAULT, MpiFlavour, MpiInstallation, RunRequest
from commtune.wiring.scheduler_campaign import SchedulerCampaign


def _tool(folder: Path) -> Path:
    write_script(folder / "the-tool", f"echo {folder.name}")
    return folder


@pytest.mark.parametrize("key", ["", "made by submit"])
def test_it_is_the_one_that_the_shell_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """Not one that lies beside an MPI's launcher, where a wheel has its own ``python``."""
    mine, of_mpi = _tool(tmp_path / "mine"), _tool(tmp_path / "of-mpi")
    monkeypatch.setenv("PATH", f"{mine}:/usr/bin:/bin")
    mpi = MpiInstallation(
        MpiFlavour.MPICH, "5.0.2", tmp_path, of_mpi / "mpicxx", of_mpi / "mpiexec"
    )
    text = (
        "campaign: 1\nname: a\nspace: mpich-host\nslurm: {}\nworkload: {ranks: 1, sizes: [1]}\n"
        "benchmark: {command: [the-tool], output: json-line}\n"
    )
    spec = parse_campaign(text, tmp_path)
    assert spec.job_request is not None
    on = SchedulerCampaign(
        spec=spec,
        request=spec.job_request,
        mpi=mpi,
        program=CommandProgram(("the-tool",), "json-line", tmp_path),
        site=Site("here", "22.05", {}, keeps_accounts=False),
        folder=tmp_path,
        allocation=Allocation("1", ("n1",), 0.0, None),
        key=key,
    )
    inner = on.steps(None).inner
    records = tmp_path / "records"
    request = RunRequest("r", DEFAULT, spec.plan.workload, spec.plan.timing)
    ended = process.run_process(
        inner.program.arguments(request, records),
        environment=inner.environment,
        timeout_s=PATIENCE_S,
    )
    assert ended.exit_code == 0, ended.output
    assert records.read_text().startswith("mine\n")
