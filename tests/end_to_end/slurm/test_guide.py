"""The guide "From login node to module file", followed word by word on a real Slurm."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import CACHE, ROOT
from components import require_component
from slurm_cluster import Cluster
from waiting import PATIENCE_S

GUIDE = ROOT / "docs" / "slurm.md"
PROFILE = "two-nodes/allreduce-1048576-1048576"
_HEADING = re.compile(r"^## (.+)$")
_FENCE = re.compile(r'^```(\w*)(?: title="([^"]+)")?$')
#: What differs between two sessions: numbers with their units of time, and keys of jobs.
_VARYING = re.compile(r"\b[0-9a-f]{16}\b|\d[\d.,:]*(?: (?:us|ms|s|min|h)\b)?")
#: Said on a busy machine only.
_OF_BUSY_MACHINES = re.compile(
    r"^(?:.* of it controller overhead|background load .*"
    r"|.*more slow runs than with .*(?:\n  (?:at|speedup of) .*)*)\n",
    re.M,
)
#: ``verify`` may be kept from its answer by a busy machine; it must never say the contrary.
_CODES = {"commtune verify": {0, 10, 13}}
_MARK = "--guide--"
_MODULES = Path("/usr/share/modules/init/bash")
_LMOD = (
    Path("/opt/lmod/usr/share/lmod/lmod/libexec/lmod"),
    Path("/usr/share/lmod/lmod/libexec/lmod"),
)


@dataclass(frozen=True)
class Part:
    """Something to do: a command with what it shows, or a file to write.

    Attributes:
        heading: below which it stands.
        title: the file's name; empty for a command.
        text: the command, or what is in the file.
        shown: what the guide shows of the command's output.
    """

    heading: str
    title: str
    text: str
    shown: str = ""


def parts(text: str) -> Iterator[Part]:
    """What the guide says to do, in its order."""
    heading, lines = "", iter(text.splitlines())
    for line in lines:
        if found := _HEADING.match(line):
            heading = found[1]
        if not (fence := _FENCE.match(line)):
            continue
        block = []
        for inner in lines:
            if inner == "```":
                break
            block.append(inner)
        if fence[2]:
            yield Part(heading, fence[2], "\n".join(block) + "\n")
        elif fence[1] == "console":
            yield from _commands(heading, block)


def _commands(heading: str, block: list[str]) -> Iterator[Part]:
    for typed in re.split(r"^\$ ", "\n".join(block), flags=re.MULTILINE)[1:]:
        command, _, shown = typed.partition("\n")
        yield Part(heading, "", command, shown)


def pattern(shown: str, home: Path) -> str:
    """What output must look like that is shown so; ``...`` stands for anything."""
    return "(?s:.*)".join(re.escape(plain(piece, home)) for piece in shown.split("..."))


def plain(text: str, home: Path) -> str:
    """Text without what differs between two sessions."""
    masked = _VARYING.sub("#", _OF_BUSY_MACHINES.sub("", text.replace(str(home), "~")))
    lines = (" ".join(line.split()) for line in masked.strip().splitlines())
    return re.sub(r"# (?=#)", "", "\n".join(lines))


class Shell:
    """A shell as a person's on the login node: what is set stays set."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            env=environment,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        with self._process:
            pass

    def __call__(self, command: str) -> tuple[int, str]:
        """The exit code of a command, and what it printed, both streams together."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n%s\\n' {_MARK}$?\n")
        self._process.stdin.flush()
        told: list[str] = []
        timer = threading.Timer(PATIENCE_S, self._process.kill)
        timer.start()
        for line in self._process.stdout:
            if line.startswith(_MARK):
                timer.cancel()
                return int(line.removeprefix(_MARK)), "".join(told)
            told.append(line)
        raise AssertionError(f"{command}: the shell ended, or it took {PATIENCE_S:g} s: {told}")


def lmod() -> str:
    """Lmod's program; empty where there is none."""
    return next((str(file) for file in _LMOD if file.is_file()), "")


@pytest.fixture
def shell(executable: Path, isolated_slurm: Cluster, tmp_path: Path) -> Iterator[Shell]:
    """The login node's, with commtune, its benchmark and an MPI at hand."""
    assert executable.is_relative_to(CACHE)
    environment = {
        "HOME": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "LC_ALL": "C.UTF-8",
        "SLURM_CONF": isolated_slurm.environment["SLURM_CONF"],
        "COMMTUNE_MPI_PATH": str(ROOT / ".mpi"),
        "XDG_CACHE_HOME": str(CACHE),
    }
    with Shell(environment, tmp_path) as made:
        yield made


def test_the_guide_is_followed_word_by_word(shell: Shell, tmp_path: Path) -> None:
    require_component("environment-modules", _MODULES.is_file())
    require_component("lmod", bool(lmod()))
    shell(f". {_MODULES}")
    done = [_follow(shell, part, tmp_path) for part in parts(GUIDE.read_text(encoding="utf-8"))]
    assert len(done) > 20
    shell(f'module() {{ eval "$({lmod()} bash "$@")"; }}; export MODULEPATH=')
    for part in done:
        if "module " in part.text:
            code, output = shell(part.text)
            assert code == 0, f"Lmod: {part.text}: {output}"
        if part.text.startswith("module load"):
            _, output = shell("printenv UCX_TCP_RCVBUF")
            assert int(output) >= 16384


def _follow(shell: Shell, part: Part, home: Path) -> Part:
    if part.title:
        code, output = shell(f"cat >{part.title} <<'EOF'\n{part.text}EOF")
        assert code == 0, output
        return part
    if part.heading == "In the morning":
        _wait_until_finished(shell, home)
    code, output = shell(part.text)
    print(f"$ {part.text}\n{output}")
    allowed = next((c for start, c in _CODES.items() if part.text.startswith(start)), {0})
    assert code in allowed, f"{part.text}: exit code {code}: {output}"
    if part.shown:
        wanted = pattern(part.shown, home)
        found = plain(output, home)
        assert re.fullmatch(wanted, found), f"$ {part.text}\n{found}\n--- shown:\n{wanted}"
    return part


def _wait_until_finished(shell: Shell, home: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not _is_finished(home):
        if time.monotonic() > deadline:
            _, said = shell(
                "commtune status; squeue; tail ~/.local/share/commtune/*/*/jobs/*/job.out"
            )
            raise AssertionError(f"not finished after {PATIENCE_S:g} s: {said}")
        time.sleep(0.2)


def _is_finished(home: Path) -> bool:
    database = home / ".local/share/commtune/commtune.db"
    with closing(
        sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=PATIENCE_S)
    ) as connection:
        ((finished,),) = connection.execute("SELECT finished FROM campaigns").fetchall()
    return finished is not None
