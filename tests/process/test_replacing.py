"""What a program gets that takes our place."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE_S

from commtune import process
from commtune.errors import MissingComponent

_ROOT = Path(__file__).parents[2]
_BECOME = (
    "import os; from commtune import process; "
    "process.replace_process(['grep', 'SigIgn', '/proc/self/status'], os.environ)"
)


def test_no_signal_is_ignored_for_it() -> None:
    environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
    done = process.run_process(
        [sys.executable, "-c", _BECOME], environment=environment, timeout_s=PATIENCE_S
    )
    ignored = int(done.output.split()[-1], 16)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        assert not ignored >> (number - 1) & 1, done.output


def test_where_it_is_missing_ours_are_ignored_as_before() -> None:
    numbers = (signal.SIGPIPE, signal.SIGXFSZ)
    before = [signal.getsignal(number) for number in numbers]
    with pytest.raises(MissingComponent):
        process.replace_process(["nonexistent-program"], {"PATH": "/usr/bin"})
    assert [signal.getsignal(number) for number in numbers] == before == [signal.SIG_IGN] * 2
