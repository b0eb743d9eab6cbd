"""``make slurm-demo``: what it prints works when typed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from components import require_component
from slurm_cluster import has_slurm
from waiting import PATIENCE_S

PROJECT = Path(__file__).parents[3]
DEMO = PROJECT / "tests" / "support" / "slurm" / "slurm_demo.py"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_is_printed_can_be_typed(number: signal.Signals) -> None:
    require_component("Slurm", has_slurm())
    demo = subprocess.Popen([sys.executable, str(DEMO)], stdout=subprocess.PIPE, text=True)
    with demo:
        assert demo.stdout
        said = ""
        while "Ctrl-C" not in said:
            line = demo.stdout.readline()
            assert line, said
            said += line
        commands = re.findall(r"^    (.*)$", said, re.MULTILINE)
        assert commands[0].startswith(". /tmp/")
        typed = subprocess.run(
            ["sh", "-euc", "\n".join(commands[:3])],
            env={"PATH": os.defpath, "HOME": "/root"},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        demo.send_signal(number)
        assert demo.wait(PATIENCE_S) == 0
        assert "has ended" in demo.stdout.read()
    assert typed.returncode == 0, typed.stderr
    assert sorted(typed.stdout.split()[-2:]) == ["n1", "n2"]
    assert not Path(commands[0][2:]).exists()


def test_looking_for_packages_needs_none_of_python() -> None:
    require_component("Slurm", has_slurm())
    done = subprocess.run([sys.executable, "-S", str(DEMO), "check"], check=False)
    assert done.returncode == 0


def test_missing_packages_are_named_before_anything_is_set_up(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "sh").symlink_to("/bin/sh")
    make = shutil.which("make")
    require_component("make", make is not None)
    assert make
    environment = tmp_path / "venv"
    done = subprocess.run(
        [make, "slurm-demo", f"VENV={environment}", f"PYTHON={sys.executable}"],
        cwd=PROJECT,
        env={"PATH": str(programs)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 2
    assert not environment.exists()
    assert "apt-get install" in done.stderr
    assert "slurm-wlm" in done.stderr
    assert "Traceback" not in done.stderr
