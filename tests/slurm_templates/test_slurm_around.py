"""A launch with something beside it, as one command: real shells and processes, no Slurm."""

from __future__ import annotations

import os
import signal
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hostile_values import NASTY
from left_over import wait_until_gone, wait_until_living
from waiting import PATIENCE_S

from commtune.slurm_templates.background_command import (
    BackgroundCommand,
    Presence,
    launch_with,
)

_UP = "echo is up; exec sleep 60"


class Pair:
    """A launch and what stands beside it; the word is in the command lines of both."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.word = f"pair-{uuid.uuid4().hex}"
        self.output = folder / "beside"

    def start(
        self,
        beside: str,
        command: Sequence[str],
        variables: Mapping[str, str] | None = None,
        *,
        stop: bool = True,
        limit_s: int = 30,
    ) -> subprocess.Popen[bytes]:
        words = ("bash", "-c", beside, self.word)
        stop_file = str(self.folder / "stop") if stop else ""
        asked = BackgroundCommand(words, "is up", stop_file, limit_s)
        launched = launch_with(asked, str(self.output), variables or {}, command)
        # What ignores SIGTERM is killed a second later, and not ten.
        sooner = [word.replace("--kill-after=10 ", "--kill-after=1 ") for word in launched]
        assert sooner != launched
        return subprocess.Popen(
            sooner,
            env={"PATH": os.environ["PATH"], "SHARED": "by both"},
            cwd=self.folder,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def run(
        self, beside: str, *command: str, variables: Mapping[str, str] | None = None, **more: Any
    ) -> tuple[int, bytes]:
        """The exit status, and what the launch printed."""
        child = self.start(beside, command, variables, **more)
        printed, _ = child.communicate(timeout=PATIENCE_S)
        return child.returncode, printed

    @property
    def presence(self) -> Presence:
        return Presence.read(self.output.read_text(errors="replace"))


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path)
    yield made
    left = wait_until_gone(made.word)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


def test_the_launch_waits_for_the_sign_and_its_status_counts(pair: Pair) -> None:
    # Only at its stop file does it end: the launch is there when both its lines are.
    beside = "sleep 0.5; echo first; echo is up; until [ -e stop ]; do sleep 0.01; done; echo last"
    assert pair.run(beside, "sh", "-c", "cat beside; exit 7") == (7, b"first\nis up\n")
    assert pair.output.read_text() == "first\nis up\nlast\ncommtune: this was there to the end\n"
    assert pair.presence == Presence()
    assert not (pair.folder / "stop").exists()


def test_without_a_stop_file_it_is_asked_by_a_signal(pair: Pair) -> None:
    assert pair.run(_UP, "echo", "ran", stop=False) == (0, b"ran\n")
    assert pair.presence.was_there


@pytest.mark.parametrize(
    ("beside", "limit_s", "why"),
    [
        ("echo no ranks; exit 4", 30, "it ended before it began its work"),
        ("sleep 60", 1, "it did not begin its work within 1 s"),
    ],
)
def test_a_launch_is_not_made_beside_what_does_not_begin(
    pair: Pair, beside: str, limit_s: int, why: str
) -> None:
    assert pair.run(beside, "touch", "made", limit_s=limit_s, stop=False) == (125, b"")
    assert not (pair.folder / "made").exists()
    assert pair.presence == Presence(why)


def test_what_ends_early_is_told(pair: Pair) -> None:
    beside = "echo $PPID >pid; echo is up; until [ -e launched ]; do sleep 0.01; done"
    until_it_is_gone = ": >launched; while [ -d /proc/$(cat pid) ]; do sleep 0.01; done"
    assert pair.run(beside, "bash", "-c", until_it_is_gone) == (0, b"")
    assert pair.presence == Presence("it ended before what it stood beside")


def test_what_ignores_everything_is_killed_and_that_is_told(pair: Pair) -> None:
    ignoring = "trap '' TERM; echo is up; while :; do sleep 0.1; done"
    assert pair.run(ignoring, "true", stop=False) == (0, b"")
    assert pair.presence == Presence("", killed=True)


def ended(child: subprocess.Popen[bytes]) -> int:
    """The exit status after SIGTERM; long before what it started would end by itself."""
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=PATIENCE_S)
    return child.returncode


def test_a_signal_ends_both(pair: Pair) -> None:
    launched = f"exec -a {pair.word} sleep 60"
    child = pair.start(_UP, ("bash", "-c", launched))
    wait_until_living(f"{pair.word} 60", 1)
    assert ended(child) == 143
    assert not pair.presence.was_there


def test_a_signal_ends_what_has_not_begun(pair: Pair) -> None:
    child = pair.start("sleep 60; true", ("touch", "made"))
    wait_until_living(pair.word, 3)
    assert ended(child) == 143
    assert not (pair.folder / "made").exists()


def test_nobody_said_anything_is_no_proof() -> None:
    assert not Presence.read("").was_there
    assert not Presence.read("commtune-bench: sending\n").was_there


def test_variables_reach_the_launch_alone_and_unchanged(pair: Pair) -> None:
    variables = {f"VALUE_{number}": value for number, value in enumerate(NASTY)}
    prints = "env -0 >of_beside; echo is up; exec sleep 60"
    status, printed = pair.run(prints, "env", "-0", variables=variables, stop=False)
    assert status == 0
    seen = dict(entry.split(b"=", 1) for entry in printed.split(b"\0")[:-1])
    assert seen[b"SHARED"] == b"by both"
    assert {n: v for n, v in seen.items() if n.startswith(b"VALUE_")} == {
        name.encode(): os.fsencode(value) for name, value in variables.items()
    }
    beside = (pair.folder / "of_beside").read_bytes()
    assert b"SHARED=by both" in beside
    assert b"VALUE_" not in beside
    assert not list(pair.folder.glob("**/RAN"))
