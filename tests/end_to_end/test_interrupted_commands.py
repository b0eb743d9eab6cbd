"""Commands that say nothing of it when they are ended early: nothing of theirs runs on."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest
from command_line import CommandLine
from left_over import living, wait_until_living
from waiting import PATIENCE_S


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_benchmark_ends_with_its_command(commtune: CommandLine, number: signal.Signals) -> None:
    folder = str(commtune.folder)  # in the command lines of launcher and ranks
    line = replace(commtune, extra={"TMPDIR": folder})
    long = ("--sizes", "64MiB", "--time-cap", "20s")
    with line.start("bench", "--mpi", "wheel:mpich", "--op", "allreduce", *long) as child:
        assert len(wait_until_living(folder, 3)) >= 3
        child.send_signal(number)
        out, err = child.communicate(timeout=PATIENCE_S)
    assert (child.returncode, out, err) == (130, "", "")
    assert living(folder) == {}
    assert list(commtune.folder.glob("commtune-*")) == []
