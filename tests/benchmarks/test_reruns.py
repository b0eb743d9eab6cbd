"""What later verifications measured, beside what was stated, in databases of earlier releases."""

from __future__ import annotations

import subprocess
import sys

import pytest
from command_line import ROOT

_RESULTS = ROOT / "benchmarks" / "results"


@pytest.mark.parametrize(
    ("database", "said"),
    [
        ("gains-allowed-2026-11-28.db.gz", "22 of 24 inside at the largest speedup, 80 of 84"),
        ("gpu-h200/sockets-8-verified.db.gz", "4 of 4 inside at the largest speedup, 20 of 20"),
    ],
)
def test_reruns_are_counted_as_the_documentation_says(database: str, said: str) -> None:
    command = [sys.executable, f"{ROOT}/benchmarks/reruns.py", str(_RESULTS / database)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith(said)
