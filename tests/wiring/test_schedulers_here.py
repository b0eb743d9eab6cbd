"""What is said where the scheduler of a campaign isn't on this machine, or has none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from commtune.campaign.loading import parse_campaign
from commtune.errors import MissingComponent, UserError
from commtune.model import JobScheduler, MpiFlavour, MpiInstallation
from commtune.wiring.job_submission import prepare_scheduler_campaign
from commtune.wiring.schedulers import describe_site


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (JobScheduler.SLURM, "there is no Slurm here (no scontrol)"),
        (JobScheduler.PBS, "there is no PBS here (no qstat)"),
    ],
)
def test_a_machine_without_a_scheduler_is_told_from_one_whose_scheduler_is_silent(
    kind: JobScheduler, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingComponent, match=re.escape(said)) as refused:
        describe_site(kind, tmp_path)
    assert f"remove '{kind}:'" in refused.value.hint


def test_a_campaign_without_a_scheduler_is_refused_before_anything_is_built(
    tmp_path: Path,
) -> None:
    lacking = MpiInstallation(
        MpiFlavour.MPICH, "5.0.2", tmp_path, tmp_path / "mpicxx", tmp_path / "mpiexec"
    )
    spec = parse_campaign("campaign: 1\nname: local\nspace: mpich-host\n", tmp_path)
    with pytest.raises(UserError, match="its file asks for no scheduler"):
        prepare_scheduler_campaign(spec, lacking, print)
