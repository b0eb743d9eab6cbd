"""What the doctor proposes leaves alone what was set to keep hardware safe."""

from __future__ import annotations

from pathlib import Path

from commtune.app.setup.doctor import _check_environment, _fix_commands
from commtune.cluster.machine.doctor import _check_environment_settings


def proposed(home: Path, **variables: str) -> list[str]:
    """The commands for variables that are set."""
    general = [_check_environment_settings(variables)]
    found = _check_environment({"HOME": str(home), **variables}, {}, home)
    return _fix_commands(general, found, variables)


def test_a_misspelled_guard_does_not_replace_the_real_one(tmp_path: Path) -> None:
    misspelled = {"NCCL_NVLS_ENABLED": "1"}
    (alone,) = proposed(tmp_path, **misspelled)
    assert alone == "export NCCL_NVLS_ENABLE=1; unset NCCL_NVLS_ENABLED"
    assert proposed(tmp_path, **misspelled, NCCL_NVLS_ENABLE="0") == ["unset NCCL_NVLS_ENABLED"]


def test_a_name_that_no_shell_sets_is_no_error(tmp_path: Path) -> None:
    (mend,) = proposed(tmp_path, **{"NCCL_ALGO'": "Ring"})
    assert mend == """export NCCL_ALGO=Ring; unset 'NCCL_ALGO'"'"''"""
