"""The source distribution: it has all that it takes to build and test itself."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

from components import require_component
from hatchling.builders.sdist import SdistBuilder

_ROOT = Path(__file__).parents[2]


def test_it_has_every_file_of_the_repository(tmp_path: Path) -> None:
    require_component("a clone of the repository", (_ROOT / ".git").exists())
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    tracked = {name for name in listed.stdout.splitlines() if not name.startswith(".ci/")}
    (made,) = SdistBuilder(str(_ROOT)).build(directory=str(tmp_path))
    with tarfile.open(made) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert tracked - names == set()
