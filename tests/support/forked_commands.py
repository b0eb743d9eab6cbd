"""Commands in processes of their own, forked from one that has imported what they need.

A start from nothing is a second of imports, of which whole campaigns need hundreds.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import shlex
import sys
from collections.abc import Mapping
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path
from tempfile import TemporaryFile

from commtune.cli import main

#: What campaigns import, at once or later.
_IMPORTED = (
    "commtune.cli",
    "commtune.commands.campaigns.tune",
    "commtune.commands.campaigns.tuning",
    "commtune.commands.campaigns.status",
    "commtune.commands.profiles.best",
    "commtune.commands.profiles.use",
    "commtune.commands.profiles.verify",
    "commtune.db.views",
    "commtune.spaces.catalogue.schema",
    "alembic.command",
    "scipy.special",
)


@cache
def _fork_server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*_IMPORTED])
    return context


def run_forked(
    arguments: tuple[str, ...], folder: Path, environment: Mapping[str, str], patience_s: float
) -> tuple[int, str, str]:
    """Runs ``commtune`` to its end; returns its exit code, and what it wrote.

    Args:
        folder: the working directory.
        environment: all variables.
    """
    with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        written = [f"/proc/{os.getpid()}/fd/{file.fileno()}" for file in (out, err)]
        process = _fork_server().Process(
            target=_run_command, args=(arguments, folder, dict(environment), *written)
        )
        process.start()
        process.join(patience_s)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"commtune {shlex.join(arguments)} ran for {patience_s:g} s")
        return process.exitcode, out.read(), err.read()


def _run_command(
    arguments: tuple[str, ...], folder: Path, environment: Mapping[str, str], out: str, err: str
) -> None:
    os.setsid()
    os.chdir(folder)
    for descriptor, path in enumerate((os.devnull, out, err)):
        file = os.open(path, os.O_RDWR | os.O_APPEND)
        os.dup2(file, descriptor)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["commtune", *arguments]
    try:
        main()
    finally:
        atexit._run_exitfuncs()
