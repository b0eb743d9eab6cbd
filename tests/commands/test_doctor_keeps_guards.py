"""What the doctor proposes leaves alone what was set to keep hardware safe."""

from __future__ import annotations

from pathlib import Path

from commtune.cluster.doctor import settings_in_environment
from commtune.commands.environment_check import check_environment
from commtune.commands.mending import commands


def test_a_misspelled_guard_does_not_replace_the_real_one(tmp_path: Path) -> None:
    def proposed(**variables: str) -> list[str]:
        general = [settings_in_environment(variables)]
        found = check_environment({"HOME": str(tmp_path), **variables}, {}, tmp_path)
        return commands(general, found, variables)

    misspelled = {"NCCL_NVLS_ENABLED": "1"}
    (alone,) = proposed(**misspelled)
    assert alone == "export NCCL_NVLS_ENABLE=1; unset NCCL_NVLS_ENABLED"
    assert proposed(**misspelled, NCCL_NVLS_ENABLE="0") == ["unset NCCL_NVLS_ENABLED"]
