"""The real command line in a folder of its own, and what it leaves in its database."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import psycopg
from forked_commands import ForkedCommand
from waiting import PATIENCE_S, find_sparingly

from commtune import process_trees
from commtune.cli import main

ROOT = Path(__file__).parents[2]
#: Built benchmarks, by content; kept between test sessions.
CACHE = ROOT / "build" / "end-to-end-cache"

#: A command under way.
Child = subprocess.Popen[str] | ForkedCommand
_PROGRAM = (sys.executable, "-m", "commtune.cli")

#: Two sizes over variables with which every configuration works; run in about a fifth of a second.
#: The search ends with its trials, however long they take; only a run that hangs is over its time.
SMALL = """\
campaign: 1
name: small
space: mpich-host-allreduce
mpi: wheel:mpich
workload:
  sizes: [8, 64KiB]
timing: {max_samples: 10, time_cap: 2ms}
budget: {search: 10min, ablation: 1s, confirmation: 1s, trials: 3}
run_time_limit: 60s
narrow:
  MPIR_CVAR_DEVICE_COLLECTIVES: [all]
  MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM: [mpir]
"""

#: It says nothing of the disk when it finds no room: as dash does.
_WITHOUT_MPI = """\
for bytes in 8 65536; do
    echo "{\\"bytes\\": $bytes, \\"time_s\\": 1.$(date +%N | cut -c1-4)e-3}" || exit 1
done 2>/dev/null
"""


@dataclass(frozen=True)
class Said:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class CommandLine:
    """``commtune`` with data, cache and settings of its own.

    Attributes:
        begin: in the place of the program, where a process that imported it can be forked.
    """

    folder: Path
    extra: dict[str, str] = field(default_factory=dict)
    program: tuple[str, ...] = _PROGRAM
    begin: Callable[[], None] = main

    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {
            **kept,
            "HOME": str(self.folder),
            "PYTHONPATH": str(ROOT),
            "XDG_DATA_HOME": str(self.folder / "data"),
            "XDG_CACHE_HOME": str(CACHE),
            "COMMTUNE_MPI_PATH": str(ROOT / ".mpi"),
            **self.extra,
        }

    def start(self, *arguments: str) -> Child:
        """Starts a command in a session of its own, as a terminal would."""
        environment = self.environment()
        if self.program == _PROGRAM and environment["PYTHONPATH"] == str(ROOT):
            return ForkedCommand(arguments, self.folder, environment, self.begin)
        return self.start_anew(*arguments)

    def start_anew(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts it from nothing: others see what it is called."""
        return subprocess.Popen(
            [*self.program, *arguments],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __call__(self, *arguments: str) -> Said:
        """Runs a command to its end."""
        with self.start(*arguments) as child:
            out, err = child.communicate(timeout=PATIENCE_S)
            return Said(child.wait(), out, err)

    def succeed(self, *arguments: str) -> Said:
        """Runs a command that must come to a good end."""
        said = self(*arguments)
        assert said.code == 0, said.out + said.err
        return said

    def resume_briefly(self) -> Said:
        """Goes on with the campaign until it made another run, and ends it like Ctrl-C."""
        # The last run of a killed controller may not have begun its file.
        known = {run_id for (run_id,) in self.query("SELECT run_id FROM runs")}
        known |= {file.stem for file in self.records()}
        with self.start("tune", "campaign.yaml") as child:
            wait_until(lambda: not known >= {file.stem for file in self.records()}, child)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=PATIENCE_S)
            return Said(child.wait(), out, err)

    def write(self, text: str, name: str = "campaign.yaml") -> Path:
        """Writes a file for the command line."""
        path = self.folder / name
        path.write_text(text)
        return path

    def write_without_mpi(self, text: str, before: str = "sleep 0.2") -> None:
        """Writes a campaign whose runs leave the cores to others: for what jobs do, MPI or not.

        Args:
            before: what each rank does before it says its times.
        """
        program = self.write(f"{before}\n{_WITHOUT_MPI}", "run.sh")
        # The last word is for ``living``, which finds the native benchmark by it.
        words = f"[sh, {program}, {self.folder}/data]"
        command = f"benchmark: {{command: {words}, output: json-line}}\n"
        self.write(re.sub(r"timing: .*\n", command, text))

    @property
    def database(self) -> Path:
        """The file that is used where COMMTUNE_DB names no server."""
        return self.folder / "data" / "commtune" / "commtune.db"

    def records(self, campaign: str = "small") -> list[Path]:
        """Record files of a campaign."""
        return sorted((self.folder / f"data/commtune/campaigns/{campaign}/runs").glob("*.jsonl"))

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Asks the server that COMMTUNE_DB names, or else the file, past all code of ours."""
        url = self.extra.get("COMMTUNE_DB", "")
        if url.startswith("postgresql"):
            with psycopg.connect(url.replace("+psycopg", "")) as connection:
                return connection.execute(statement.encode()).fetchall()
        with closing(sqlite3.connect(self.database, timeout=PATIENCE_S)) as file:
            return file.execute(statement).fetchall()

    def check_stored(self) -> Counter[str]:
        """Every run is stored once, with both of its sizes if it went well; returns outcomes."""
        runs = self.query("SELECT run_id, state, outcome FROM runs")
        assert len({run_id for run_id, *_ in runs}) == len(runs)
        assert {state for _, state, _ in runs} == {"stored"}
        good = {run_id for run_id, _, outcome in runs if outcome == "ok"}
        measured = self.query(
            "SELECT runs.run_id, bytes FROM runs JOIN measurements "
            "ON measurements.run_id = runs.id WHERE outcome = 'ok'"
        )
        assert len(set(measured)) == len(measured)
        # The confirmation looks at sizes between these, too.
        assert {(run_id, size) for run_id in good for size in (8, 65536)} <= set(measured)
        assert all(run_id in good and 8 <= size <= 65536 for run_id, size in measured)
        return Counter(outcome for *_, outcome in runs)

    def left_over(self) -> dict[int, str]:
        """Processes of the campaign's runs that still live, with the run's identifier."""
        runs = {row[0] for row in self.query("SELECT run_id FROM runs")}
        marker = f"{process_trees.MARKER}=".encode()
        found = {}
        for file in Path("/proc").glob("[0-9]*/environ"):
            try:
                words = file.read_bytes().split(b"\0")
            except OSError:
                continue
            for word in words:
                if word.startswith(marker) and word.removeprefix(marker).decode() in runs:
                    found[int(file.parent.name)] = word.removeprefix(marker).decode()
        return found

    def stop_left_over(self) -> None:
        """Stops them, as they are: the next controller finds them in the middle."""
        for pid in self.left_over():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)


class Process(Protocol):
    """What is asked of a process, whoever started it."""

    def poll(self) -> int | None:
        """``None`` as long as it lives."""

    def kill(self) -> None:
        """Sends it SIGKILL, if it lives."""


def wait_until(condition: Callable[[], bool], child: Process) -> bool:
    """Waits for a condition as long as the child lives; whether it came true."""
    while not find_sparingly(condition):
        if child.poll() is not None:
            return False
    return True


def has_footer(record_file: Path) -> bool:
    """Whether a run wrote its records to the end, or a program of one's own ended well."""
    lines = record_file.read_text(errors="replace").splitlines()
    if lines and lines[-1].startswith("#commtune: ended 0 "):
        return True
    try:
        return bool(lines) and json.loads(lines[-1]).get("record") == "footer"
    except ValueError:
        return False
