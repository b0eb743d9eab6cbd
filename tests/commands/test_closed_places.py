"""Commands of a user to whom a place is closed: what is said names it, and what to do."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from components import UNPRIVILEGED

from commtune.db.connection.engine import open_database

#: Each line of the input is a command, with variables before it, in a process of its own, which
#: has all modules already.
_PROGRAM = """
import importlib, os, sys
from commtune import cli
for modules in cli._COMMANDS.values():
    for module in modules.values():
        importlib.import_module(f"commtune.commands.{module}")
# What commands import only where they need it; else each process would import it again.
for module in ("app.campaigns.tuning", "app.profiles.reporting", "app.profiles.rule_verification",
               "db.repair"):
    importlib.import_module(f"commtune.{module}")
for line in sys.stdin.read().splitlines():
    sys.stdout.flush()
    if os.fork() == 0:
        words = line.split()
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            os.environ[name] = value
        sys.argv[1:] = words
        cli.main()
    code = os.waitstatus_to_exitcode(os.wait()[1])
    print(f"ended {code}", file=sys.stderr, flush=True)
"""
_CAMPAIGN = "campaign: 1\nname: small\nspace: mpich-host-allreduce\n"
_KEYS = {
    "space": "campaign: 1\nname: small\nspace: {closed}/x.yaml\n",
    "system": _CAMPAIGN + "system: {closed}/x.yaml\n",
    "python": _CAMPAIGN + "benchmark: {{python: '{closed}/x.py:P'}}\n",
    "command": _CAMPAIGN + "benchmark: {{command: '{closed}/x', output: osu}}\n",
    "templates": _CAMPAIGN + "slurm: {{templates: '{closed}/x'}}\n",
    "matrix": _CAMPAIGN + "workload: {{operation: matrix, ranks: 4, matrix: '{closed}/x'}}\n",
}
#: What they read is in the folder of data.
_OF_STORED = ("status", "results", "db check", "run -p x -- true", "verify x")
_COMMANDS = (
    "status --db {closed}/x.db",
    "best --op allreduce --db {closed}/x.db",
    "profiles --db {closed}/x.db",
    "show x --db {closed}/x.db",
    "report x --db {closed}/x.db",
    "export x --db {closed}/x.db",
    "delete x --db {closed}/x.db",
    "db upgrade --db {closed}/x.db",
    "spaces validate {closed}/x.yaml",
    "spaces show {closed}/x.yaml",
    "systems show {closed}/x.yaml",
    "tune {closed}/x.yaml",
    "init {closed}/x.yaml",
    "bench --mpi {closed}/mpi",
    "build --mpi {closed}/mpi",
    "mpi list",
    *(f"spaces validate {{folder}}/{key}.yaml" for key in _KEYS),
    *(f"XDG_DATA_HOME={{closed}}/data {command}" for command in _OF_STORED),
    *(f"XDG_DATA_HOME= HOME={{closed}}/home {command}" for command in _OF_STORED),
    "results --db {own} -o {closed}/x.csv",
    "db backup {closed}/x.db --db {own}",
    "COMMTUNE_DB_FILE={closed}/x status",
)


@pytest.fixture
def closed() -> Iterator[Path]:
    """A closed folder, in one that anybody may read: pytest's own is for its user alone."""
    with tempfile.TemporaryDirectory(prefix="ctclosed") as above:
        Path(above).chmod(0o755)
        folder = Path(above) / "closed"
        folder.mkdir()
        folder.chmod(0)
        yield folder
        folder.chmod(0o700)


@pytest.mark.slow
def test_a_closed_place_is_named_and_nothing_else_is_said(closed: Path) -> None:
    for key, text in _KEYS.items():
        file = closed.parent / f"{key}.yaml"
        file.write_text(text.format(closed=closed))
        file.chmod(0o644)
    own = closed.parent / "own.db"
    open_database(f"sqlite:///{own}").close()
    own.chmod(0o644)
    commands = [line.format(closed=closed, folder=closed.parent, own=own) for line in _COMMANDS]
    done = subprocess.run(
        [*UNPRIVILEGED, sys.executable, "-c", _PROGRAM],
        input="\n".join(commands),
        capture_output=True,
        text=True,
        cwd=closed.parent,
        env={**os.environ, "COMMTUNE_MPI_PATH": f"{closed}/mpi"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *said, rest = done.stderr.split("ended ")
    assert len(said) == len(commands)
    codes = [int(after.split()[0]) for after in [*said[1:], rest]]
    for command, words, code in zip(commands, said, codes, strict=True):
        lines = [line for line in words.splitlines() if not line.isdigit()]
        assert code in (2, 3), (command, words)
        assert str(closed) in lines[0] and "ermission denied" in lines[0], (command, words)
        assert 1 <= len(lines) <= 3 and "Traceback" not in words, (command, words)
