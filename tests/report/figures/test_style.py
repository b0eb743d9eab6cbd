"""Where figures are drawn, matplotlib leaves nothing open in the user's home, and says nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from components import UNPRIVILEGED
from made_files import write_file

_PROGRAM = """
import os, sys
from commtune.report.figures.style import Picture
os.umask(0)
assert "<svg" in Picture("one", "One", "one", lambda figure: None).svg("")
assert "MPLCONFIGDIR" not in os.environ
"""


def _draw(home: Path) -> None:
    kept = ("PATH", "LANG", "PYTHONPATH")
    done = subprocess.run(
        [*UNPRIVILEGED, sys.executable, "-c", _PROGRAM],
        capture_output=True,
        text=True,
        env={name: os.environ[name] for name in kept if name in os.environ} | {"HOME": str(home)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr


def test_settings_that_others_can_have_written_are_not_read(tmp_path: Path) -> None:
    file = write_file(tmp_path / ".cache/commtune/matplotlib/matplotlibrc", "of: others\n")
    file.parent.chmod(0o777)
    _draw(tmp_path)


@pytest.mark.parametrize("mode", [0o755, 0o500])
def test_drawing_leaves_a_private_folder_or_none(tmp_path: Path, mode: int) -> None:
    home = tmp_path / "home"
    home.mkdir(mode)
    _draw(home)
    made = [folder for folder in home.rglob("*") if folder.is_dir()]
    assert [folder.name for folder in made][:2] == ([".cache", "commtune"] if mode > 0o700 else [])
    assert {folder.stat().st_mode & 0o777 for folder in made} <= {0o700}
