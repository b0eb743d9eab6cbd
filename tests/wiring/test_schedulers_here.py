"""What is said where the scheduler of a campaign isn't on this machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from commtune.errors import MissingComponent
from commtune.model import JobScheduler
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
