"""What commands that measure nothing import: most of the time that they take."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import database_values as given
import pytest

_PROGRAM = """
import atexit, sys
atexit.register(lambda: print("imported", *sys.modules, file=sys.stderr))
from commtune.cli import main
main()
"""
_THREADS = """
import atexit, os, sys

def tell():
    import numpy, threadpoolctl
    blas = [one for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"]
    given = os.environ.get("OPENBLAS_NUM_THREADS")
    print([one["num_threads"] for one in blas], given, file=sys.stderr)

atexit.register(tell)
from commtune.cli import main
main()
"""
_DATABASE = ("sqlalchemy", "alembic", "commtune.db.tables")
_SEARCH = ("numpy", "scipy", "optuna", "matplotlib")
_DOCUMENTS = ("pydantic", "yaml", "jinja2")
#: What ends processes and jobs.
_CONTROL = ("psutil", "commtune.cluster.scheduler", "commtune.wiring.campaign_control")
#: What asks them, and what measures.
_SCHEDULERS = (*_CONTROL[1:], "commtune.cluster.pbs.client", "commtune.wiring.benchmark_setup")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a campaign of one trial and one profile."""
    file = tmp_path_factory.mktemp("stored") / "commtune.db"
    given.fill_database(f"sqlite:///{file}")
    return file


@pytest.mark.parametrize(
    ("command", "heavy"),
    [
        (
            "best --op allreduce --bytes 4KiB --db {database}",
            (*_DATABASE, *_SEARCH, *_DOCUMENTS, *_CONTROL, "commtune.model.conclusion"),
        ),
        ("status --db {database}", (*_DATABASE, *_SEARCH, *_DOCUMENTS)),
        ("profiles --db {database}", (*_DATABASE, *_SEARCH, *_DOCUMENTS)),
        ("plot -o {new}.svg --db {database}", (*_DATABASE, *_DOCUMENTS, "scipy", "optuna")),
        ("db upgrade --db {database}", (*_DATABASE, *_SEARCH, *_DOCUMENTS, *_CONTROL)),
        ("rename shm other --db {copy}", (*_SEARCH, *_DOCUMENTS, *_CONTROL)),
        ("build --help", (*_DATABASE, *_SEARCH, "pydantic", *_SCHEDULERS)),
        ("spaces list", (*_DATABASE, *_SEARCH, *_DOCUMENTS)),
        ("init {new}", (*_DATABASE, *_SEARCH, "pydantic", "commtune.spaces.space")),
        ("doctor", (*_DATABASE, *_SEARCH, "pydantic", "rich", "commtune.wiring.benchmark_setup")),
        ("export --help", (*_DATABASE, *_SEARCH, "pydantic")),
        ("run --help", (*_DATABASE, *_SEARCH, "pydantic")),
        *(
            (f"{command} --help", (*_DATABASE, *_SEARCH, *_DOCUMENTS))
            for command in (
                *("tune", "submit", "cancel", "record", "report", "plot", "install"),
                *("bench", "compare", "trace", "trace-messages", "verify"),
            )
        ),
        ("findings list", (*_DATABASE, *_SEARCH, "jinja2", "commtune.campaign.schema")),
        ("systems show lumi", (*_DATABASE, *_SEARCH, *_CONTROL, "jinja2")),
        ("systems detect", (*_DATABASE, *_SEARCH, "jinja2", "commtune.campaign.schema")),
        ("spaces explain NCCL_ALGO", (*_DATABASE, *_SEARCH, *_CONTROL, "jinja2")),
    ],
)
def test_no_command_waits_for_what_it_does_not_need(
    command: str, heavy: tuple[str, ...], database: Path, tmp_path: Path
) -> None:
    copy = shutil.copy(database, tmp_path / "copy.db")
    words = command.format(database=database, copy=copy, new=tmp_path / "new")
    # This machine may be a described system, or none.
    imported = _imported(words, ends_with={0, 4} if command == "systems detect" else {0})
    assert not imported & set(heavy)


@pytest.mark.parametrize(
    "command", ["best --op allreduce --bytes 4KiB", "status", "profiles", "plot -o {new}.svg"]
)
def test_questions_to_a_server_need_no_sqlalchemy(
    command: str, postgresql_url: str, tmp_path: Path
) -> None:
    given.fill_database(postgresql_url)
    imported = _imported(
        f"{command.format(new=tmp_path / 'new')} --db {postgresql_url}", ends_with={0}
    )
    assert not imported & {*_DATABASE, *_DOCUMENTS, "scipy", "optuna"}


@pytest.mark.parametrize(
    "command",
    ["cancel mistyped", "delete mistyped", "rename mistyped new", "cancel shm"],  # nobody runs shm
)
def test_who_is_refused_does_not_wait_for_what_writes(command: str, database: Path) -> None:
    imported = _imported(f"{command} --db {database}", ends_with={2})
    assert not imported & {*_DATABASE, *_SEARCH, *_DOCUMENTS}


def test_a_campaign_is_submitted_without_what_searches(tmp_path: Path) -> None:
    file = tmp_path / "campaign.yaml"
    file.write_text("campaign: 1\nname: shm\nspace: openmpi-host\nmpi: /nowhere\nslurm: {}\n")
    imported = _imported(f"submit {file} --db {tmp_path / 'none.db'}", ends_with={2, 3})
    assert "commtune.wiring.job_submission" in imported
    assert not imported & {*_SEARCH, "commtune.tuner.campaign", "commtune.replay.benchmark"}


def test_numpy_has_no_threads_and_programs_that_are_started_are_not_told() -> None:
    assert _told(_THREADS, "--version", ends_with={0}).splitlines()[-1] == "[1] None"


def _imported(command: str, ends_with: set[int]) -> set[str]:
    imported = set(_told(_PROGRAM, command, ends_with).rpartition("imported ")[2].split())
    assert "commtune.cli" in imported
    return imported


def _told(program: str, command: str, ends_with: set[int]) -> str:
    """Runs a command in a program of its own; returns what that says on standard error."""
    done = subprocess.run(
        [sys.executable, "-c", program, *command.split()],
        # Without variables of libraries, for which `doctor` reads the catalogue.
        env={name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in ends_with, done.stderr
    return done.stderr
