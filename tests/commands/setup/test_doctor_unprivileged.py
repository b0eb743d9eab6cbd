"""``commtune doctor`` of an ordinary user, with places in its way that are closed to it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from components import UNPRIVILEGED

_PROGRAM = """
import os, sys
from commtune.commands.setup.doctor import doctor_command
closed = sys.argv[1]
os.chdir("/")
os.environ |= {
    "HOME": closed + "/home", "XDG_DATA_HOME": closed + "/data", "PATH": closed + "/bin",
    "XDG_CACHE_HOME": closed + "/cache",
    "COMMTUNE_MPI_PATH": closed + "/mpi", "LD_LIBRARY_PATH": closed + "/lib",
    "NCCL_CONF_FILE": closed + "/nccl.conf", "NCCL_HOME": closed, "CUDA_HOME": closed,
}
doctor_command(None, False)
"""


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "closed"
    (folder / "mpi").mkdir(parents=True)
    folder.chmod(0)
    yield folder
    folder.chmod(0o700)


def test_closed_places_are_lines_of_the_report(closed: Path) -> None:
    done = subprocess.run(
        [*UNPRIVILEGED, sys.executable, "-c", _PROGRAM, str(closed)],
        capture_output=True,
        text=True,
        env={**os.environ, "XDG_DATA_HOME": str(closed.parent / "data")},
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == 0
    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    said = {(area, state): what for area, state, what in (li for li in lines if len(li) == 3)}
    assert said["mpi", "warning"].endswith(": Permission denied")
    assert said["database", "missing"].startswith("can't write to ")
    assert said["cache", "missing"].startswith("can't write to ")
    # It goes on to the end.
    assert said["backend", "ok"]
