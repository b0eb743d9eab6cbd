"""The former name of the Python benchmark: users' files and job scripts have it."""

from __future__ import annotations

import subprocess
import sys

from commtune.kernels.python_bench import Pattern


def test_patterns_import_from_the_former_name() -> None:
    from commtune.kernels.twin import Pattern as former

    assert former is Pattern


def test_the_former_module_runs() -> None:
    command = [sys.executable, "-P", "-m", "commtune.kernels.twin", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("commtune-bench ")
