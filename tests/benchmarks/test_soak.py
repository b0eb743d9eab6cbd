"""The soak: campaigns under random faults, for as long as is asked."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from command_line import ROOT


@pytest.mark.slow
def test_a_short_soak_is_one_round_and_says_what_it_did() -> None:
    command = [sys.executable, f"{ROOT}/benchmarks/soak.py", "--minutes", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    said = r"1 round, 5 simulated campaigns \(0\.\d\d h in compressed time\); faults: \{.*"
    assert re.fullmatch(said, first)
    assert second == "what is left can be told of more than 3 rounds only"
